"""Statistics of each class's features after an epoch, for any method (MR² Fig. 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from classgap.data.dataset import Split
from classgap.distributed import gather_rows, world_size
from classgap.functional import group_by_class

if TYPE_CHECKING:
    from classgap.engine.run import Run


@dataclass
class ClassStatistics:
    """Counts, means and deviations of each class that add up over batches and processes, in double precision.

    Attributes:
        counts_K: Number of samples n.
        correct_K: Number of correctly classified samples.
        means_KD: Mean feature vector μ.
        squares_K: Σ ‖f - μ‖².

    >>> statistics = ClassStatistics.zeros(num_classes=2, width=1)
    >>> statistics.add(torch.tensor([[1.0], [5.0]]), torch.tensor([0, 1]), torch.tensor([0, 0]))
    >>> statistics.add(torch.tensor([[3.0]]), torch.tensor([0]), torch.tensor([0]))
    >>> statistics.to_dict()
    {'spread': [1.414214, None], 'mean_norm': [2.0, 5.0], 'accuracy': [1.0, 0.0]}
    """

    counts_K: Tensor
    correct_K: Tensor
    means_KD: Tensor
    squares_K: Tensor

    @classmethod
    def zeros(cls, num_classes: int, width: int) -> ClassStatistics:
        """Return the statistics of no samples."""
        counts_K = torch.zeros(num_classes, dtype=torch.float64)
        return cls(counts_K, counts_K.clone(), counts_K.new_zeros(num_classes, width), counts_K.clone())

    def add(self, features_BD: Tensor, targets_B: Tensor, predictions_B: Tensor) -> None:
        """Add a batch."""
        features_BD, targets_B = features_BD.detach().cpu().double(), targets_B.cpu()
        groups = group_by_class(targets_B, len(self.counts_K), complete=True)
        correct_B = (predictions_B.cpu() == targets_B).double()
        self._merge(
            groups.classes_U,
            groups.counts_U.double(),
            groups.sum(correct_B),
            groups.mean(features_BD),
            groups.sum(groups.centered(features_BD).square().sum(dim=1)),
        )

    def _merge(self, rows_U: Tensor, counts_U: Tensor, correct_U: Tensor, means_UD: Tensor, squares_U: Tensor) -> None:
        """Add other samples of the classes ``rows_U`` by the update of Chan et al. (1979), which cancels nothing."""
        before_U = self.counts_K[rows_U]
        share_U = counts_U / (before_U + counts_U).clamp(min=1)
        apart_UD = means_UD - self.means_KD[rows_U]
        self.squares_K[rows_U] += squares_U + before_U * share_U * apart_UD.square().sum(dim=1)
        self.means_KD[rows_U] += share_U[:, None] * apart_UD
        self.counts_K[rows_U] += counts_U
        self.correct_K[rows_U] += correct_U

    def gathered(self) -> ClassStatistics:
        """Return the statistics over the samples of all processes, on each of them."""
        if world_size() == 1:
            return self
        total = ClassStatistics.zeros(*self.means_KD.shape)
        rows_K = torch.arange(len(self.counts_K))
        columns = torch.stack([self.counts_K, self.correct_K, self.squares_K], dim=1)
        table = gather_rows(torch.cat([columns, self.means_KD], dim=1))
        for part in table.split(len(rows_K)):
            counts_K, correct_K, squares_K = part[:, :3].unbind(dim=1)
            total._merge(rows_K, counts_K, correct_K, part[:, 3:], squares_K)
        return total

    def to_dict(self) -> dict[str, list[float | None]]:
        """Return one list per statistic with an entry per class; ``None`` for a class without enough samples.

        ``spread`` is ‖ŝ_k‖ with n - 1 in the denominator and ``mean_norm`` is ‖μ_k‖, as in an audit.
        """
        several_K, seen_K = self.counts_K > 1, self.counts_K > 0
        spread_K = torch.where(several_K, (self.squares_K / (self.counts_K - 1)).sqrt(), torch.nan)
        norm_K = torch.where(seen_K, torch.linalg.vector_norm(self.means_KD, dim=1), torch.nan)
        return {
            "spread": _rounded(spread_K),
            "mean_norm": _rounded(norm_K),
            "accuracy": _rounded(self.correct_K / self.counts_K),
        }


def compute_class_stats(run: Run, split: Split) -> ClassStatistics:
    """Compute the statistics of a split, without augmentation and in one pass, on every process."""
    statistics: ClassStatistics | None = None
    for outputs in run.iterate_outputs(split):
        if statistics is None:
            statistics = ClassStatistics.zeros(run.num_classes, outputs.features_BD.shape[1])
        statistics.add(outputs.features_BD, outputs.targets_B, outputs.logits_BK.argmax(dim=1))
    if statistics is None:  # more processes than samples
        width = run.tap.head.get_parameter("weight").shape[1]
        statistics = ClassStatistics.zeros(run.num_classes, width)
    return statistics.gathered()


def _rounded(values_K: Tensor) -> list[float | None]:
    """Round to the precision of the features; ``None`` for NaN and infinity, which JSON does not have."""
    return [
        float(f"{value:.7g}") if finite else None
        for value, finite in zip(values_K.tolist(), values_K.isfinite().tolist(), strict=True)
    ]
