"""Running class centroids, as in the Large Margin Discriminative Loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from classgap.functional import ClassGroups
from classgap.state.buffers import write


class ClassCentroids(nn.Module):
    """m_c ← momentum · m_c + (1 - momentum) · (batch mean of c), LMDL Sec. 4.4; the first batch mean initializes m_c.

    >>> from classgap.functional import group_by_class
    >>> centroids = ClassCentroids(num_classes=2, feature_dim=1, momentum=0.9)
    >>> groups = group_by_class(torch.tensor([1]), num_classes=2)
    >>> centroids.update(torch.tensor([[10.0]]), groups)
    >>> centroids.blend(torch.tensor([[20.0]]), groups)
    tensor([[11.]])
    """

    means: Tensor
    seen: Tensor

    def __init__(self, num_classes: int, feature_dim: int, *, momentum: float = 0.99) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("means", torch.zeros(num_classes, feature_dim))
        self.register_buffer("seen", torch.zeros(num_classes, dtype=torch.bool))

    def blend(self, means_UD: Tensor, groups: ClassGroups) -> Tensor:
        """Return the centroids updated with these batch means, which receive gradients."""
        old_UD = self.means[groups.classes_U].to(means_UD.dtype)
        blended_UD = self.momentum * old_UD + (1 - self.momentum) * means_UD
        return torch.where(self.seen[groups.classes_U, None], blended_UD, means_UD)

    @torch.no_grad()
    def update(self, centroids_UD: Tensor, groups: ClassGroups, finite: Tensor | None = None) -> None:
        """Store the centroids of the classes present, unless ``finite`` is False."""
        write_U = groups.counts_U > 0 if finite is None else (groups.counts_U > 0) & finite
        old_UD = self.means[groups.classes_U]
        new_UD = torch.where(write_U[:, None], centroids_UD.to(old_UD.dtype), old_UD)
        write(self, "means", new_UD, groups.classes_U)
        write(self, "seen", self.seen[groups.classes_U] | write_U, groups.classes_U)
