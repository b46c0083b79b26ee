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

    size: Tensor  # 0 for a class never seen
    spread: Tensor
    spread_seen: Tensor

    def __init__(self, num_classes: int, *, norm: float = 2.0, decay: float = 0.9, unbiased: bool = True) -> None:
        super().__init__()
        self.norm, self.decay, self.unbiased = norm, decay, unbiased
        self.register_buffer("size", torch.zeros(num_classes))
        self.register_buffer("spread", torch.zeros(num_classes))
        self.register_buffer("spread_seen", torch.zeros(num_classes, dtype=torch.bool))

    @torch.no_grad()
    def update(self, features_ND: Tensor, groups: ClassGroups, finite: Tensor | None = None) -> None:
        """Learn from a whole batch; with ``finite`` false nothing changes."""
        self._update_size(squared_norm(features_ND, self.norm), groups, finite)
        if self.unbiased and not torch.compiler.is_compiling():
            rows_M, groups = groups.with_partners()  # often few of many, and wide
            features_ND = features_ND.index_select(0, rows_M)
        self._update_spread(squared_norm(groups.centred(features_ND)), groups, finite)

    def mean_spread(self) -> Tensor:
        """s̄, the mean of the spread over the classes that have one; 0 before any has."""
        return self.spread.sum() / self.spread_seen.sum().clamp(min=1)

    def _update_size(self, squares_N: Tensor, groups: ClassGroups, finite: Tensor | None) -> None:
        old_U = self.size.index_select(0, groups.classes_U)
        new_U = self._blend(old_U, groups.mean(squares_N), old_U > 0)
        if finite is not None:  # only compiled code has groups without samples
            new_U = torch.where((groups.counts_U > 0) & finite, new_U, old_U)
        write(self, "size", new_U, groups.classes_U)

    def _update_spread(self, squares_N: Tensor, groups: ClassGroups, finite: Tensor | None) -> None:
        lost = 1 if self.unbiased else 0  # degrees of freedom that the mean takes
        seen_U = self.spread_seen.index_select(0, groups.classes_U)
        old_U = self.spread.index_select(0, groups.classes_U)
        new_U = self._blend(old_U, groups.sum(squares_N) / (groups.counts_U - lost).clamp(min=1), seen_U)
        known_U = groups.counts_U > lost
        if finite is not None:
            known_U = known_U & finite
        write(self, "spread", torch.where(known_U, new_U, old_U), groups.classes_U)
        write(self, "spread_seen", seen_U | known_U, groups.classes_U)

    def _blend(self, old_U: Tensor, new_U: Tensor, seen_U: Tensor) -> Tensor:
        """The moving average; all of the first batch."""
        return old_U.lerp(new_U.to(old_U.dtype), torch.where(seen_U, 1 - self.decay, 1.0).to(old_U.dtype))
