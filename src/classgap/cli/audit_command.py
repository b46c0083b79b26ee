"""``classgap audit``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from classgap.audit.io.sources import read_audit
from classgap.audit.serialization import read_json
from classgap.audit.settings import AuditSettings
from classgap.cli.outputs import busy, check_outputs, tell_written


@dataclass(frozen=True)
class AuditCommand:
    """Show which classes a classifier fails, how sure that is, and why.

    SOURCE is what any classifier predicted, in one of these forms:
      .npz, .safetensors   arrays "targets" and "logits" (or "probabilities", or
                           "predictions"); where known also "features",
                           "head_weight", "head_bias", "class_names",
                           "train_counts", "train_predictions", "train_targets"
      .csv                 columns "target" and "prediction", or "target" and
                           one column of scores a class
      a run directory, or an audit saved with --json

    Example:
      classgap audit predictions.npz --html report.html
    """

    source: Positional[Annotated[Path, arg(metavar="SOURCE", help_behavior_hint="")]]
    """Prediction file, run directory, or saved audit."""

    html: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write everything as one HTML page that needs no network."""

    json: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Save the audit, to compare it later or read it in a program."""

    csv: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write one line a class, for a spreadsheet."""

    rank_by: Annotated[Path | None, arg(metavar="SOURCE", help_behavior_hint="")] = None
    """Rank the easy, medium and hard thirds by this model's accuracies instead of its own."""

    groups: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """JSON file of further groups, such as superclasses: {"group": ["class", ...], ...}."""

    confidence_level: Annotated[
        float | None, arg(metavar="FLOAT", help_behavior_hint=f"(default: {AuditSettings.confidence_level:g})")
    ] = None
    """Level of all intervals."""

    seed: Annotated[int | None, arg(metavar="INT", help_behavior_hint=f"(default: {AuditSettings.seed})")] = None
    """Seed of the bootstrap and of the map."""

    def run(self) -> None:
        """Audit, write, print."""
        from classgap.report import print_audit, write_csv, write_html

        outputs = {"--html": self.html, "--json": self.json, "--csv": self.csv}
        check_outputs(outputs, [path for path in (self.source, self.rank_by, self.groups) if path is not None])
        choices = {name: value for name in ("confidence_level", "seed") if (value := getattr(self, name)) is not None}
        settings = AuditSettings(**choices)
        flags = [
            f"--{name.replace('_', '-')}"
            for name in ("groups", "rank_by", "confidence_level", "seed")
            if getattr(self, name) is not None
        ]
        groups = None if self.groups is None else _read_groups(self.groups)
        with busy(f"Auditing {self.source}"):
            rank_by = None if self.rank_by is None else read_audit(self.rank_by)
            audit = read_audit(self.source, settings=settings, groups=groups, rank_by=rank_by, flags=flags)
            if self.json is not None:
                audit.save(self.json)
            if self.csv is not None:
                write_csv(audit, self.csv)
            if self.html is not None:
                write_html(audit, self.html)
        print_audit(audit)
        tell_written(outputs)


def _read_groups(path: Path) -> dict[str, list[Any]]:
    groups = read_json(path)
    if not isinstance(groups, dict) or not all(isinstance(members, list) for members in groups.values()):
        raise ValueError(f'{path} must hold groups as {{"group": ["class", ...], ...}}; it holds something else.')
    return groups
