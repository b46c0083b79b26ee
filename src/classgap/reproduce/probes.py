"""Measurements that need the trained network of a run: features of earlier layers, and corrupted test samples."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F  # its usual name

from classgap.data.dataset import Dataset
from classgap.inference import load_run

NOISE = 0.5  # standard deviation, in standard deviations of the inputs
CONTRAST = 0.4  # of the original
CORRUPTIONS = ("noise", "blur", "contrast")


def layer_features(path: Path, data: Dataset, layer: str) -> Tensor:
    """Return the features of the test samples at an earlier layer of a run's network, averaged over positions."""
    return load_run(path, device="cpu").features(data.test, layer=layer)


def corrupted_accuracies(path: Path, data: Dataset) -> dict[str, list[float | None]]:
    """Return the accuracy of each class on corrupted test samples, by corruption."""
    run, targets_N = load_run(path, device="cpu"), data.test.targets
    counts_K = torch.bincount(targets_N, minlength=data.num_classes)
    inputs = data.test.inputs[torch.arange(len(targets_N))]
    found: dict[str, list[float | None]] = {}
    for name in CORRUPTIONS:
        predictions_N = torch.as_tensor(run.predict(corrupt(inputs, name)).predictions)
        right_K = torch.bincount(targets_N[predictions_N == targets_N], minlength=data.num_classes)
        found[name] = [r / n if n else None for r, n in zip(right_K.tolist(), counts_K.tolist(), strict=True)]
    return found


def corrupt(inputs: Tensor, name: str) -> Tensor:
    """Corrupt signals (N, C, L) or images (N, C, H, W); bytes stay bytes.

    Args:
        inputs: Clean inputs.
        name: "noise" (Gaussian, half a standard deviation of the inputs), "blur" (mean over 3 neighbors in each
            direction) or "contrast" (40 % of the distance from the mean of each input).

    Raises:
        ValueError: If the inputs have no positions, as feature vectors.

    >>> corrupt(torch.tensor([[[0.0, 3.0, 0.0, 0.0]]]), "blur")
    tensor([[[1., 1., 1., 0.]]])
    """
    if inputs.ndim not in (3, 4):
        raise ValueError(f"corruptions need signals or images, got inputs of shape {tuple(inputs.shape[1:])}.")
    values = inputs.double()
    if name == "noise":
        drawn = torch.randn(values.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        values = values + NOISE * values.std() * drawn
    elif name == "blur":
        pool = F.avg_pool1d if inputs.ndim == 3 else F.avg_pool2d
        edges = (1, 1) * (inputs.ndim - 2)
        values = pool(F.pad(values, edges, mode="replicate"), 3, stride=1)
    elif name == "contrast":
        means = values.flatten(1).mean(dim=1).view(-1, *[1] * (inputs.ndim - 1))
        values = means + CONTRAST * (values - means)
    else:
        raise ValueError(f"corruption must be one of {', '.join(CORRUPTIONS)}; got {name!r}.")
    return values.round().clamp(0, 255).byte() if inputs.dtype == torch.uint8 else values.to(inputs.dtype)
