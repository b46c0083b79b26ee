"""``Audit``: what a classifier does to each of its classes, as one record that can be saved, shown and compared."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from classgap.audit._types import Floats
from classgap.audit.consistency import check_loaded
from classgap.audit.io.inference import collect_predictions
from classgap.audit.io.predictions import Predictions
from classgap.audit.io.readers import read_predictions
from classgap.audit.results import (
    ClassResult,
    ConfusionPair,
    FeatureMap,
    FeatureSummary,
    Gap,
    GroupResult,
    Overall,
)
from classgap.audit.samples import Samples
from classgap.audit.serialization import from_plain, naming, read_json, to_plain, write_json
from classgap.audit.settings import AuditSettings

if TYPE_CHECKING:
    from classgap.audit.diff import AuditDiff

Groups = Mapping[str, Sequence[Any]] | Sequence[Any]


@dataclass(frozen=True)
class Audit:
    """The numbers of one classifier on one test set.

    Attributes:
        name: what was audited, for titles: a file's or a run's name.
        overall: the whole test set.
        classes: one entry a class, in the order of the class indices.
        groups: by name: "easy", "medium", "hard"; "head", "torso", "tail" if training counts are known; given ones.
        gap: how unevenly the classes do.
        pairs: the most confused pairs of classes, worst first.
        features: figures of features and head together; ``None`` if neither was given.
        map: a 2-D picture of some classes' features, if there are features.
        rank_by: "own" if the thirds rank this model's accuracies, "baseline" if they rank given ones.
        level: of all intervals, 0.95 unless set otherwise.
        notes: figure → how it was computed, in one or two sentences.
        remarks: what was left out and why, and what to beware of.
        samples: every sample's label and prediction, for paired comparison.
    """

    SCHEMA: ClassVar[int] = 1

    name: str
    overall: Overall
    classes: tuple[ClassResult, ...]
    groups: Mapping[str, GroupResult]
    gap: Gap
    pairs: tuple[ConfusionPair, ...]
    features: FeatureSummary | None
    map: FeatureMap | None
    rank_by: str
    confidence_level: float
    notes: Mapping[str, str]
    remarks: tuple[str, ...]
    samples: Samples

    @classmethod
    def from_predictions(
        cls,
        logits: Any = None,
        targets: Any = None,
        *,
        probabilities: Any = None,
        predictions: Any = None,
        features: Any = None,
        head: Any = None,
        class_names: Sequence[Any] | None = None,
        train_counts: Any = None,
        train_predictions: Any = None,
        train_targets: Any = None,
        index: Any = None,
        name: str = "audit",
        groups: Groups | None = None,
        rank_by: Audit | Sequence[float] | None = None,
        settings: AuditSettings | None = None,
    ) -> Audit:
        """Audit arrays or tensors.

        Args:
            logits: (N, K); or ``probabilities`` or ``predictions`` in its place.
            targets: (N,), class numbers or class names.
            probabilities: (N, K), rows that sum to 1.
            predictions: (N,), predicted class numbers or names.
            features: (N, D), the penultimate features.
            head: the layer from features to logits, its weight (K, D), or (weight, bias).
            class_names: K different names.
            train_counts: (K,), training samples of each class.
            train_predictions: labels (M,) or scores (M, K) on the training set, to find over-fitted classes.
            train_targets: (M,), the labels that go with them.
            index: (N,), each sample's number in the test set; repeats are dropped, and refused if targets differ.
            name: for titles.
            groups: further groups: name → classes, or one group name for each class (superclasses).
            ranking: rank the thirds by another audit's accuracies, or by these numbers (K,), instead of its own.
            settings: further choices.

        Raises:
            ValueError: in one sentence, if anything does not fit.

        >>> audit = Audit.from_predictions([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0, 1, 1], class_names=["cat", "dog"])
        >>> audit
        <Audit 'audit': 2 classes, 3 samples, accuracy 0.667, hard third 0.500>
        >>> audit.overall.balanced_accuracy, audit.classes[1].accuracy, audit.gap.worst_name
        (0.75, 0.5, 'dog')
        """
        data = Predictions.from_arrays(
            targets,
            logits=logits,
            probabilities=probabilities,
            predictions=predictions,
            features=features,
            head=head,
            class_names=class_names,
            train_counts=train_counts,
            train_predictions=train_predictions,
            train_targets=train_targets,
            index=index,
            name=name,
        )
        return cls.from_checked(data, groups=groups, rank_by=rank_by, settings=settings)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        groups: Groups | None = None,
        rank_by: Audit | Sequence[float] | None = None,
        settings: AuditSettings | None = None,
    ) -> Audit:
        """Audit a prediction file or a run directory; see :mod:`classgap.audit.io.readers` for what they hold."""
        return cls.from_checked(read_predictions(path), groups=groups, rank_by=rank_by, settings=settings)

    @classmethod
    def from_model(
        cls,
        model: nn.Module,
        loader: Iterable[Any],
        *,
        class_names: Sequence[Any] | None = None,
        train_counts: Any = None,
        name: str = "audit",
        groups: Groups | None = None,
        rank_by: Audit | Sequence[float] | None = None,
        settings: AuditSettings | None = None,
    ) -> Audit:
        """Run a model over a loader, in evaluation mode, and audit what it predicts.

        With several processes every one of them gets the audit of the whole test set, every sample counted once.

        Args:
            model: returns logits (B, K), an object or mapping with "logits", or a tuple with them; features and head
                are found as `FeatureTap` finds them.
            loader: batches ``(inputs, targets)``, ``(inputs, targets, index)``, or mappings with "labels" ("label",
                "targets", "target"), perhaps "index", and the model's keyword arguments. ``index`` is each sample's
                number in the test set.
            class_names: K different names.
            train_counts: (K,), training samples of each class.
            name: for titles.
            groups: as in :meth:`from_predictions`.
            ranking: as in :meth:`from_predictions`.
            settings: further choices.

        Raises:
            ValueError: in one sentence, if anything does not fit.

        >>> model = nn.Linear(2, 2)
        >>> batches = [{"input": model.weight.new_ones(3, 2), "labels": [0, 1, 1]}]
        >>> Audit.from_model(model, batches).overall.n_samples
        3
        """
        data = collect_predictions(model, loader, class_names=class_names, train_counts=train_counts, name=name)
        return cls.from_checked(data, groups=groups, rank_by=rank_by, settings=settings)

    @classmethod
    def from_checked(
        cls,
        data: Predictions,
        *,
        groups: Groups | None = None,
        rank_by: Audit | Sequence[float] | None = None,
        settings: AuditSettings | None = None,
    ) -> Audit:
        """Audit predictions that are checked already."""
        from classgap.audit.build import build_audit  # it makes an Audit, so it imports this module

        ranking_K = None if rank_by is None else _rank_by(rank_by, data.class_names)
        return build_audit(
            data,
            settings or AuditSettings(),
            ranking_K=ranking_K,
            baseline_right_N=_right_of(rank_by, data) if isinstance(rank_by, Audit) else None,
            groups=groups,
        )

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of all classes, unseen ones included, in the order of the class indices."""
        return tuple(entry.name for entry in self.classes)

    def __repr__(self) -> str:
        hard = self.groups["hard"].accuracy if "hard" in self.groups else None
        return (
            f"<Audit {self.name!r}: {len(self.classes)} classes, {self.overall.n_samples} samples, accuracy "
            f"{self.overall.accuracy:.3f}{'' if hard is None else f', hard third {hard:.3f}'}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """The audit as ``audit.json`` holds it."""
        return {"schema": self.SCHEMA, **to_plain(self)}

    @classmethod
    def from_dict(cls, data: Any) -> Audit:
        """The reverse of :meth:`to_dict`.

        Raises:
            ValueError: if ``data`` is not an audit of this schema, or its parts do not belong together.
        """
        if isinstance(data, dict) and ("before_name" in data or "comparisons" in data):
            raise ValueError(
                "this is a saved comparison, not an audit: give the sources that were compared; in Python, "
                "AuditDiff.load reads a comparison of two."
            )
        schema = data.get("schema") if isinstance(data, dict) else None
        if schema != cls.SCHEMA:
            raise ValueError(
                f"not an audit that this version reads: schema is {schema!r}, {cls.SCHEMA} is needed; make the audit "
                "again from its predictions."
            )
        audit = from_plain(cls, data)
        check_loaded(audit)
        return audit

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the audit as JSON; the file is replaced whole or not at all."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Audit:
        """Read what :meth:`save` wrote.

        Raises:
            ValueError: if the file is missing, damaged or not an audit.
        """
        with naming(path):
            return cls.from_dict(read_json(path))

    def diff(self, after: Audit) -> AuditDiff:
        """What changed from this audit to ``after``; :meth:`.AuditDiff.from_audits` compares several seeds.

        Raises:
            ValueError: with the reason, if the two are not of the same classes and test samples.
        """
        from classgap.audit.diff import AuditDiff  # it compares Audits, so it imports this module

        return AuditDiff.from_audits(self, after)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the audit as one self-contained HTML page."""
        from classgap import report  # an upper room, so only here

        report.write_html(self, path)


def _rank_by(rank_by: Audit | Sequence[float], names: tuple[str, ...]) -> Floats:
    if isinstance(rank_by, Audit):
        if rank_by.class_names != names:
            raise ValueError("rank_by must be an audit of the same classes in the same order; its class names differ.")
        return np.array([np.nan if entry.accuracy is None else entry.accuracy for entry in rank_by.classes])
    try:
        numbers = np.asarray(rank_by, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("rank_by must be an audit or a number for each class; got something else.") from None
    if numbers.shape != (len(names),):
        raise ValueError(f"rank_by must have {len(names)} numbers, one a class; got shape {numbers.shape}.")
    return numbers


def _right_of(baseline: Audit, data: Predictions) -> NDArray[np.bool_] | None:
    """Which samples the baseline got right, if they are these; nothing if they are others."""
    theirs, index = baseline.samples, data.index_N
    other_numbers = theirs.index is not None and index is not None and not np.array_equal(theirs.index, index)
    return None if other_numbers or not np.array_equal(theirs.targets, data.targets_N) else theirs.correct
