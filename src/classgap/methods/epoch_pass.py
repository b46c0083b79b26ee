"""FairDRO, CSR and CDB, which update their loss in a pass over the data before each epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from classgap.distributed import all_reduce_sum
from classgap.losses.arguments import check_counts
from classgap.losses.confusional_spectral import ConfusionalSpectralLoss
from classgap.losses.difficulty_balanced import DifficultyBalancedLoss
from classgap.losses.fair_dro import FairDROLoss
from classgap.methods.class_errors import count_errors
from classgap.methods.method import Method

if TYPE_CHECKING:
    from classgap.methods.protocol import TrainingRun


class FairDRO(Method):
    """FairDRO (Jung et al. 2023): update the class weights from the class losses on the training set.

    The pass covers each sample once, in evaluation mode and without augmentation. The published code runs it in
    training mode, which updates batch norm statistics and applies dropout.

    Args:
        loss: Loss with the class weights.
    """

    loss: FairDROLoss

    def __init__(self, loss: FairDROLoss) -> None:
        super().__init__(loss)

    def prepare(self, run: TrainingRun) -> None:
        """Require samples of every class."""
        check_counts("class_counts", run.train_counts)

    def epoch_start(self, run: TrainingRun) -> None:
        """Update the class weights."""
        sums_K = torch.zeros(run.num_classes, dtype=torch.float64)
        for seen in run.iterate_outputs(run.train):
            targets_B = seen.targets_B.cpu()
            losses_B = F.cross_entropy(seen.logits_BK.cpu().double(), targets_B, reduction="none")
            sums_K.index_add_(0, targets_B, losses_B)
        self.loss.update_weights(all_reduce_sum(sums_K) / run.train_counts, progress=run.position.epoch / run.epochs)


class ConfusionalSpectral(Method):
    """CSR (Jin et al. 2025) on clean inputs: update the pair weights from the confusion matrix of the training set.

    Args:
        loss: Loss with the weights of class pairs.
    """

    loss: ConfusionalSpectralLoss

    def __init__(self, loss: ConfusionalSpectralLoss) -> None:
        super().__init__(loss)

    def epoch_start(self, run: TrainingRun) -> None:
        """Update the weights of class pairs."""
        counts_KK = torch.zeros(run.num_classes, run.num_classes, dtype=torch.long, device=run.device)
        for seen in run.iterate_outputs(run.train):
            counts_KK += self.loss.count_confusions(seen.logits_BK, seen.targets_B)
        self.loss.update_confusion(all_reduce_sum(counts_KK).cpu())


class DifficultyBalanced(Method):
    """CDB (Sinha et al. 2020): update the class weights from the class accuracies after each epoch.

    The accuracies are those on held-out samples; on the training set, only a few classes would have errors, and all the
    weight, once it is fitted. The first epoch has equal weights. A class without held-out samples takes the mean
    accuracy of the others.

    Args:
        loss: Loss with the class weights.
    """

    loss: DifficultyBalancedLoss

    def __init__(self, loss: DifficultyBalancedLoss) -> None:
        super().__init__(loss)

    def prepare(self, run: TrainingRun) -> None:
        """Require held-out samples."""
        if run.validation is None:
            raise ValueError(
                "cdb weights classes by their accuracies on held-out samples, but val_fraction is 0. "
                "Set --val-fraction 0.1."
            )

    def epoch_start(self, run: TrainingRun) -> None:
        """Update the class weights."""
        if run.position.epoch == 0:
            return
        wrong_K, count_K = count_errors(run)
        accuracies_K = 1 - wrong_K / count_K
        self.loss.update_accuracies(torch.where(count_K > 0, accuracies_K, accuracies_K.nanmean()))


def fair_dro(num_classes: int, *, radius: float = 0.5) -> Method:
    """Create FairDRO with classes as groups.

    >>> fair_dro(10).loss.radius
    0.5
    """
    return FairDRO(FairDROLoss(num_classes, radius=radius))


def cdb(num_classes: int, *, tau: float | str = "dynamic") -> Method:
    """Create CDB.

    >>> cdb(10, tau=1.5).loss.tau
    1.5
    """
    return DifficultyBalanced(DifficultyBalancedLoss(num_classes, tau=tau))


def csr(num_classes: int, *, strength: float = 0.3, narrowing: float = 0.1) -> Method:
    """Create CSR without its adversarial part.

    >>> csr(10).loss.strength
    0.3
    """
    return ConfusionalSpectral(ConfusionalSpectralLoss(num_classes, strength=strength, narrowing=narrowing))
