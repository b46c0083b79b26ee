"""Losses that a pass over the training set informs once an epoch: FairDRO and CSR."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from classgap.losses.confusional_spectral import ConfusionalSpectralLoss
from classgap.losses.fair_dro import FairDROLoss
from classgap.methods.method import Method

if TYPE_CHECKING:
    from classgap.engine.run import Run


class FairDRO(Method):
    """FairDRO (Jung et al. 2023): before each epoch the class weights answer the class losses of the training set.

    The pass sees every sample once, without augmentation, in evaluation mode and on all processes together. The
    published one runs in training mode: it moves the statistics of batch norm, and dropout is active.

    Args:
        loss: its weights are renewed.
    """

    loss: FairDROLoss

    def __init__(self, loss: FairDROLoss) -> None:
        super().__init__(loss)

    def epoch_start(self, run: Run) -> None:
        """Look at the training set and answer."""
        scores = run.scores(run.train)
        progress = run.position.epoch / run.epochs
        self.loss.update_weights(class_losses(scores.logits_NK, scores.targets_N), progress=progress)


class ConfusionalSpectral(Method):
    """CSR (Jin et al. 2025) on clean inputs: before each epoch the confusions of the training set are counted.

    Args:
        loss: its weights of class pairs are renewed.
    """

    loss: ConfusionalSpectralLoss

    def __init__(self, loss: ConfusionalSpectralLoss) -> None:
        super().__init__(loss)

    def epoch_start(self, run: Run) -> None:
        """Look at the training set and count."""
        scores = run.scores(run.train)
        self.loss.update_confusion(self.loss.count_confusions(scores.logits_NK, scores.targets_N))


def class_losses(logits_NK: Tensor, targets_N: Tensor) -> Tensor:
    """Mean cross-entropy of each class in float64, (K,); NaN for a class without samples.

    >>> class_losses(torch.tensor([[0.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 0]))
    tensor([0.6931,    nan], dtype=torch.float64)
    """
    classes = logits_NK.shape[1]
    losses_N = F.cross_entropy(logits_NK.double(), targets_N, reduction="none")
    sums_K = losses_N.new_zeros(classes).index_add(0, targets_N, losses_N)
    return sums_K / torch.bincount(targets_N, minlength=classes)


def fair_dro(num_classes: int, *, radius: float = 0.5) -> Method:
    """FairDRO with classes as groups.

    >>> fair_dro(10).loss.radius
    0.5
    """
    return FairDRO(FairDROLoss(num_classes, radius=radius))


def csr(num_classes: int, *, strength: float = 0.3, narrowing: float = 0.1) -> Method:
    """CSR without its adversarial part.

    >>> csr(10).loss.strength
    0.3
    """
    return ConfusionalSpectral(ConfusionalSpectralLoss(num_classes, strength=strength, narrowing=narrowing))
