"""``classgap audit``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from classgap.audit.io.hierarchy import read_hierarchy, read_superclasses
from classgap.audit.io.shards import find_shards
from classgap.audit.io.sources import read_audit
from classgap.audit.serialization import read_json
from classgap.audit.settings import AuditSettings
from classgap.cli.invocation import command_line
from classgap.cli.outputs import busy, check_outputs, print_written
from classgap.cli.parser import Arg, Command

LABEL_FLAGS = ("valid_labels", "slices", "superclasses", "hierarchy", "key")
COMPANIONS = ("targets", "features", "train_counts")  # inputs that may be in files of their own


@dataclass(frozen=True)
class AuditCommand(Command):
    """Find the classes a classifier fails on, and why.

    SOURCE holds predictions from any classifier:
      .npz, .safetensors   arrays "targets" and "logits" (or "probabilities", or
                           "predictions"); optional: "features", "head_weight",
                           "head_bias", "class_names", "train_counts",
                           "train_predictions", "train_targets",
                           "train_features", "valid_labels" with
                           "valid_labels_offsets", "filenames", "texts"
      .csv                 columns "target" and "prediction", or "target" and
                           one column of scores per class; optional:
                           "index", "valid_labels" ("a|b"), "filename", "text";
                           files from pandas, Hugging Face and timm's
                           inference.py work as they are
      .parquet             columns "target" and "prediction", or "target" and a
                           list column "logits" or "probabilities"
      .npy                 scores or predicted labels, with --targets
      directory            a run of classgap train, or .npy files named like the
                           arrays above
      'preds-*.npz'        several files, concatenated
      .json                an audit saved with --json

    Example:
      classgap audit predictions.npz --html report.html
    """

    ARGS: ClassVar[Mapping[str, Arg]] = {
        "source": Arg("SOURCE", positional=True),
        "rank_by": Arg("SOURCE"),
        "confidence_level": Arg(default=f"{AuditSettings.confidence_level:g}"),
        "seed": Arg(default=f"{AuditSettings.seed}"),
        "slices": Arg("COLUMN"),
        "images": Arg("FOLDER"),
        "map": Arg("CLASS"),
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
    """Split classes into thirds by the class accuracies of another model."""

    groups: Path | None = None
    """JSON file with additional groups of classes: {"group": ["class", ...], ...}."""

    confidence_level: float | None = None
    """Confidence level of all intervals."""

    seed: int | None = None
    """Seed for the bootstrap and the embedding map."""

    valid_labels: Path | None = None
    """JSON file with all valid labels of each sample: [["class", ...], ...] or {"index": ["class", ...], ...}. Adds
    metrics that count any valid label as correct."""

    slices: tuple[str, ...] = ()
    """Metadata columns or arrays of the source, such as camera or site. Tests whether the errors of a hard class
    concentrate in one value (slice)."""

    superclasses: Path | None = None
    """JSON file with superclasses: {"superclass": ["class", ...], ...}. Separates mistakes within a superclass from
    mistakes outside it."""

    hierarchy: Path | None = None
    """JSON file with a hierarchy of the classes: {"child": "parent", ...}, or all ancestors of each class, nearest
    first."""

    targets: Path | None = None
    """True labels, if SOURCE has none: .npy, .txt, .json or .csv."""

    features: Path | None = None
    """Penultimate features: .npy, in the order of the samples."""

    train_counts: Path | None = None
    """Training samples per class: in class order (.npy, .txt), or by class name (.csv, .json)."""

    name: str | None = None
    """Name of the audit in titles; by default the name of the file or run."""

    map: tuple[str, ...] = ()
    """Classes to show in the embedding map; by default the worst classes and the classes they are confused with."""

    check_labels: bool = False
    """Also list test samples that may be mislabeled."""

    thumbnails: bool = False
    """Show misclassified test samples on the HTML page, as images or text; adds at most 1 MB."""

    images: Path | None = None
    """Folder of the images named in the prediction file; for --thumbnails."""

    key: str | None = None
    """Array or column with sample ids (strings or integers), for comparisons with other test sets."""

    def run(self) -> None:
        """Audit the source, write the files, and print the audit."""
        from classgap.report import print_audit, print_label_checks, write_csv, write_html
        from classgap.report.label_checks import label_checks

        self._check_flags()
        outputs = {"--html": self.html, "--json": self.json, "--csv": self.csv}
        companions = {name: path for name in COMPANIONS if (path := getattr(self, name)) is not None}
        sources = find_shards(self.source) or [self.source]
        inputs = (*sources, self.rank_by, self.groups, self.valid_labels, self.superclasses, self.hierarchy)
        check_outputs(outputs, [path for path in (*inputs, *companions.values()) if path is not None])
        choices = {name: value for name in ("confidence_level", "seed") if (value := getattr(self, name)) is not None}
        if self.map:
            choices["map"] = self.map
        settings = AuditSettings(**choices)
        flags = [
            f"--{name.replace('_', '-')}"
            for name in ("groups", "rank_by", "confidence_level", "seed", "map", "images", *LABEL_FLAGS, *COMPANIONS)
            if getattr(self, name) not in (None, ())
        ]
        groups = None if self.groups is None else _read_groups(self.groups)
        with busy(f"Auditing {self.source}"):
            rank_by = None if self.rank_by is None else read_audit(self.rank_by, key=self.key)
            audit = read_audit(
                self.source,
                settings=settings,
                groups=groups,
                rank_by=rank_by,
                flags=flags,
                valid_labels=self.valid_labels,
                slices=self.slices,
                superclasses=None if self.superclasses is None else read_superclasses(self.superclasses),
                hierarchy=None if self.hierarchy is None else read_hierarchy(self.hierarchy),
                key=self.key,
                **companions,
            )
            if self.name is not None:
                audit = replace(audit, name=self.name)
            if self.map and audit.map is None:
                raise ValueError(
                    "--map needs features of at least 10 samples of these classes, which the source lacks."
                )
            if self.check_labels:
                label_checks(audit)  # raises before anything is written
            samples = None
            if self.thumbnails:
                from classgap.cli.thumbnail_samples import find_samples

                samples = find_samples(audit, self.images)
            if self.html is not None:  # first: it fails if no thumbnail can be read, and then nothing is written
                write_html(audit, self.html, thumbnails=samples, command=command_line())
            if self.json is not None:
                audit.save(self.json)
            if self.csv is not None:
                write_csv(audit, self.csv)
        print_audit(audit)
        if self.check_labels:
            print_label_checks(audit)
        print_written(outputs)

    def _check_flags(self) -> None:
        if self.thumbnails and self.html is None:
            raise ValueError("--thumbnails needs --html FILE: pictures are shown on the page only.")
        if self.images is not None and not self.thumbnails:
            raise ValueError("--images needs --thumbnails: without it, the page shows no pictures.")
        if self.name is not None and not self.name.strip():
            raise ValueError("--name must not be empty.")


def _read_groups(path: Path) -> dict[str, list[Any]]:
    groups = read_json(path)
    if not isinstance(groups, dict) or not all(isinstance(members, list) for members in groups.values()):
        raise ValueError(f'{path} must contain groups as {{"group": ["class", ...], ...}}.')
    return groups
