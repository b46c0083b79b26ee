"""Current difficulty of each class, from training batches."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from classgap.functional import ClassGroups
from classgap.state.buffers import write


class ClassDifficulty(nn.Module):
    """Running averages of each class's training error, and of its mean margin z_y - max_{k≠y} z_k."""

    def __init__(self, num_classes: int, decay: float = 0.9) -> None:
        super().__init__()
        self.decay = decay
        self.register_buffer("error", torch.ones(num_classes))
        self.register_buffer("margin", torch.zeros(num_classes))

    @torch.no_grad()
    def update(self, logits_NK: Tensor, labels_N: Tensor, groups: ClassGroups) -> None:
        """Update from a global batch."""
        own_N = logits_NK.gather(1, labels_N.clamp(min=0)[:, None])
        other_N = logits_NK.scatter(1, labels_N.clamp(min=0)[:, None], float("-inf")).amax(dim=1)
        margin_N = own_N.squeeze(1) - other_N
        for name, values_N in (("error", (margin_N <= 0).to(margin_N)), ("margin", margin_N)):
            old_U = getattr(self, name)[groups.classes_U]
            new_U = old_U.lerp(groups.mean(values_N).to(old_U.dtype), 1 - self.decay)
            write(self, name, new_U, groups.classes_U)
