"""``classgap gate``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from classgap.audit.gate import gate
from classgap.audit.gate_rules import GateRules
from classgap.cli.compare_command import parse_renames
from classgap.cli.outputs import busy, check_outputs, print_written
from classgap.cli.parser import Arg, Command

BROKEN = 1  # exit code if a rule is broken


@dataclass(frozen=True)
class GateCommand(Command):
    """Check a new model against a baseline; exit code 1 if it is worse.

    BEFORE is the baseline and AFTER is the new model. Both can be saved audits,
    prediction files or run directories. All limits are in percentage points. A
    rule is broken only if a significance test shows that its limit is exceeded.
    A model that is truly within all limits fails with a probability of at most
    about 1 - confidence level, counting all rules and classes.

    Exit codes: 0 all rules hold, 1 a rule is broken, 2 invalid usage or input.

    Examples:
      classgap gate baseline.json predictions.npz --max-class-drop 3
      classgap gate baseline.json predictions.npz --rules gate.yaml
    """

    ARGS: ClassVar[Mapping[str, Arg]] = {
        "before": Arg("BEFORE", positional=True),
        "after": Arg("AFTER", positional=True),
        "max_class_drop": Arg("POINTS"),
        "max_group_drop": Arg("GROUP=POINTS", repeatable=True),
        "min_class_accuracy": Arg("PERCENT"),
        "max_gap": Arg("POINTS"),
        "confidence_level": Arg(default=f"as in --rules, or {GateRules.confidence_level:g}"),
        "key": Arg("COLUMN"),
        "rename": Arg("OLD=NEW", repeatable=True),
    }
    GROUPS: ClassVar[Mapping[str, Sequence[str]]] = {
        "rules": (
            "rules",
            "max_class_drop",
            "max_group_drop",
            "min_class_accuracy",
            "max_gap",
            "confidence_level",
        ),
    }

    before: Path
    """Baseline: a saved audit, a prediction file or a run directory."""

    after: Path
    """The new model."""

    rules: Path | None = None
    """YAML file with rules, named like the flags but with underscores; flags override the file."""

    max_class_drop: float | None = None
    """Largest drop allowed for any class."""

    max_group_drop: tuple[str, ...] = ()
    """Largest drop allowed in the mean accuracy of a group of classes (thirds are those of the baseline), or in
    "overall", the accuracy of all samples; can be repeated."""

    min_class_accuracy: float | None = None
    """Lowest accuracy allowed for any class."""

    max_gap: float | None = None
    """Largest gap allowed between the easy and the hard third."""

    confidence_level: float | None = None
    """Confidence level of the gate."""

    key: str | None = None
    """Array or column with sample ids (strings or integers) to match samples by."""

    rename: tuple[str, ...] = ()
    """Class OLD of the baseline is called NEW in the new model; can be repeated."""

    unpaired: bool = False
    """Compare test sets that have no samples in common."""

    seed: int = 0
    """Seed for the randomization tests."""

    json: Path | None = None
    """Save the result as JSON."""

    junit: Path | None = None
    """Write one test case per rule as JUnit XML."""

    markdown: Path | None = None
    """Write a Markdown summary, or append it if the file exists (for $GITHUB_STEP_SUMMARY)."""

    def run(self) -> int:
        """Check the rules, write the files, print the result, and return the exit code."""
        from classgap.report import print_gate, write_junit, write_markdown

        outputs = {"--json": self.json, "--junit": self.junit, "--markdown": self.markdown}
        check_outputs(outputs, [path for path in (self.before, self.after, self.rules) if path is not None])
        groups, rename = parse_group_limits(self.max_group_drop), parse_renames(self.rename)
        with busy(f"Checking {self.after}"):
            result = gate(
                self.before,
                self.after,
                rules=self.rules,
                max_class_drop=self.max_class_drop,
                max_group_drop=groups,
                min_class_accuracy=self.min_class_accuracy,
                max_gap=self.max_gap,
                confidence_level=self.confidence_level,
                key=self.key,
                rename=rename,
                seed=self.seed,
                unpaired=self.unpaired,
            )
            if self.json is not None:
                result.save(self.json)
            if self.junit is not None:
                write_junit(result, self.junit)
            if self.markdown is not None:
                write_markdown(result, self.markdown)
        with suppress(
            BrokenPipeError
        ):  # a reader that closes the pipe, as head does, must not turn a failure into success
            print_gate(result)
            print_written(outputs)
        return 0 if result.passed else BROKEN


def parse_group_limits(words: Sequence[str]) -> dict[str, float]:
    """Parse ``GROUP=POINTS`` pairs.

    Raises:
        ValueError: if a word is not such a pair, or a group is named twice.

    >>> parse_group_limits(["hard=0.5", "overall=0.2"])
    {'hard': 0.5, 'overall': 0.2}
    """
    found: dict[str, float] = {}
    for word in words:
        name, _, limit = word.rpartition("=")
        try:
            value = float(limit)
        except ValueError:
            name = ""
        if not name:
            raise ValueError(f"--max-group-drop must be GROUP=POINTS, for example hard=0.5; got {word!r}.")
        if name in found:
            raise ValueError(f"--max-group-drop names the group {name!r} twice: keep one.")
        found[name] = value
    return found
