"""Weight interpolation: Wortsman et al., "Robust fine-tuning of zero-shot models" (WiSE-FT, 2022)."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor


def interpolate_weights(
    zero_shot: Mapping[str, Tensor], fine_tuned: Mapping[str, Tensor], alpha: float = 1.0
) -> dict[str, Tensor]:
    """Interpolate two state dicts, including buffers: θ = (1 − α) θ_zero-shot + α θ_fine-tuned.

    The published MR² code uses α = 0.6 after fine-tuning CLIP, which the paper does not mention.

    Args:
        zero_shot: State dict before fine-tuning.
        fine_tuned: State dict after fine-tuning.
        alpha: Weight of the fine-tuned model, in [0, 1].

    Returns:
        New tensors. Integers, such as the batch count of batch norm, are rounded down.

    Raises:
        ValueError: If the architectures differ, or ``alpha`` is out of range.

    >>> import torch
    >>> interpolate_weights({"w": torch.tensor([0.0, 5.0])}, {"w": torch.tensor([1.0, 0.0])}, alpha=0.6)
    {'w': tensor([0.6000, 2.0000])}
    """
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha must be in [0, 1], from zero-shot to fine-tuned, got {alpha}.")
    for name in zero_shot.keys() ^ fine_tuned.keys():
        where = "zero_shot" if name in zero_shot else "fine_tuned"
        raise ValueError(f"only {where} has {name!r}: both state dicts must have the same architecture.")
    for name, weight in zero_shot.items():
        shapes = tuple(weight.shape), tuple(fine_tuned[name].shape)
        if shapes[0] != shapes[1]:
            raise ValueError(f"{name!r} has shape {shapes[0]} in zero_shot and {shapes[1]} in fine_tuned.")
    return {
        name: ((1 - alpha) * weight + alpha * fine_tuned[name]).to(weight.dtype).detach()
        for name, weight in zero_shot.items()
    }
