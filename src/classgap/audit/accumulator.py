"""``AuditAccumulator``: an audit of predictions that are seen once and not kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from torch import Tensor

from classgap.audit.audit import Audit, ClassNames, Groups, RankBy
from classgap.audit.io.labels import check_class_names
from classgap.audit.io.predictions import Predictions
from classgap.audit.results import Notice
from classgap.audit.settings import AuditSettings
from classgap.audit.sums import MetricSums
from classgap.distributed import all_reduce_sum, world_size


class AuditAccumulator:
    """Accumulate an audit batch by batch, in memory that does not grow with the number of samples.

    The state is tensors of a fixed size, about 8 K² bytes for K classes, which add up over batches and processes. The
    audit has all metrics that follow from sums: accuracies and their intervals, groups, gaps, confusions, top-k
    accuracy, calibration, mean output and logit margins and, with features, means, spreads and distances between means.
    A notice lists the others. Every sample that is passed counts, including the padding of a distributed sampler.

    Args:
        num_classes: number of classes; by default that of ``class_names``.
        feature_dim: number of features, if they are passed to :meth:`update`.
        class_names: K unique names, or a mapping from class index to name.
        train_counts: number of training samples of each class (K,).
        name: name for titles.
        settings: settings of the audit.

    Raises:
        ValueError: if an argument is invalid.

    >>> import torch
    >>> accumulator = AuditAccumulator(num_classes=2)
    >>> accumulator.update(torch.tensor([[2.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1]))
    >>> accumulator.update(torch.tensor([[0.0, 3.0]]), torch.tensor([1]))
    >>> accumulator.compute()
    <Audit 'audit': 2 classes, 3 samples, accuracy 0.667, hard third 0.500>
    """

    def __init__(
        self,
        num_classes: int | None = None,
        feature_dim: int | None = None,
        *,
        class_names: ClassNames | None = None,
        train_counts: Any = None,
        name: str = "audit",
        settings: AuditSettings | None = None,
    ) -> None:
        if class_names is None and num_classes is None:
            raise ValueError("num_classes or class_names is required.")
        for what, value in (("num_classes", num_classes), ("feature_dim", feature_dim)):
            if value is not None and value < 1:
                raise ValueError(f"{what} must be at least 1, got {value}.")
        names: Sequence[Any] | Mapping[int, str] = class_names or [str(k) for k in range(num_classes or 0)]
        self.class_names = check_class_names(names, num_classes)
        self.feature_dim = feature_dim
        self.train_counts = train_counts
        self.name = name
        self.settings = settings or AuditSettings()
        self.reset()

    @property
    def num_classes(self) -> int:
        """K, the number of classes."""
        return len(self.class_names)

    @property
    def n_samples(self) -> int:
        """Number of samples seen by this process."""
        return self._sums.n_samples

    def reset(self) -> None:
        """Forget all samples."""
        self._sums = MetricSums.zeros(self.num_classes, self.feature_dim or 0, max(self.settings.top_k))

    def update(self, logits: Any, targets: Any, features: Any = None) -> None:
        """Add one batch.

        Args:
            logits: scores (B, K). A batch of probabilities is recognized, with a notice.
            targets: true class indices or class names (B,).
            features: penultimate features (B, D), if ``feature_dim`` was given.

        Raises:
            ValueError: if an argument is invalid; the state is then unchanged.
        """
        if (features is None) != (self.feature_dim is None):
            raise ValueError(
                f"features is required, because feature_dim is {self.feature_dim}."
                if features is None
                else "features requires feature_dim: pass it to AuditAccumulator."
            )
        if not len(targets):
            return
        batch = Predictions.from_arrays(targets, logits=logits, features=features, class_names=self.class_names)
        if batch.features_ND is not None and batch.features_ND.shape[1] != self.feature_dim:
            raise ValueError(f"features must have {self.feature_dim} columns, got {batch.features_ND.shape[1]}.")
        self._sums.add(batch)

    def merge(self, other: AuditAccumulator) -> AuditAccumulator:
        """Add the samples of another accumulator to this one, and return it.

        Raises:
            ValueError: if the other has other classes, features or values of k for top-k accuracy.
        """
        if other.class_names != self.class_names:
            raise ValueError("both accumulators must have the same classes in the same order.")
        self._add(other.state_dict())
        return self

    def state_dict(self) -> dict[str, Tensor]:
        """Return the sums as tensors of a fixed size. Those of several processes may be added."""
        return {field.name: getattr(self._sums, field.name).clone() for field in fields(self._sums)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Replace the sums by those of a :meth:`state_dict`.

        Raises:
            ValueError: if a tensor is missing or has another shape.
        """
        self._check(state)
        self.reset()
        self._add(state)

    def compute(self, *, groups: Groups | None = None, rank_by: RankBy | None = None, sync: bool = True) -> Audit:
        """Return the audit of all samples so far.

        Args:
            groups: as in :meth:`Audit.from_predictions`.
            rank_by: as in :meth:`Audit.from_predictions`.
            sync: with several processes, sum over all of them, so that each returns the audit of all samples. Every
                process must make the call.

        Raises:
            ValueError: if there are no samples.
        """
        sums = self._sums
        if sync and world_size() > 1:
            sums = MetricSums(**{name: all_reduce_sum(value) for name, value in self.state_dict().items()})
        if not sums.n_samples:
            raise ValueError("there are no samples: call update before compute.")
        counts = sums.confusion_KK.view(-1).numpy()
        labels_N = np.repeat(np.arange(len(counts)), counts)
        data = Predictions.from_arrays(
            labels_N // self.num_classes,
            predictions=labels_N % self.num_classes,
            class_names=self.class_names,
            train_counts=self.train_counts,
            name=self.name,
        )
        if int(sums.probabilities) == sums.n_samples:
            data = replace(data, notices=(Notice("logits-are-probabilities"),))
        return Audit.from_checked(data, groups=groups, rank_by=rank_by, settings=self.settings, sums=sums)

    def _add(self, state: Mapping[str, Tensor]) -> None:
        self._check(state)
        for name, value in state.items():
            getattr(self._sums, name).add_(value.cpu())

    def _check(self, state: Mapping[str, Tensor]) -> None:
        for name, mine in self.state_dict().items():
            if name not in state:
                raise ValueError(f"{name} is missing from the state.")
            if state[name].shape != mine.shape:
                raise ValueError(
                    f"{name} must have shape {tuple(mine.shape)}, got {tuple(state[name].shape)}: num_classes, "
                    "feature_dim and top_k must be the same."
                )
