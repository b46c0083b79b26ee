"""``classgap audit``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from classgap.audit.io.sources import read_audit
from classgap.audit.serialization import read_json
from classgap.audit.settings import AuditSettings
from classgap.cli.outputs import busy, check_outputs, print_written
from classgap.cli.parser import Arg, Command


@dataclass(frozen=True)
class AuditCommand(Command):
    """Find the classes a classifier fails on, and why.

    SOURCE holds the predictions of any classifier:
      .npz, .safetensors   arrays "targets" and "logits" (or "probabilities", or
                           "predictions"); optional: "features", "head_weight",
                           "head_bias", "class_names", "train_counts",
                           "train_predictions", "train_targets",
                           "train_features"
      .csv                 columns "target" and "prediction", or "target" and
                           one column of scores per class
      directory            a run of classgap train
      .json                an audit saved with --json

    Example:
      classgap audit predictions.npz --html report.html
    """

    ARGS: ClassVar[Mapping[str, Arg]] = {
        "source": Arg("SOURCE", positional=True),
        "rank_by": Arg("SOURCE"),
        "confidence_level": Arg(default=f"{AuditSettings.confidence_level:g}"),
        "seed": Arg(default=f"{AuditSettings.seed}"),
        "key": Arg("COLUMN"),
    }

    source: Path
    """Prediction file, run directory, or saved audit."""

    html: Path | None = None
    """Write the full report as one self-contained HTML page."""

    json: Path | None = None
    """Save the audit as JSON, for classgap compare or your own programs."""

    csv: Path | None = None
    """Write one row per class as CSV."""

    rank_by: Path | None = None
    """Rank the easy, medium and hard thirds by this model's class accuracies instead."""

    groups: Path | None = None
    """JSON file with additional groups of classes: {"group": ["class", ...], ...}."""

    confidence_level: float | None = None
    """Confidence level of all intervals."""

    seed: int | None = None
    """Seed of the bootstrap and of the embedding map."""

    key: str | None = None
    """Array or column with sample ids (strings or integers), for comparisons with other test sets."""

    def run(self) -> None:
        """Audit the source, write the files, and print the audit."""
        from classgap.report import print_audit, write_csv, write_html

        outputs = {"--html": self.html, "--json": self.json, "--csv": self.csv}
        check_outputs(outputs, [path for path in (self.source, self.rank_by, self.groups) if path is not None])
        choices = {name: value for name in ("confidence_level", "seed") if (value := getattr(self, name)) is not None}
        settings = AuditSettings(**choices)
        flags = [
            f"--{name.replace('_', '-')}"
            for name in ("groups", "rank_by", "confidence_level", "seed", "key")
            if getattr(self, name) is not None
        ]
        groups = None if self.groups is None else _read_groups(self.groups)
        with busy(f"Auditing {self.source}"):
            rank_by = None if self.rank_by is None else read_audit(self.rank_by)
            audit = read_audit(
                self.source, settings=settings, groups=groups, rank_by=rank_by, flags=flags, key=self.key
            )
            if self.json is not None:
                audit.save(self.json)
            if self.csv is not None:
                write_csv(audit, self.csv)
            if self.html is not None:
                write_html(audit, self.html)
        print_audit(audit)
        print_written(outputs)


def _read_groups(path: Path) -> dict[str, list[Any]]:
    groups = read_json(path)
    if not isinstance(groups, dict) or not all(isinstance(members, list) for members in groups.values()):
        raise ValueError(f'{path} must contain groups as {{"group": ["class", ...], ...}}.')
    return groups
