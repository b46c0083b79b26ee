"""The inputs of an audit, validated once so that later steps need no checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from classgap.audit._types import Floats, Integers
from classgap.audit.io.arrays import check_range, in_range, to_column, to_matrix, to_tensor, two_dimensional
from classgap.audit.io.label_sets import LabelSets, check_label_sets
from classgap.audit.io.labels import BINARY, check_class_names, encode, infer_class_names, is_text
from classgap.audit.io.probabilities import (
    are_probabilities,
    check_probabilities,
    count_zero_margins,
    log_probabilities,
    normalize,
)
from classgap.audit.io.rows import (
    Matrix,
    as_tensor,
    convert_rows,
    keep_freed_memory,
    predict_labels,
    take_rows,
)
from classgap.audit.io.sample_ids import check_duplicates, dropped_duplicates, encode_ids, hashed_ids
from classgap.audit.io.slice_columns import SliceColumn, check_slices
from classgap.audit.io.training_inputs import check_train_counts, check_train_features, check_train_labels
from classgap.audit.metrics.scores import SampleScores, score_samples
from classgap.audit.results import AuditSource, Notice

MAX_CLASSES = 1_000_000  # of labels without scores: a damaged label would need a name for every number below it


@dataclass(frozen=True)
class Predictions:
    """Validated inputs of an audit; build them with :meth:`from_arrays`.

    Attributes:
        targets_N: true class of each sample.
        predictions_N: predicted class of each sample.
        class_names: K names.
        logits_NK: logits, or logarithms of probabilities; ``None`` if only predicted labels were given.
        features_ND: penultimate features.
        weight_KD: weight of the head.
        bias_K: bias of the head.
        train_counts_K: number of training samples of each class.
        train_targets_M: true class of each training sample.
        train_predictions_M: predicted class of each training sample.
        train_features_MD: penultimate features of the training samples.
        train_losses_E: mean training loss of each epoch, if the predictions are those of a run.
        learning_rates_E: learning rate of each epoch.
        index_N: position of each sample in the test set, or the code of its id; samples are sorted by it.
        ids: code → id, for ids that are strings and not integers.
        logit_margins: whether logit margins are defined; they are not if a probability in one is exactly 0.
        name: title of the audit.
        notices: warnings about the inputs.
        source: files that the inputs were read from.
        valid_labels: set of valid classes of each sample.
        slices: metadata columns by name.
        scores: margins, confidence and rank of each sample, if the logits were scored while they were checked.

    >>> logits = [[2.0, 1.0], [0.0, 3.0], [1.0, 0.5]]
    >>> data = Predictions.from_arrays([0, 1, 1], logits=logits, class_names=["cat", "dog"])
    >>> data.predictions_N.tolist(), data.class_names
    ([0, 1, 0], ('cat', 'dog'))
    """

    targets_N: Integers
    predictions_N: Integers
    class_names: tuple[str, ...]
    logits_NK: Matrix | None = None
    features_ND: Matrix | None = None
    weight_KD: Tensor | None = None
    bias_K: Tensor | None = None
    train_counts_K: Floats | None = None
    train_targets_M: Integers | None = None
    train_predictions_M: Integers | None = None
    train_features_MD: Matrix | None = None
    train_losses_E: Floats | None = None
    learning_rates_E: Floats | None = None
    index_N: Integers | None = None
    ids: Mapping[int, str] = field(default_factory=dict)
    logit_margins: bool = True
    name: str = "audit"
    notices: tuple[Notice, ...] = ()
    source: AuditSource | None = None
    valid_labels: LabelSets | None = None
    slices: Mapping[str, SliceColumn] = field(default_factory=dict)
    scores: SampleScores | None = None

    @classmethod
    def from_arrays(
        cls,
        targets: Any,
        *,
        logits: Any = None,
        probabilities: Any = None,
        predictions: Any = None,
        features: Any = None,
        head: Any = None,
        class_names: Sequence[Any] | Mapping[int, str] | None = None,
        train_counts: Any = None,
        train_predictions: Any = None,
        train_targets: Any = None,
        train_features: Any = None,
        index: Any = None,
        name: str = "audit",
        valid_labels: Any = None,
        slices: Any = None,
    ) -> Predictions:
        """Validate and convert arrays, tensors or lists.

        Args:
            targets: (N,), class indices or class names.
            logits: (N, K). Pass exactly one of ``logits``, ``probabilities`` and ``predictions``.
            probabilities: (N, K), each row sums to 1.
            predictions: (N,), predicted class indices or class names.
            features: (N, D), penultimate features.
            head: the layer that maps features to logits (any object with ``weight`` and optionally ``bias``), its
                weight (K, D), or a tuple (weight, bias).
            class_names: K unique names.
            train_counts: (K,), number of training samples of each class.
            train_predictions: predictions on the training set, labels (M,) or scores (M, K).
            train_targets: (M,), true labels of the training set. ``train_counts`` defaults to their counts.
            train_features: (M, D), penultimate features of the training set, to refit the head on.
            index: (N,), id of each sample: non-negative integers, such as its position in the test set, or strings.
                Samples are sorted by it. Repeated ids, such as the padding of a distributed sampler, are dropped with a
                notice.
            name: title of the audit.
            valid_labels: classes that are right for each sample: lists of class indices or names in the order of the
                samples, or a mapping from ``index`` to such lists; see :mod:`classgap.audit.io.label_sets`.
            slices: (N,), a category per sample, or a mapping from name to such a column.

        Raises:
            ValueError: if an argument is invalid, with a message of one sentence.

        >>> Predictions.from_arrays([0, 1, 1], logits=[[2.0, 1.0], [0.0, 3.0], [1.0, 0.0]]).predictions_N.tolist()
        [0, 1, 0]
        """
        keep_freed_memory()
        given = {"logits": logits, "probabilities": probabilities, "predictions": predictions}
        kind = _only_kind(given)
        if targets is None:
            raise ValueError("targets is required: pass the true label of each sample.")
        scores = None if predictions is not None else two_dimensional(kind, given[kind])
        weight, bias = _head(head)
        if train_counts is not None:
            train_counts = to_column("train_counts", train_counts)
        if scores is not None and scores.shape[1] == 1 and _has_two_classes(class_names, targets):
            raise ValueError(f"{kind} must have one column per class, got 1 column for 2 classes: {BINARY}.")
        names = _names(class_names, _num_classes(scores, weight, train_counts), targets, predictions)
        targets_N = encode("targets", targets, names)
        given_N: Any = encode("predictions", predictions, names) if scores is None else scores
        features_ND = None if features is None else to_matrix("features", features)
        index_N = None if index is None else _indices(index)
        _check_lengths(targets_N, {kind: given_N, "features": features_ND, "index": index_N})
        notices: list[Notice] = []
        zeros, samples = 0, None
        if scores is None:
            labels = given_N
        elif kind == "probabilities" or are_probabilities(scores):
            check_range(kind, scores)
            labels = predict_labels(scores)
            if kind == "logits":
                kind = "probabilities"
                notices.append(Notice("logits-are-probabilities"))
            else:
                check_probabilities(scores)
        else:
            samples = score_samples(scores, targets_N)  # logits are checked in the pass that scores them
            if not in_range(*samples.limits):
                check_range(kind, scores)
            labels = samples.predictions_N
        if scores is not None and kind == "probabilities":
            zeros = count_zero_margins(scores, targets_N)
            scores = convert_rows(scores, lambda block: log_probabilities(normalize(block)), _working_dtype(scores))
            if zeros:
                notices.append(Notice("zero-probabilities", {"zeros": zeros, "samples": len(targets_N)}))
        _check_head(weight, bias, len(names), features_ND)
        train_labels, train_truth = check_train_labels(train_predictions, train_targets, names)
        train_features_MD = check_train_features(train_features, train_truth, features_ND)
        sets = None
        if valid_labels is not None:
            sets, found = check_label_sets(valid_labels, names, targets_N, index_N, by_name=is_text(targets))
            notices.extend(found)
        checked = cls(
            targets_N=targets_N,
            predictions_N=labels,
            class_names=names,
            logits_NK=scores,
            features_ND=features_ND,
            weight_KD=weight,
            bias_K=bias,
            train_counts_K=check_train_counts(train_counts, train_truth, names),
            train_targets_M=train_truth,
            train_predictions_M=train_labels,
            train_features_MD=train_features_MD,
            ids=hashed_ids(index, index_N) if index_N is not None and is_text(index) else {},
            logit_margins=not zeros,
            name=name,
            notices=tuple(notices),
            valid_labels=sets,
            slices={} if slices is None else check_slices(slices, len(targets_N)),
            scores=samples,
        )
        return checked if index_N is None else checked._each_once(index_N)

    @property
    def num_classes(self) -> int:
        """K, the number of classes."""
        return len(self.class_names)

    def __len__(self) -> int:
        return len(self.targets_N)

    def scored(self) -> Predictions:
        """Return the predictions with ``scores``, unless only predicted labels are known."""
        if self.logits_NK is None or self.scores is not None:
            return self
        return replace(self, scores=score_samples(self.logits_NK, self.targets_N))

    def _each_once(self, index: Integers) -> Predictions:
        """Sort samples by position and keep the first of each."""
        numbers, first = np.unique(index, return_index=True)
        if len(numbers) == len(index) and (np.diff(index) > 0).all():
            return replace(self, index_N=index)
        check_duplicates(index, self.targets_N, self.class_names)
        return replace(
            self.take(first),
            index_N=numbers,
            notices=(*self.notices, *dropped_duplicates(len(index), len(numbers))),
        )

    def take(self, rows: Integers) -> Predictions:
        """Return the predictions of some samples, in the given order; large matrices are not copied."""
        return replace(
            self,
            targets_N=self.targets_N[rows],
            predictions_N=self.predictions_N[rows],
            logits_NK=None if self.logits_NK is None else take_rows(self.logits_NK, rows),
            features_ND=None if self.features_ND is None else take_rows(self.features_ND, rows),
            index_N=None if self.index_N is None else self.index_N[rows],
            valid_labels=None if self.valid_labels is None else self.valid_labels.take(rows),
            slices={name: replace(column, codes_N=column.codes_N[rows]) for name, column in self.slices.items()},
            scores=None if self.scores is None else self.scores.take(rows),
        )


def _only_kind(given: dict[str, Any]) -> str:
    """Return the only kind of predictions given."""
    kinds = [kind for kind, value in given.items() if value is not None]
    if len(kinds) != 1:
        raise ValueError(
            f"pass exactly one of logits, probabilities and predictions, got {' and '.join(kinds) or 'none'}."
        )
    return kinds[0]


def _has_two_classes(class_names: Sequence[Any] | Mapping[int, str] | None, targets: Any) -> bool:
    if class_names is not None:
        return len(class_names) == 2
    return is_text(targets) and len(np.unique(np.asarray(targets, dtype=str))) == 2


def _num_classes(scores_NK: Matrix | None, weight_KD: Tensor | None, train_counts_K: Tensor | None) -> int | None:
    """Return K if the scores, the head or the training counts determine it."""
    if scores_NK is not None:
        return scores_NK.shape[1]
    return next((len(value) for value in (weight_KD, train_counts_K) if value is not None), None)


def _check_lengths(targets_N: Integers, columns: dict[str, Any]) -> None:
    for what, column in columns.items():
        if column is not None and len(column) != len(targets_N):
            raise ValueError(f"{what} and targets must have the same length, got {len(column)} and {len(targets_N)}.")
    if not len(targets_N):
        raise ValueError("targets is empty: an audit needs at least one sample.")


def _working_dtype(scores_NK: Matrix) -> torch.dtype:
    return torch.promote_types(scores_NK.dtype, torch.float32)


def _head(head: Any) -> tuple[Tensor | None, Tensor | None]:
    if head is None:
        return None, None
    if isinstance(head, tuple):
        weight, bias = head
    elif isinstance(head, nn.Module) or hasattr(head, "weight"):
        weight, bias = getattr(head, "weight", None), getattr(head, "bias", None)
    else:
        weight, bias = head, None
    if weight is None:
        raise ValueError(
            f"head must be a layer with a weight, a weight (K, D) or a tuple (weight, bias), got {type(head).__name__}."
        )
    weight_KD = as_tensor(to_matrix("head weight", weight)).float()
    return weight_KD, None if bias is None else to_tensor("head bias", bias).float()


def _check_head(weight: Tensor | None, bias: Tensor | None, num_classes: int, features_ND: Matrix | None) -> None:
    if weight is None:
        return
    columns = weight.shape[1] if features_ND is None else features_ND.shape[1]
    if weight.shape != (num_classes, columns) or (bias is not None and bias.shape != (num_classes,)):
        bias_shape = "" if bias is None else f" and bias {tuple(bias.shape)}"
        raise ValueError(
            f"head must map {columns} features to {num_classes} classes, weight ({num_classes}, {columns}), got weight "
            f"{tuple(weight.shape)}{bias_shape}."
        )
    if bias is not None and not bool(bias.isfinite().all()):
        raise ValueError("head bias must be finite, but contains NaN or infinity.")


def _names(
    given: Sequence[Any] | Mapping[int, str] | None, num_classes: int | None, targets: Any, predictions: Any
) -> tuple[str, ...]:
    if given is not None:
        return check_class_names(given, num_classes)
    if num_classes is not None:
        return tuple(str(k) for k in range(num_classes))
    if is_text(targets) or is_text(predictions):
        return check_class_names(infer_class_names(targets, predictions))
    numbers = [np.asarray(to_tensor("targets", targets)), np.asarray(to_tensor("predictions", predictions))]
    if any(column.dtype.kind == "f" and not np.isfinite(column).all() for column in numbers):
        raise ValueError("targets and predictions must be class indices or class names, but contain NaN or infinity.")
    largest = max((int(column.max()) for column in numbers if column.size), default=-1)
    if largest >= MAX_CLASSES:
        raise ValueError(
            f"targets and predictions must be class indices below {MAX_CLASSES:,}, got {largest}: check the labels, or "
            "pass class names instead of indices."
        )
    return tuple(str(k) for k in range(largest + 1))


def _indices(values: Any) -> Integers:
    if is_text(values):
        return encode_ids(values)
    index = to_tensor("index", values)
    wanted = "index must be non-negative integers of shape (samples,)"
    if index.dim() != 1 or index.is_floating_point():
        raise ValueError(f"{wanted}, got shape {tuple(index.shape)} of {index.dtype}.")
    if len(index) and int(index.min()) < 0:
        raise ValueError(f"{wanted}, got {int(index.min())}.")
    return index.long().numpy()
