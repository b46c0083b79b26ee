"""Weights between two models: Wortsman et al., "Robust fine-tuning of zero-shot models" (WiSE-FT, 2022)."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor


def interpolate_weights(
    zero_shot: Mapping[str, Tensor], fine_tuned: Mapping[str, Tensor], alpha: float = 1.0
) -> dict[str, Tensor]:
    """θ = (1 − α) θ_zero-shot + α θ_fine-tuned, for every entry of two state dicts, buffers too.

    The published MR² code does so with α = 0.6 after it has fine-tuned CLIP; the paper does not mention it. The
    default changes nothing: it gives the fine-tuned weights.

    Args:
        zero_shot: of the model before fine-tuning.
        fine_tuned: of the same model after it.
        alpha: the share of the fine-tuned weights, 0 to 1.

    Returns:
        new tensors; whole numbers (how many batches a batch norm has seen) are rounded down.

    Raises:
        ValueError: if the two are not of one architecture, or ``alpha`` is outside its range.

    >>> import torch
    >>> interpolate_weights({"w": torch.tensor([0.0, 5.0])}, {"w": torch.tensor([1.0, 0.0])}, alpha=0.6)
    {'w': tensor([0.6000, 2.0000])}
    """
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha must be from 0 (zero-shot) to 1 (fine-tuned); got {alpha}.")
    for name in zero_shot.keys() ^ fine_tuned.keys():
        where = "zero_shot" if name in zero_shot else "fine_tuned"
        raise ValueError(f"only {where} has {name!r}: weights of one architecture can be interpolated, not of two.")
    for name, weight in zero_shot.items():
        shapes = tuple(weight.shape), tuple(fine_tuned[name].shape)
        if shapes[0] != shapes[1]:
            raise ValueError(f"{name!r} has shape {shapes[0]} in zero_shot and {shapes[1]} in fine_tuned.")
    return {
        name: ((1 - alpha) * weight + alpha * fine_tuned[name]).to(weight.dtype).detach()
        for name, weight in zero_shot.items()
    }
