"""torchmetrics: accuracies of easy and hard classes, the gap between them and margins, as one metric."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from classgap.audit import Audit, AuditAccumulator, AuditSettings
from classgap.audit.audit import ClassNames, Groups, RankBy
from classgap.audit.io.predictions import Predictions
from classgap.audit.rank_by import read_ranking
from classgap.integrations._exact_states import ExactStates
from classgap.integrations._gap_values import class_values, gap_values


class ClassGap(ExactStates):
    """Accuracy and output margin of the easy, medium and hard thirds of the classes, of the worst ones, and the gap.

    ``compute`` returns scalars by name:

    - ``accuracy`` of all samples, and ``balanced_accuracy``, the mean over classes;
    - ``easy_accuracy``, ``medium_accuracy``, ``hard_accuracy``: mean over the classes of each third;
    - ``easy_hard_gap``: ``easy_accuracy`` - ``hard_accuracy``;
    - ``worst_class_accuracy``, and ``worst_k_accuracy``, the mean over the k worst classes;
    - ``margin``: mean of m_o = P(y) - max_{y'≠y} P(y') over all samples, and ``easy_margin``, ``medium_margin``,
      ``hard_margin``: mean of the class means in each third;
    - with ``per_class``: ``accuracy_NAME`` and ``margin_NAME`` of each class.

    Classes without samples are left out of means and rankings; their own values are NaN. Values that do not exist, such
    as the thirds of a single class, are NaN too. :meth:`audit` returns the whole audit.

    The states are sums over samples, about 8 K² bytes for K classes. They add up over processes, are saved in
    ``state_dict()``, and keep their precision in models of half precision.

    Args:
        num_classes: number of classes; by default that of ``class_names``.
        class_names: K unique names, or a mapping from class index to name.
        worst_k: number of classes of ``worst_k_accuracy``; by default a tenth of the classes with samples, rounded up.
            If fewer classes have samples, it is the mean over these.
        per_class: whether ``compute`` returns the values of each class.
        ignore_index: target of samples that do not count.
        rank_by: rank the classes by the accuracies of another audit (or of a file or run directory), or by K numbers,
            instead of the accuracies in this metric.
        feature_dim: number of features, if they are passed to :meth:`update`, for the audit.
        train_counts: number of training samples of each class (K,), for the audit.
        name: title of the audit.
        settings: settings of the audit.
        kwargs: keyword arguments of ``torchmetrics.Metric``.

    Raises:
        ValueError: if an argument is invalid.

    >>> metric = ClassGap(num_classes=4)
    >>> metric.update(torch.eye(4)[[0, 1, 1, 0]].mul(9), torch.tensor([0, 1, 1, 2]))  # class 3 has no samples
    >>> values = metric.compute()
    >>> values["accuracy"], values["hard_accuracy"], values["easy_hard_gap"]
    (tensor(0.7500), tensor(0.), tensor(1.))
    >>> metric.audit().gap.worst_name
    '2'
    """

    is_differentiable = False
    higher_is_better = None
    full_state_update = False  # sums of batches add up

    def __init__(
        self,
        num_classes: int | None = None,
        *,
        class_names: ClassNames | None = None,
        worst_k: int | None = None,
        per_class: bool = False,
        ignore_index: int | None = None,
        rank_by: RankBy | None = None,
        feature_dim: int | None = None,
        train_counts: Any = None,
        name: str = "audit",
        settings: AuditSettings | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._accumulator = AuditAccumulator(
            num_classes,
            feature_dim,
            class_names=class_names,
            train_counts=train_counts,
            name=name,
            settings=settings,
        )
        self.class_names = self._accumulator.class_names
        if worst_k is not None and not 1 <= worst_k <= self.num_classes:
            raise ValueError(f"worst_k must be from 1 to {self.num_classes}, the number of classes; got {worst_k}.")
        self.worst_k = worst_k
        self.per_class = per_class
        self.ignore_index = ignore_index
        none_N = np.empty(0, dtype=np.int64)
        self._ranking_K, _ = read_ranking(rank_by, Predictions(none_N, none_N, self.class_names))
        for key, zeros in self._accumulator.state_dict().items():
            if zeros.numel():  # sums of features are empty without features, and cannot be gathered
                self.add_state(key, zeros, dist_reduce_fx="sum", persistent=True)

    @property
    def num_classes(self) -> int:
        """K, the number of classes."""
        return len(self.class_names)

    def update(self, preds: Tensor, target: Tensor, features: Tensor | None = None) -> None:
        """Add one batch.

        Args:
            preds: logits or probabilities (B, K).
            target: true class indices (B,).
            features: penultimate features (B, D), if ``feature_dim`` was given.

        Raises:
            ValueError: if an argument is invalid; the state is then unchanged.
        """
        if preds.ndim != 2 or preds.shape[1] != self.num_classes:
            raise ValueError(
                f"preds must have shape (batch, {self.num_classes}), got {tuple(preds.shape)}: pass logits or "
                "probabilities, not predicted labels."
            )
        if target.shape != preds.shape[:1]:
            raise ValueError(
                f"target must have shape ({len(preds)},), one class index per row of preds; got {tuple(target.shape)}."
            )
        batch = {"logits": preds, "targets": target} | ({} if features is None else {"features": features})
        if self.ignore_index is not None:
            kept = target != self.ignore_index
            batch = {key: value[kept.to(value.device)] for key, value in batch.items()}
        self._accumulator.reset()
        self._accumulator.update(**{key: value.detach().cpu() for key, value in batch.items()})
        for key, value in self._accumulator.state_dict().items():
            if key in self._defaults:
                # Not in place: the state may be a tensor of a loaded state_dict or of another metric in a collection.
                setattr(self, key, getattr(self, key) + value.to(getattr(self, key).device))

    def compute(self) -> dict[str, Tensor]:
        """Return the metrics by name."""
        sums = self._sums()
        values = gap_values(
            sums["confusion_KK"].numpy(), sums["margin_K"].numpy(), ranking_K=self._ranking_K, worst_k=self.worst_k
        )
        if self.per_class:
            for label, values_K in class_values(sums["confusion_KK"].numpy(), sums["margin_K"].numpy()).items():
                values |= {f"{label}_{name}": value for name, value in zip(self.class_names, values_K, strict=True)}
        return {key: torch.tensor(value, dtype=self.dtype, device=self.device) for key, value in values.items()}

    def audit(self, *, groups: Groups | None = None) -> Audit:
        """Return the audit of all samples so far, over all processes; every process must make the call.

        Args:
            groups: as in :meth:`Audit.from_predictions`.

        Raises:
            ValueError: if there are no samples.
        """
        with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=self._to_sync and not self._is_synced):
            state = self._sums()
        self._accumulator.load_state_dict(state)
        rank_by = None if self._ranking_K is None else self._ranking_K.tolist()
        return self._accumulator.compute(groups=groups, rank_by=rank_by, sync=False)

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot values by name, or their course over steps; see :meth:`torchmetrics.Metric.plot`.

        Args:
            val: a result of ``compute`` or ``forward``, or a list of them; by default the current one.
            ax: matplotlib axes; by default a new figure.

        Returns:
            Figure and axes.
        """
        return self._plot(val, ax)

    def _sums(self) -> dict[str, Tensor]:
        """Return all states on the CPU, including empty ones."""
        self._accumulator.reset()
        return self._accumulator.state_dict() | {key: getattr(self, key).cpu() for key in self._defaults}
