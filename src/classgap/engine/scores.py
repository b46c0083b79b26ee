"""What a model says about a split, and how well it does by class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from classgap.audit.groups import thirds


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

    def class_accuracies(self) -> Tensor:
        """Accuracy of each class, NaN for one without samples, (K,)."""
        classes = self.logits_NK.shape[1]
        right_N = (self.logits_NK.argmax(dim=1) == self.targets_N).double()
        count_K = torch.bincount(self.targets_N, minlength=classes)
        return torch.bincount(self.targets_N, weights=right_N, minlength=classes) / count_K

    def accuracies(self) -> dict[str, float]:
        """Accuracy over samples, over classes ("balanced"), over the three thirds of classes, and of the worst class.

        >>> one_hot = torch.eye(3)[torch.tensor([0, 1, 2, 0])]
        >>> Scores(one_hot, one_hot, torch.tensor([0, 1, 2, 1])).accuracies()["balanced"]
        0.8333333333333334
        """
        by_class = self.class_accuracies().numpy()
        seen = ~np.isnan(by_class)
        groups = {name: by_class[members].mean() for name, members in thirds(by_class, seen).items() if len(members)}
        right = (self.logits_NK.argmax(dim=1) == self.targets_N).double().mean()
        figures = {"accuracy": right, "balanced": by_class[seen].mean(), **groups, "worst": by_class[seen].min()}
        return {name: float(value) for name, value in figures.items()}
