"""``classgap compare``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from classgap.audit import Audit, AuditDiff
from classgap.audit.io.sources import ACCURACIES_ONLY, read_audits
from classgap.audit.serialization import write_json
from classgap.audit.stats.multiple_tests import FDR_CLASSES
from classgap.cli.invocation import command_line
from classgap.cli.outputs import busy, check_outputs, print_written
from classgap.cli.parser import Arg, Command


@dataclass(frozen=True)
class CompareCommand(Command):
    """Show which classes gained and which regressed.

    The first SOURCE is "before"; each other source is compared with it on the
    test samples that both have, matched by "index", by the ids in --key, or by
    position. With --n-runs N, sources are given in blocks of N runs that differ
    only in their seed; the first block is "before".

    Examples:
      classgap compare plain.npz mr2.npz --html diff.html
      classgap compare --n-runs 3 plain0 plain1 plain2 mr0 mr1 mr2
    """

    ARGS: ClassVar[Mapping[str, Arg]] = {
        "sources": Arg("SOURCE", positional=True),
        "confidence_level": Arg(default="that of the first saved audit, or 0.95"),
        "key": Arg("COLUMN"),
        "rename": Arg("OLD=NEW", repeatable=True),
        "correction": Arg(default=f"fdr above {FDR_CLASSES} classes, else holm"),
    }

    sources: tuple[Path, ...]
    """Two or more prediction files, run directories or saved audits."""

    n_runs: int = 1
    """Number of runs per model; sources are given in blocks of this size."""

    html: Path | None = None
    """Write the full report as one self-contained HTML page."""

    json: Path | None = None
    """Save as JSON; several comparisons go in a list under "comparisons"."""

    csv: Path | None = None
    """Write one row per class as CSV, for all comparisons."""

    confidence_level: float | None = None
    """Confidence level of all intervals and tests."""

    seed: int = 0
    """Seed for the bootstrap."""

    key: str | None = None
    """Array or column with sample ids (strings or integers) to match samples by."""

    rename: tuple[str, ...] = ()
    """Class OLD of the first source is called NEW in the others; can be repeated."""

    unpaired: bool = False
    """Compare test sets that have no samples in common."""

    correction: Literal["holm", "fdr"] | None = None
    """Correction for testing many classes: controls the family-wise error rate (holm) or the false discovery rate (fdr,
    Benjamini-Hochberg)."""

    def run(self) -> None:
        """Compare the sources, write the files, and print the comparisons."""
        from classgap.report import print_diff, write_diff_csv, write_html

        self._check_sources()
        self._diff_options()
        outputs = {"--html": self.html, "--json": self.json, "--csv": self.csv}
        check_outputs(outputs, self.sources)
        with busy("Comparing"):
            diffs = self._diffs()
            if self.json is not None and len(diffs) == 1:
                diffs[0].save(self.json)
            elif self.json is not None:
                write_json(self.json, {"schema": AuditDiff.SCHEMA, "comparisons": [diff.to_dict() for diff in diffs]})
            if self.csv is not None:
                write_diff_csv(diffs, self.csv)
            if self.html is not None:
                write_html(diffs, self.html, sources=self.sources, command=command_line())
        for i, diff in enumerate(diffs):
            if i:
                print()
            print_diff(diff)
        print_written(outputs)

    def _check_sources(self) -> None:
        if self.n_runs < 1:
            raise ValueError(f"--n-runs must be at least 1, got {self.n_runs}.")
        if len(self.sources) < 2 * self.n_runs or len(self.sources) % self.n_runs:
            multiple = "" if self.n_runs == 1 else f", a multiple of --n-runs {self.n_runs}"
            raise ValueError(f"compare needs at least {2 * self.n_runs} sources{multiple}; got {len(self.sources)}.")

    def _diffs(self) -> list[AuditDiff]:
        level = self.confidence_level
        settings = ACCURACIES_ONLY if level is None else replace(ACCURACIES_ONLY, confidence_level=level)
        audits = read_audits(self.sources, settings=replace(settings, seed=self.seed), key=self.key)
        blocks: list[list[Audit]] = [audits[i : i + self.n_runs] for i in range(0, len(audits), self.n_runs)]
        options = self._diff_options()
        return [
            AuditDiff.from_audits(blocks[0], block, confidence_level=level, seed=self.seed, **options)
            for block in blocks[1:]
        ]

    def _diff_options(self) -> dict[str, Any]:
        return {
            "rename": parse_renames(self.rename),
            "unpaired": self.unpaired,
            "correction": self.correction or "auto",
        }


def parse_renames(words: Sequence[str]) -> dict[str, str]:
    """Parse ``OLD=NEW`` pairs.

    Raises:
        ValueError: if a word has no ``=``, or a class is renamed twice.

    >>> parse_renames(["cab=taxi", "bike=bicycle"])
    {'cab': 'taxi', 'bike': 'bicycle'}
    """
    found: dict[str, str] = {}
    for word in words:
        old, equals, new = word.partition("=")
        if not (old and equals and new):
            raise ValueError(f"--rename must be OLD=NEW, got {word!r}.")
        if old in found:
            raise ValueError(f"--rename names the class {old!r} twice: keep one.")
        found[old] = new
    return found
