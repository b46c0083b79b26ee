"""A head that sees directions only."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CosineClassifier(nn.Module):
    """z_k = scale · cos(f, w_k): features and weights are normalised, there is no bias.

    The weights' norms change no logit, but a step of the optimiser turns a long row less than a short one. It computes
    in at least float32: with a scale of 100, logits made of 16-bit cosines may be off by a half.

    Args:
        features: inputs.
        classes: outputs.
        scale: the inverse temperature, 100 in CLIP.
        learn_scale: whether ``scale`` is a parameter. It is in the state dict either way.

    Attributes:
        weight: (classes, features); rows of norm about 1 at first.
        scale: one number.

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
            raise ValueError(f"scale must be above 0; got {scale}.")
        self.in_features, self.out_features = features, classes
        self.weight = nn.Parameter(torch.randn(classes, features) / features**0.5)
        if learn_scale:
            self.scale = nn.Parameter(torch.tensor(float(scale)))
        else:
            self.register_buffer("scale", torch.tensor(float(scale)))

    def forward(self, features_BD: Tensor) -> Tensor:
        """Logits, (B, K)."""
        with torch.autocast(features_BD.device.type, enabled=False):
            dtype = torch.promote_types(torch.promote_types(features_BD.dtype, self.weight.dtype), torch.float32)
            unit_BD, unit_KD = (F.normalize(each.to(dtype), dim=-1) for each in (features_BD, self.weight))
            return self.scale.to(dtype) * F.linear(unit_BD, unit_KD)

    def extra_repr(self) -> str:
        """What ``print`` shows in brackets."""
        return f"features={self.in_features}, classes={self.out_features}"
