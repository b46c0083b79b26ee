"""Cosine classifier."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CosineClassifier(nn.Module):
    """Linear layer on normalized features and weights: z_k = scale · cos(f, w_k), without bias.

    Weight norms do not affect the logits, but optimizer steps rotate rows with larger norms less. Logits are computed
    in at least float32, since 16-bit cosines at a scale of 100 have errors of up to 0.5.

    Args:
        features: Width of the features.
        classes: Number of classes.
        scale: Inverse temperature; CLIP uses 100.
        learn_scale: Make ``scale`` a parameter instead of a buffer.

    Attributes:
        weight: (classes, features), initialized with row norms of about 1.
        scale: Scalar.

    >>> head = CosineClassifier(2, 2, scale=10.0)
    >>> with torch.no_grad():
    ...     _ = head.weight.copy_(torch.tensor([[5.0, 0.0], [0.0, 1.0]]))
    >>> head(torch.tensor([[3.0, 4.0]])).detach()
    tensor([[6., 8.]])
    """

    weight: Tensor
    scale: Tensor

    def __init__(self, features: int, classes: int, scale: float = 100.0, *, learn_scale: bool = False) -> None:
        super().__init__()
        if not scale > 0:
            raise ValueError(f"scale must be positive, got {scale}.")
        self.in_features, self.out_features = features, classes
        self.weight = nn.Parameter(torch.randn(classes, features) / features**0.5)
        if learn_scale:
            self.scale = nn.Parameter(torch.tensor(float(scale)))
        else:
            self.register_buffer("scale", torch.tensor(float(scale)))

    def forward(self, features_BD: Tensor) -> Tensor:
        """Return the logits, (B, K)."""
        with torch.autocast(features_BD.device.type, enabled=False):
            dtype = torch.promote_types(torch.promote_types(features_BD.dtype, self.weight.dtype), torch.float32)
            unit_BD, unit_KD = (F.normalize(each.to(dtype), dim=-1) for each in (features_BD, self.weight))
            return self.scale.to(dtype) * F.linear(unit_BD, unit_KD)

    def extra_repr(self) -> str:
        """Return the arguments for ``repr``."""
        return f"features={self.in_features}, classes={self.out_features}"
