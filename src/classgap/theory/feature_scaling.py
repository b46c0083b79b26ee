"""Scaling the features without changing a prediction: LMDL (Nguyen et al. 2024), Proposition 4.4, Corollary 4.1."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from classgap.theory.arguments import check_positive


class ScaledParameters(NamedTuple):
    """The parameters that T_α changes: the layer before the features, and the bias of the head."""

    previous_weight: Tensor
    previous_bias: Tensor | None
    head_bias: Tensor | None


def scale_parameters(
    previous_weight: Tensor, previous_bias: Tensor | None, head_bias: Tensor | None, *, factor: float
) -> ScaledParameters:
    """T_α of Proposition 4.4: multiply W⁻, b⁻ and b by α > 0, and leave the weights of the head as they are.

    Features become αq and logits αz, so no prediction changes, while every class margin (Definition 4.2) and every
    dispersion (Definition 4.1) is multiplied by α. A margin loss or a compactness loss alone can thus be satisfied
    without learning anything; both together cannot, as one needs α > 1 and the other α < 1 (Corollary 4.1). The same
    holds for δ_v and δ_d: only their ratio matters.

    The proposition writes N_Θ̃(x) = N_Θ(x), which holds for the predicted class. The probabilities change, as α is a
    temperature. The layer before the features must be linear or convolutional, with or without ReLU: batch norm after
    it would undo the scaling of W⁻.

    Args:
        previous_weight: Weight W⁻ of the layer whose output is the feature vector.
        previous_bias: Its bias b⁻, if it has one.
        head_bias: Bias b of the head, if it has one.
        factor: α.

    >>> layer, head = torch.nn.Linear(3, 2), torch.nn.Linear(2, 4)
    >>> x = torch.randn(5, 3)
    >>> scaled = scale_parameters(layer.weight, layer.bias, head.bias, factor=3.0)
    >>> features = torch.nn.functional.linear(x, scaled.previous_weight, scaled.previous_bias)
    >>> torch.allclose(torch.nn.functional.linear(features, head.weight, scaled.head_bias), 3 * head(layer(x)))
    True
    """
    factor = check_positive("factor", factor)
    return ScaledParameters(
        previous_weight=factor * previous_weight,
        previous_bias=None if previous_bias is None else factor * previous_bias,
        head_bias=None if head_bias is None else factor * head_bias,
    )


def parameter_change(
    previous_weight: Tensor, previous_bias: Tensor | None, head_bias: Tensor | None, *, factor: float
) -> Tensor:
    """T_α(Θ) - Θ = (α - 1) u of Proposition 4.4, part 3, flattened, without the zeros of unchanged parameters.

    For α > 1 and for α < 1 these vectors have opposite directions, which is Corollary 4.1.

    >>> wider = parameter_change(torch.ones(2, 2), None, torch.ones(1), factor=2.0)
    >>> narrower = parameter_change(torch.ones(2, 2), None, torch.ones(1), factor=0.5)
    >>> wider, narrower
    (tensor([1., 1., 1., 1., 1.]), tensor([-0.5000, -0.5000, -0.5000, -0.5000, -0.5000]))
    """
    before = ScaledParameters(previous_weight, previous_bias, head_bias)
    after = scale_parameters(*before, factor=factor)
    return torch.cat([(b - a).flatten() for a, b in zip(before, after, strict=True) if a is not None and b is not None])
