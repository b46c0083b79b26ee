"""Errors of each class, for methods that follow them during training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from classgap.methods.protocol import TrainingRun


def count_errors(run: TrainingRun) -> tuple[Tensor, Tensor]:
    """Count the errors and the samples of each class, on every process.

    The samples are the held-out ones, or those of the training set if none are held out: without augmentation and in
    evaluation mode.

    Returns:
        Errors and samples per class, float64, (K,) each.
    """
    seen = run.predictions(run.train if run.validation is None else run.validation)
    wrong_N = (seen.classes_N != seen.targets_N).double()
    wrong_K = torch.bincount(seen.targets_N, weights=wrong_N, minlength=run.num_classes)
    return wrong_K, torch.bincount(seen.targets_N, minlength=run.num_classes).double()
