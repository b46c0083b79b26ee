"""DRO-LT, distributional robustness for the long tail (Samuel and Chechik 2021), in its three stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from classgap.data.sampling.order import ClassAware, ClassBalanced, Order
from classgap.distributed import all_reduce_sum
from classgap.losses import CrossEntropyLoss, DROLTLoss
from classgap.losses.arguments import check_float, check_int
from classgap.methods.method import Stage
from classgap.methods.staged import Phase, StagedMethod

if TYPE_CHECKING:
    from classgap.engine.run import Run


class DistributionalRobustness(StagedMethod):
    """Cross-entropy; then features that stay near their class's centroid, even a shifted one; then a new classifier.

        1. pretraining:  CE, all of the model
        2. features:     CE + λ mean_c mean_{x∈c} ln Σ_{x'} exp[(‖f - μ_c‖ - ‖f' - μ_c‖ + ε_c 1[y' ≠ c]) / τ],
                         the classifier frozen; μ from a pass over the training set before every epoch, ε learned
        3. classifier:   CE, the encoder frozen

    Samuel and Chechik, "Distributional robustness loss for long-tail learning", ICCV 2021, arXiv 2104.03066. The first
    stage has the run's epochs, the others 80 and 20 of 100 of them, at the published rates as shares of 0.1. From the
    second stage on classes are drawn equally often, in batches of a few classes if all do not fit.

    Where published code (dvirsamuel/DRO-LT) and this differ: the code chooses the features of the second stage by
    nearest-centroid accuracy on the *test* set, here it is the last epoch; it weights the second stage's cross-entropy
    by N_c / max N, in favour of frequent classes, here it is plain; its passes see augmented, class-balanced samples,
    here every training sample once and as it is. Where the code and the paper differ: the paper squares distances and
    has ε ∝ 1/√N; the code learns ε, which nothing bounds from below. ``dro-lt-joint`` has the other form.

    Args:
        num_classes: K.
        feature_dim: D, the width of the features.
        strength: λ.
        temperature: τ.
        epsilon: ε: "learned", or a number for all classes.
        squared: whether distances are squared.
        per_class: samples of a class in a batch, where not all classes fit.
        feature_rate: of the second stage, as a share of the run's learning rate.
        classifier_rate: of the third stage.

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
            Phase(Stage("features", share=0.8), robust, "encoder", rates[0]),
            Phase(Stage("classifier", share=0.2), CrossEntropyLoss(num_classes), "head", rates[1]),
        )
        self.per_class = check_int("per_class", per_class, ge=1)

    def stage_start(self, run: Run) -> None:
        """Classes equally often, after the pretraining."""
        super().stage_start(run)
        if self.phase is not self.phases[0]:
            run.order = self._balanced(run)

    def epoch_start(self, run: Run) -> None:
        """In the second stage: a pass over the training set for the centroids."""
        if isinstance(self.loss, DROLTLoss):
            sums_KD = torch.zeros(self.loss.centroids.means.shape, dtype=torch.float64)
            for seen in run.look(run.train):
                sums_KD.index_add_(0, seen.targets_B.cpu(), seen.features_BD.cpu().double())
            counts_K = run.train_counts
            self.loss.update((all_reduce_sum(sums_KD) / counts_K.clamp(min=1)[:, None]).float(), counts_K > 0)

    def _balanced(self, run: Run) -> Order:
        assert run.config.batch_size is not None
        targets, batch, seed = run.train.targets, run.config.batch_size, run.config.seed
        classes, rest = divmod(batch, self.per_class)
        if rest or not 1 <= classes <= len(targets.unique()):  # all classes fit into a batch
            return ClassBalanced(targets, seed)
        return ClassAware(targets, self.per_class, classes, seed)


def one_stage(
    num_classes: int,
    feature_dim: int,
    class_counts: Sequence[float] | Tensor,
    *,
    strength: float = 1.0,
    temperature: float = 1.0,
    epsilon: float = 1.0,
    momentum: float = 0.9,
) -> DROLTLoss:
    """The form that the ELM paper compares with, trained like any loss.

        CE  +  λ mean over samples of ln Σ_{x'} exp[(‖f - μ_y‖² - ‖f' - μ_y‖² + ε_y 1[y' ≠ y]) / τ],   ε_y = ε / √π_y

    Samuel and Chechik, "Distributional robustness loss for long-tail learning", ICCV 2021, arXiv 2104.03066, as
    Jitkrittum et al. 2022, arXiv 2204.13208, write it in Eq. (5): squared distances, a robustness that follows the
    class's share, and neither a pass for the centroids nor a stage for the classifier. Centroids are running means of
    the batches'. That paper gives neither the factor ε nor how it finds the centroids.

    Args:
        num_classes: K.
        feature_dim: D, the width of the features.
        class_counts: training samples of each class.
        strength: λ.
        temperature: τ.
        epsilon: the factor ε of ε_y.
        momentum: of the running centroids.

    >>> one_stage(2, 4, [90, 10]).squared
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
