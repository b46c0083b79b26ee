"""DRO-LT, distributional robustness for long-tailed data (Samuel and Chechik 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from classgap.data.sampling.orders import ClassAwareOrder, ClassBalancedOrder, Order
from classgap.distributed import all_reduce_sum
from classgap.losses import CrossEntropyLoss, DROLTLoss
from classgap.losses.arguments import check_float, check_int
from classgap.methods.method import Stage
from classgap.methods.staged import Phase, StagedMethod

if TYPE_CHECKING:
    from classgap.methods.protocol import TrainingRun


class DistributionalRobustness(StagedMethod):
    """Pretrain, learn features robust to shifts of the class centroids, then retrain the classifier.

        1. pretraining:  CE, full model
        2. features:     CE + λ mean_c mean_{x∈c} ln Σ_{x'} exp[(‖f - μ_c‖ - ‖f' - μ_c‖ + ε_c 1[y' ≠ c]) / τ],
                         classifier frozen; μ from a pass over the training set before each epoch, ε learned
        3. classifier:   CE, encoder frozen

    Samuel and Chechik, "Distributional robustness loss for long-tail learning", ICCV 2021, arXiv 2104.03066. The first
    stage lasts ``epochs`` epochs, the others 80 % and 20 % as long. Their learning rates are fractions of the run's,
    in the published proportions. From the second stage on, sampling is class-balanced; a batch holds a subset of the
    classes if not all of them fit.

    Differences from the published code (dvirsamuel/DRO-LT):

    - The code selects the features of the second stage by nearest-centroid accuracy on the *test* set; here the last
      epoch is used.
    - The code weights the cross-entropy of the second stage by N_c / max N, in favor of frequent classes; here it is
      unweighted.
    - The code computes centroids from augmented, class-balanced samples; here from each training sample once, without
      augmentation.

    The paper squares distances and sets ε ∝ 1/√N. The code learns ε without a lower bound. ``dro-lt-joint``
    implements the paper's form.

    Args:
        num_classes: Number of classes K.
        feature_dim: Width of the features D.
        strength: Weight λ of the robust term.
        temperature: Temperature τ.
        epsilon: Robustness ε: "learned", or a number for all classes.
        squared: Whether to square distances.
        per_class: Samples per class in a batch, if not all classes fit.
        feature_rate: Learning rate of the second stage, as a fraction of the run's.
        classifier_rate: Learning rate of the third stage, as a fraction of the run's.

    >>> [stage.length(100) for stage in DistributionalRobustness(10, 64).stages()]
    [100, 80, 20]
    """

    def __init__(
        self,
        num_classes: int,
        feature_dim: int,
        *,
        strength: float = 1.0,
        temperature: float = 1.0,
        epsilon: float | str = "learned",
        squared: bool = False,
        per_class: int = 4,
        feature_rate: float = 0.05,
        classifier_rate: float = 0.1,
    ) -> None:
        robust = DROLTLoss(
            num_classes, feature_dim, strength=strength, temperature=temperature, epsilon=epsilon, squared=squared
        )
        rates = [check_float("feature_rate", feature_rate, gt=0), check_float("classifier_rate", classifier_rate, gt=0)]
        super().__init__(
            Phase(Stage("pretraining"), CrossEntropyLoss(num_classes)),
            Phase(Stage("features", fraction=0.8), robust, "encoder", rates[0]),
            Phase(Stage("classifier", fraction=0.2), CrossEntropyLoss(num_classes), "head", rates[1]),
        )
        self.per_class = check_int("per_class", per_class, ge=1)

    def stage_start(self, run: TrainingRun) -> None:
        """Balance the sampling after pretraining."""
        super().stage_start(run)
        if self.phase is not self.phases[0]:
            run.order = self._balanced(run)

    def epoch_start(self, run: TrainingRun) -> None:
        """Compute the centroids in a pass over the training set, in the second stage."""
        if isinstance(self.loss, DROLTLoss):
            sums_KD = torch.zeros(self.loss.centroids.means.shape, dtype=torch.float64)
            for seen in run.iterate_outputs(run.train):
                sums_KD.index_add_(0, seen.targets_B.cpu(), seen.features_BD.cpu().double())
            counts_K = run.train_counts
            self.loss.update((all_reduce_sum(sums_KD) / counts_K.clamp(min=1)[:, None]).float(), counts_K > 0)

    def _balanced(self, run: TrainingRun) -> Order:
        assert run.config.batch_size is not None
        targets, batch, seed = run.train.targets, run.config.batch_size, run.config.seed
        classes, rest = divmod(batch, self.per_class)
        if rest or not 1 <= classes <= len(targets.unique()):  # uneven, or room for all classes
            return ClassBalancedOrder(targets, seed)
        return ClassAwareOrder(targets, self.per_class, classes, seed)


def dro_lt_joint(
    num_classes: int,
    feature_dim: int,
    class_counts: Sequence[float] | Tensor,
    *,
    strength: float = 1.0,
    temperature: float = 1.0,
    epsilon: float = 1.0,
    momentum: float = 0.9,
) -> DROLTLoss:
    """One-stage DRO-LT, the baseline of the ELM paper.

        CE  +  λ mean over samples of ln Σ_{x'} exp[(‖f - μ_y‖² - ‖f' - μ_y‖² + ε_y 1[y' ≠ y]) / τ],   ε_y = ε / √π_y

    Samuel and Chechik, "Distributional robustness loss for long-tail learning", ICCV 2021, arXiv 2104.03066, as
    written in Jitkrittum et al. 2022, arXiv 2204.13208, Eq. (5): squared distances, ε_y from the class prior π_y, no
    pass for the centroids and no classifier stage. Centroids are running means over batches. The ELM paper states
    neither ε nor how it computes the centroids.

    Args:
        num_classes: Number of classes K.
        feature_dim: Width of the features D.
        class_counts: Training samples per class.
        strength: Weight λ of the robust term.
        temperature: Temperature τ.
        epsilon: Factor ε of ε_y.
        momentum: Momentum of the running centroids.

    >>> dro_lt_joint(2, 4, [90, 10]).squared
    True
    """
    return DROLTLoss(
        num_classes,
        feature_dim,
        strength=strength,
        temperature=temperature,
        epsilon=epsilon,
        class_counts=class_counts,
        squared=True,
        average="sample",
        centroids="running",
        momentum=momentum,
    )
