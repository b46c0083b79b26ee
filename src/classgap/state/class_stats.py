"""Running size and spread of each class's features, the statistics behind MR²'s margins."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from classgap.functional import ClassGroups, squared_norm
from classgap.state.buffers import write


class ClassStats(nn.Module):
    """Exponential moving averages, one entry a class, of

    - ``size``: r_k², the class mean of ‖f‖_p² (MR² Prop. 2; for p = 2 it equals ‖μ_k‖² + ‖s_k‖² of Eq. 1), and
    - ``spread``: ‖s_k‖², the class's mean squared deviation from its mean (MR² Sec. 3).

    A class's first batch sets its entries; classes absent from a batch keep theirs. The spread of a few samples
    around *their own* mean is too small: n samples show (n-1)/n of it, a single one none. ``unbiased`` divides by
    n - 1 and learns nothing from single samples; without it the mean is plain, as the paper prints it.

    >>> from classgap.functional import group_by_class
    >>> stats = ClassStats(num_classes=3)
    >>> features, labels = torch.tensor([[0.0], [2.0], [5.0]]), torch.tensor([0, 0, 1])
    >>> stats.update(features, group_by_class(labels, num_classes=3))
    >>> stats.size.tolist(), stats.spread.tolist(), stats.mean_spread().item()
    ([2.0, 25.0, 0.0], [2.0, 0.0, 0.0], 2.0)
    """

    size: Tensor
    size_seen: Tensor
    spread: Tensor
    spread_seen: Tensor

    def __init__(self, num_classes: int, *, norm: float = 2.0, decay: float = 0.9, unbiased: bool = True) -> None:
        super().__init__()
        self.norm, self.decay, self.unbiased = norm, decay, unbiased
        for name in ("size", "spread"):
            self.register_buffer(name, torch.zeros(num_classes))
            self.register_buffer(f"{name}_seen", torch.zeros(num_classes, dtype=torch.bool))

    @torch.no_grad()
    def update(self, features_ND: Tensor, groups: ClassGroups, finite: Tensor | None = None) -> None:
        """Learn from a whole batch; with ``finite`` false nothing changes."""
        size_U = groups.mean(squared_norm(features_ND, self.norm))
        self._blend("size", groups, size_U, groups.counts_U > 0, finite)

        deviation_ND = features_ND - groups.spread_to_samples(groups.mean(features_ND))
        squares_U = groups.sum(squared_norm(deviation_ND))
        fewest = 1 if self.unbiased else 0  # what n is reduced by
        spread_U = squares_U / (groups.counts_U - fewest).clamp(min=1)
        self._blend("spread", groups, spread_U, groups.counts_U > fewest, finite)

    def mean_spread(self) -> Tensor:
        """s̄, the mean of the spread over the classes that have one; 0 before any has."""
        return (self.spread * self.spread_seen).sum() / self.spread_seen.sum().clamp(min=1)

    def _blend(self, name: str, groups: ClassGroups, new_U: Tensor, known_U: Tensor, finite: Tensor | None) -> None:
        values_K, seen_K = self.get_buffer(name), self.get_buffer(f"{name}_seen")
        old_U, seen_U = values_K[groups.classes_U], seen_K[groups.classes_U]
        new_U = new_U.to(values_K.dtype)
        blended_U = torch.where(seen_U, self.decay * old_U + (1 - self.decay) * new_U, new_U)
        write_U = known_U if finite is None else known_U & finite
        write(self, name, torch.where(write_U, blended_U, old_U), groups.classes_U)
        write(self, f"{name}_seen", seen_U | write_U, groups.classes_U)
