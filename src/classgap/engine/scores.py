"""What a model says about a split, and how well it does by class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from classgap.audit.metrics.groups import thirds


@dataclass(frozen=True)
class Predicted:
    """The class that a model gives each sample of a split.

    Attributes:
        classes_N: predicted.
        targets_N: true.
        num_classes: K.
    """

    classes_N: Tensor
    targets_N: Tensor
    num_classes: int

    def accuracies(self) -> dict[str, float]:
        """Accuracy over samples, over classes ("balanced"), over the three thirds of classes, and of the worst class.

        >>> Predicted(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 1]), 3).accuracies()["balanced"]
        0.8333333333333334
        """
        right_N = (self.classes_N == self.targets_N).double()
        count_K = torch.bincount(self.targets_N, minlength=self.num_classes)
        by_class = (torch.bincount(self.targets_N, weights=right_N, minlength=self.num_classes) / count_K).numpy()
        seen = ~np.isnan(by_class)  # a class without samples has no accuracy
        groups = {name: by_class[members].mean() for name, members in thirds(by_class, seen).items() if len(members)}
        known = by_class[seen]
        figures = {"accuracy": right_N.mean(), "balanced": known.mean(), **groups, "worst": known.min()}
        return {name: float(value) for name, value in figures.items()}


@dataclass(frozen=True)
class Scores:
    """One pass over a split, every sample once, in the split's order, on the CPU.

    Attributes:
        logits_NK: at least float32.
        features_ND: what the head was applied to; of width 0 unless they were asked for.
        targets_N: true classes.
    """

    logits_NK: Tensor
    features_ND: Tensor
    targets_N: Tensor

    def accuracies(self) -> dict[str, float]:
        """Those of the predicted classes."""
        return Predicted(self.logits_NK.argmax(dim=1), self.targets_N, self.logits_NK.shape[1]).accuracies()
