"""Running size and spread of the features of each class, from which MR² computes its margins."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from classgap.functional import ClassGroups, squared_norm
from classgap.functional.listed_pairs import ListedPairs
from classgap.state.buffers import write


class ClassStats(nn.Module):
    """Exponential moving averages, one entry per class, of

    - ``size``: r_k², the class mean of ‖f‖_p² (MR² Prop. 2; for p = 2 it equals ‖μ_k‖² + ‖s_k‖² of Eq. 1), and
    - ``spread``: ‖s_k‖², the class's mean squared deviation from its mean (MR² Sec. 3).

    The first batch of a class initializes its entries; classes absent from a batch are unchanged. The spread of n
    samples around *their own* mean underestimates that of the class by (n - 1)/n. ``unbiased`` divides by n - 1 and
    skips classes with a single sample; without it the mean is plain, as in the paper.

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

    def __init__(self, num_classes: int, *, p: float = 2.0, decay: float = 0.9, unbiased: bool = True) -> None:
        super().__init__()
        self.p, self.decay, self.unbiased = p, decay, unbiased
        self.register_buffer("size", torch.zeros(num_classes))
        self.register_buffer("spread", torch.zeros(num_classes))
        self.register_buffer("spread_seen", torch.zeros(num_classes, dtype=torch.bool))

    def update(
        self,
        features_ND: Tensor,
        groups: ClassGroups,
        finite: Tensor | None = None,
        pairs: ListedPairs | None = None,
    ) -> None:
        """Update with a batch, using all its ``pairs`` if they are listed, unless ``finite`` is False."""
        features_ND, counts_U = features_ND.detach(), groups.counts_U.to(self.size.dtype)
        if finite is not None:  # a batch that is not finite counts as empty
            features_ND, counts_U = torch.where(finite, features_ND, 0), counts_U * finite
        divisor_U = counts_U.clamp(min=1)
        size_U = groups.sum(squared_norm(features_ND, self.p)) / divisor_U
        self._blend("size", size_U, counts_U.clamp(max=1), groups.of_classes(self.size).sign(), groups)
        # Σ‖f - μ‖² of n samples is Σ‖f - f⁺‖² / n over their pairs.
        deviations_U = self._deviations(features_ND, groups) if pairs is None else pairs.sums(groups) / divisor_U
        self._update_spread(deviations_U, counts_U, groups)

    def mean_spread(self) -> Tensor:
        """Return s̄, the mean spread of the classes that have one; 0 if none has."""
        return self.spread.sum() / torch.count_nonzero(self.spread_seen).clamp(min=1)

    def _deviations(self, features_ND: Tensor, groups: ClassGroups) -> Tensor:
        """Sum ‖f - μ‖² over each group."""
        if not torch.compiler.is_compiling():
            rows_M, groups = groups.with_partners()  # often few of many
            features_ND = features_ND.index_select(0, rows_M)
        return groups.sum(squared_norm(groups.centered(features_ND)))

    def _update_spread(self, deviations_U: Tensor, counts_U: Tensor, groups: ClassGroups) -> None:
        degrees_U = counts_U - 1 if self.unbiased else counts_U  # degrees of freedom
        known_U = degrees_U.clamp(0, 1)
        seen_U = groups.of_classes(self.spread_seen).to(known_U.dtype)
        self._blend("spread", deviations_U / degrees_U.clamp(min=1), known_U, seen_U, groups)
        self._write("spread_seen", torch.maximum(seen_U, known_U), groups)

    def _blend(self, name: str, new_U: Tensor, known_U: Tensor, seen_U: Tensor, groups: ClassGroups) -> None:
        """Update an average where ``known`` is 1, starting from its value where ``seen`` is 1."""
        old_U = groups.of_classes(getattr(self, name))
        # The first batch has the weight 1, later ones 1 - decay; 0 where the statistic is unknown.
        weight_U = torch.sub(known_U, seen_U, alpha=self.decay).clamp_(min=0)
        self._write(name, old_U.lerp(new_U.to(old_U.dtype), weight_U), groups)

    def _write(self, name: str, values_U: Tensor, groups: ClassGroups) -> None:
        write(self, name, values_U, None if len(values_U) == len(self.size) else groups.classes_U)
