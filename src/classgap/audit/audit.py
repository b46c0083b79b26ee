"""``Audit``: per-class evaluation of a classifier, which can be saved, shown and compared."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from torch import nn

from classgap.audit.class_tables import class_columns
from classgap.audit.figures import ClassResult
from classgap.audit.io.frames import (
    check_scores,
    check_target_column,
    counts_in_class_order,
    integers_as_names,
    names_from_columns,
    to_frame,
)
from classgap.audit.io.inference import collect_predictions
from classgap.audit.io.labels import check_class_names
from classgap.audit.io.predictions import Predictions
from classgap.audit.io.readers import read_predictions
from classgap.audit.metrics.confusion_matrix import confusion_matrix
from classgap.audit.rank_by import read_ranking
from classgap.audit.results import (
    STRICT,
    AuditSource,
    ConfusionPair,
    ErrorBudget,
    FeatureMap,
    FeatureSummary,
    Gap,
    GroupResult,
    Notice,
    OffsetChange,
    Overall,
)
from classgap.audit.samples import Samples
from classgap.audit.serialization import (
    check_consistency,
    check_schema,
    from_plain,
    name_file_in_errors,
    read_json,
    sample_limit,
    to_plain,
    write_json,
)
from classgap.audit.settings import AuditSettings
from classgap.audit.slice_results import SliceResult
from classgap.audit.superclass_results import SuperclassResult
from classgap.audit.valid_results import ValidResult

if TYPE_CHECKING:
    from classgap.audit.diff import AuditDiff
    from classgap.audit.sums import MetricSums

Groups = Mapping[str, Sequence[Any]] | Sequence[Any]
ClassNames = Sequence[Any] | Mapping[int, str]


@dataclass(frozen=True)
class Audit:
    """Per-class evaluation of one classifier on one test set.

    Attributes:
        name: name for titles, such as that of the file or run.
        overall: metrics over the entire test set.
        classes: one entry per class, in the order of the class indices.
        groups: name → group: "easy", "medium", "hard"; "head", "torso", "tail" if training counts are known; and the
            groups passed by the user.
        gap: measures of how unequal the class accuracies are.
        pairs: the most confused pairs of classes, worst first.
        error_budget: errors of all classes by the change that would remove them; ``None`` without errors.
        features: metrics of features and head over all classes; ``None`` if neither was given.
        map: t-SNE embedding of some classes' features, if features were given.
        rank_by: "own" if the classes are ranked by the accuracies of this model, "baseline" if by those of another.
        settings: the settings it was computed with.
        notices: warnings about the inputs and about metrics that could not be computed.
        samples: label and prediction of every sample, for paired comparisons.
        offset_change: change that class offsets would make; ``None`` without scores, or with one class.
        source: files that the predictions were read from.
        valid: the metrics with every valid label counted as correct; ``None`` unless valid labels were given.
        slices: slices in which errors of hard classes are concentrated; ``None`` unless slices were given.
        superclasses: mistakes within and outside superclasses; ``None`` unless these, or a hierarchy, were given.

    >>> predictions, targets = [0, 0, 1, 0, 2, 2], [0, 0, 1, 1, 2, 2]
    >>> audit = Audit.from_predictions(predictions=predictions, targets=targets, class_names=["cat", "dog", "fox"])
    >>> audit.gap.worst_name, audit.classes[1].accuracy, audit.overall.n_samples
    ('dog', 0.5, 6)
    """

    SCHEMA: ClassVar[int] = 3
    __pydantic_config__ = STRICT

    name: str
    overall: Overall
    classes: tuple[ClassResult, ...]
    groups: Mapping[str, GroupResult]
    gap: Gap
    pairs: tuple[ConfusionPair, ...]
    error_budget: ErrorBudget | None
    features: FeatureSummary | None
    map: FeatureMap | None
    rank_by: str
    settings: AuditSettings
    notices: tuple[Notice, ...]
    samples: Samples
    offset_change: OffsetChange | None = None
    source: AuditSource | None = None
    valid: ValidResult | None = None
    slices: SliceResult | None = None
    superclasses: SuperclassResult | None = None

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
        class_names: ClassNames | None = None,
        train_counts: Any = None,
        train_predictions: Any = None,
        train_targets: Any = None,
        train_features: Any = None,
        index: Any = None,
        name: str = "audit",
        groups: Groups | None = None,
        rank_by: RankBy | None = None,
        settings: AuditSettings | None = None,
        valid_labels: Any = None,
        slices: Any = None,
        superclasses: Groups | None = None,
        hierarchy: Mapping[Any, Any] | None = None,
    ) -> Audit:
        """Audit arrays, tensors, lists or DataFrames.

        Args:
            logits: scores (N, K). Rows of probabilities are recognized, with a notice. Alternatively, pass
                ``probabilities`` or ``predictions``.
            targets: true class indices or class names (N,).
            probabilities: probabilities (N, K); rows sum to 1.
            predictions: predicted class indices or class names (N,).
            features: penultimate features (N, D).
            head: layer from features to logits, its weight (K, D), or (weight, bias).
            class_names: K unique names, or a mapping from class index to name; by default the columns of a DataFrame
                of scores. Integer labels are matched with the columns if these are integers.
            train_counts: number of training samples of each class (K,). A Series is sorted by its index, class names or
                indices.
            train_predictions: predicted labels (M,) or scores (M, K) on the training set, to find over-fitted classes.
            train_targets: true labels of the training set (M,).
            train_features: penultimate features of the training set (M, D), to refit the head on.
            index: id of each sample (N,), such as its position in the test set or its file name: non-negative integers
                or strings. Duplicates are dropped; duplicates with different targets are an error.
            name: name for titles.
            groups: additional groups: name → classes, or one group name per class (superclasses).
            rank_by: rank the classes by the accuracies of another audit (or of a file or run directory), or by K
                numbers, instead of the model's own accuracies.
            settings: additional settings.
            valid_labels: classes that are right for each sample, which adds valid-label metrics: N lists of class
                indices or names, or a mapping from ``index`` to such lists. Samples with an empty list are left out.
            slices: metadata that may explain errors, such as the camera: a column (N,), or a mapping name → column.
            superclasses: superclass → classes, or one superclass per class; separates mistakes within and outside it.
            hierarchy: child → parent, or class → ancestors, nearest first; the parent is the default superclass.

        Raises:
            ValueError: if an argument is invalid.

        >>> audit = Audit.from_predictions([[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]], [0, 1, 1], class_names=["cat", "dog"])
        >>> audit
        <Audit 'audit': 2 classes, 3 samples, accuracy 0.667, hard third 0.500>
        >>> audit.overall.balanced_accuracy, audit.classes[1].accuracy, audit.gap.worst_name
        (0.75, 0.5, 'dog')
        """
        check_scores("logits", logits, targets)
        if class_names is None:
            class_names = columns = names_from_columns(logits, probabilities)
            check_target_column(targets, columns)
            targets, train_targets = integers_as_names(targets, columns), integers_as_names(train_targets, columns)
            train_predictions = integers_as_names(train_predictions, columns)
        else:
            class_names = check_class_names(class_names)
        data = Predictions.from_arrays(
            targets,
            logits=logits,
            probabilities=probabilities,
            predictions=predictions,
            features=features,
            head=head,
            class_names=class_names,
            train_counts=counts_in_class_order(train_counts, class_names),
            train_predictions=train_predictions,
            train_targets=train_targets,
            train_features=train_features,
            index=index,
            name=name,
            valid_labels=valid_labels,
            slices=slices,
        )
        return cls.from_checked(
            data, groups=groups, rank_by=rank_by, settings=settings, superclasses=superclasses, hierarchy=hierarchy
        )

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        groups: Groups | None = None,
        rank_by: RankBy | None = None,
        settings: AuditSettings | None = None,
        valid_labels: Any = None,
        slices: Sequence[str] = (),
        superclasses: Groups | None = None,
        hierarchy: Mapping[Any, Any] | None = None,
        targets: str | os.PathLike[str] | None = None,
        features: str | os.PathLike[str] | None = None,
        train_counts: str | os.PathLike[str] | None = None,
        key: str | None = None,
    ) -> Audit:
        """Audit a prediction file or a run directory; :mod:`classgap.audit.io.readers` describes the formats.

        Args:
            path: file, run directory, or a pattern such as ``preds-*.npz`` whose files are joined.
            groups: as in :meth:`from_predictions`.
            rank_by: as in :meth:`from_predictions`.
            settings: additional settings.
            valid_labels: sets, or a JSON file; :mod:`classgap.audit.io.label_sets` matches them with the samples.
            slices: names of arrays or columns of the file that divide the samples into slices.
            superclasses: as in :meth:`from_predictions`.
            hierarchy: as in :meth:`from_predictions`.
            targets: file with the true labels, if the predictions have none.
            features: ``.npy`` file with the features.
            train_counts: file with the number of training samples of each class.
            key: array or column of the file with sample ids, strings or integers, in place of ``index``.

        Raises:
            ValueError: if a file cannot be read, with the path in the message.
        """
        data = read_predictions(
            path,
            valid_labels=valid_labels,
            slices=slices,
            targets=targets,
            features=features,
            train_counts=train_counts,
            key=key,
        )
        if key is not None and isinstance(rank_by, str | os.PathLike):
            from classgap.audit.io.sources import read_audit  # imports this module

            rank_by = read_audit(rank_by, key=key)
        return cls.from_checked(
            data, groups=groups, rank_by=rank_by, settings=settings, superclasses=superclasses, hierarchy=hierarchy
        )

    @classmethod
    def from_model(
        cls,
        model: nn.Module,
        loader: Iterable[Any],
        *,
        class_names: ClassNames | None = None,
        train_counts: Any = None,
        name: str = "audit",
        groups: Groups | None = None,
        rank_by: RankBy | None = None,
        settings: AuditSettings | None = None,
    ) -> Audit:
        """Run a model over a loader in evaluation mode and audit its predictions.

        With several processes, each returns the audit of the entire test set, with every sample counted once.

        Args:
            model: returns logits (B, K), an object or mapping with "logits", or a tuple that contains them. Features
                and head are found as in `FeatureTap`.
            loader: batches ``(inputs, targets)``, ``(inputs, targets, index)``, or mappings with "labels" ("label",
                "targets", "target"), optionally "index", and the model's keyword arguments. ``index`` is the position
                of each sample in the test set.
            class_names: K unique names, or a mapping from index to name; by default ``model.config.id2label`` of a
                Hugging Face model.
            train_counts: number of training samples of each class (K,).
            name: name for titles.
            groups: as in :meth:`from_predictions`.
            rank_by: as in :meth:`from_predictions`.
            settings: additional settings.

        Raises:
            ValueError: if an argument is invalid.

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
        rank_by: RankBy | None = None,
        settings: AuditSettings | None = None,
        superclasses: Groups | None = None,
        hierarchy: Mapping[Any, Any] | None = None,
        sums: MetricSums | None = None,
    ) -> Audit:
        """Audit predictions that are already checked, or labels with the sums of an :class:`AuditAccumulator`."""
        from classgap.audit.build import build_audit  # imports this module

        if settings is not None and not isinstance(settings, AuditSettings):
            raise ValueError(
                f"settings must be an AuditSettings, got a {type(settings).__name__}: pass cg.AuditSettings(seed=1)."
            )
        ranking_K, baseline_right_N = read_ranking(rank_by, data)
        return build_audit(
            data,
            settings or AuditSettings(),
            ranking_K=ranking_K,
            baseline_right_N=baseline_right_N if sums is None else None,
            groups=groups,
            superclasses=superclasses,
            hierarchy=hierarchy,
            sums=sums,
        )

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of all classes, including unseen ones, in the order of the class indices."""
        return tuple(entry.name for entry in self.classes)

    @property
    def has_samples(self) -> bool:
        """Whether per-sample results are known; an :class:`AuditAccumulator` only counts samples."""
        return all(notice.code != "accumulated" for notice in self.notices)

    @property
    def confidence_level(self) -> float:
        """Level of all intervals."""
        return self.settings.confidence_level

    def confusion_matrix(self, normalize: str | None = None, *, sparse: bool | None = None) -> Any:
        """Return the confusion matrix (K, K): rows are true classes, columns predicted classes, as in scikit-learn.

        Args:
            normalize: ``None`` for counts; "true", "pred" or "all" to divide by the sums of the rows, of the columns
                or of the matrix.
            sparse: ``True`` for a SciPy CSR array, ``False`` for a NumPy array; ``None`` is sparse above 1000 classes.

        >>> Audit.from_predictions(targets=[0, 0, 1], predictions=[0, 1, 1]).confusion_matrix().tolist()
        [[1, 1], [0, 1]]
        """
        samples = self.samples
        return confusion_matrix(
            samples.targets, samples.predictions, len(self.classes), normalize=normalize, sparse=sparse
        )

    def to_pandas(self) -> Any:
        """Return a DataFrame with one row per class, indexed by class name; columns are those of the CSV file.

        Raises:
            ImportError: if pandas is not installed.
        """
        return to_frame(*class_columns(self))

    def __repr__(self) -> str:
        hard = self.groups["hard"].accuracy if "hard" in self.groups else None
        return (
            f"<Audit {self.name!r}: {len(self.classes)} classes, {self.overall.n_samples} samples, accuracy "
            f"{self.overall.accuracy:.3f}{'' if hard is None else f', hard third {hard:.3f}'}>"
        )

    def __str__(self) -> str:
        from classgap import report

        return report.audit_text(self)

    def _repr_html_(self) -> str:
        from classgap import report

        return report.audit_fragment(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of ``audit.json``."""
        return {"schema": self.SCHEMA, **to_plain(self)}

    @classmethod
    def from_dict(cls, data: Any) -> Audit:
        """Read the output of :meth:`to_dict`.

        Raises:
            ValueError: if ``data`` is not an audit of this schema, or its parts are inconsistent.
        """
        check_schema(data, cls.SCHEMA)
        audit = from_plain(cls, {key: value for key, value in data.items() if key != "schema"}, sample_limit(data))
        check_consistency(audit)
        return audit

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the audit as JSON, atomically."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Audit:
        """Read an audit written by :meth:`save`.

        Raises:
            ValueError: if the file does not exist, is damaged or is not an audit.
        """
        with name_file_in_errors(path):
            if os.path.exists(path) and not os.path.isfile(path):
                raise ValueError("a saved audit must be a file, not a directory, a pipe or a device.")
            return cls.from_dict(read_json(path))

    def diff(self, after: Audit) -> AuditDiff:
        """Compare this audit with ``after``; :func:`classgap.compare` also takes paths and several runs.

        Raises:
            ValueError: if the two are not of the same classes and test samples.
        """
        from classgap.audit.diff import AuditDiff  # imports this module

        return AuditDiff.from_audits(self, after)

    def to_html(self, path: str | os.PathLike[str], *, thumbnails: Any = None) -> None:
        """Write the audit as a self-contained HTML page.

        Args:
            path: destination, replaced atomically.
            thumbnails: test samples by number, ``thumbnails[i]``; the page shows misclassified ones: a
                dataset, or a list of image paths, arrays or texts. They add at most 1 MB.
        """
        from classgap import report

        report.write_html(self, path, thumbnails=thumbnails)


Source = Audit | str | os.PathLike[str]
RankBy = Source | Sequence[float]
