"""LGM, the large-margin Gaussian mixture (Wan et al. 2018): its head and its margin schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from classgap.losses import GaussianMixtureHead, GaussianMixtureLoss
from classgap.losses.arguments import check_bool, check_choice, check_float
from classgap.methods.method import Method
from classgap.models.heads import exchange_head, head_of

if TYPE_CHECKING:
    from classgap.data.batch import Batch
    from classgap.methods.protocol import TrainingRun


class GaussianMixture(Method):
    """Replace the linear head with one Gaussian per class, with a margin on the distance to the true class.

        z_k = -½ Σ_j (f_j - μ_kj)² / σ_kj²  -  ½ ln |Λ_k|
        CE(z with d_y times 1 + α, y)  +  λ (d_y + ½ ln |Λ_y|),      d_y the distance to the true class

    Wan et al., "Rethinking feature distribution for loss functions in image classification", CVPR 2018,
    arXiv 1803.02988. Without a margin at test time, the logits are log-likelihoods up to a constant. The margin α
    starts at ``margin`` and doubles after every fraction ``doubling`` of training, up to ``largest``.

    The published code (WeitaoVan/L-GM-loss) fixes variances at 1 (``variances=unit``, the default) and omits
    ½ ln |Λ|, which only matters for learned variances (``log-determinant=no``). The defaults are those of its Caffe
    version, which doubles α every 5,000 of 120,000 steps. That version also doubles the learning rate of the means and
    adds the gradient of the likelihood without its value. The TensorFlow version keeps α at 0.1 and uses λ = 0.01. The
    MR² paper does not state its settings.

    Args:
        num_classes: Number of classes K.
        margin: Initial margin α.
        largest: Final margin α.
        doubling: Fraction of training after which α doubles.
        strength: Weight λ of the likelihood.
        variances: "unit", or "learned" per class and feature.
        log_determinant: Whether learned variances include ½ ln |Λ_k|.

    >>> method = GaussianMixture(num_classes=10)
    >>> [method.margin_at(fraction) for fraction in (0.0, 0.03, 0.05, 0.5)]
    [0.1, 0.1, 0.2, 0.3]
    """

    loss: GaussianMixtureLoss

    def __init__(
        self,
        num_classes: int,
        *,
        margin: float = 0.1,
        largest: float = 0.3,
        doubling: float = 1 / 24,
        strength: float = 0.1,
        variances: str = "unit",
        log_determinant: bool = True,
    ) -> None:
        super().__init__(GaussianMixtureLoss(num_classes, margin=margin, strength=strength))
        self.margin = float(margin)
        self.largest = check_float("largest", largest, ge=self.margin)
        self.doubling = check_float("doubling", doubling, gt=0)
        self.variances = check_choice("variances", variances, ("unit", "learned"))
        self.log_determinant = check_bool("log_determinant", log_determinant)

    def prepare(self, run: TrainingRun) -> None:
        """Replace the head."""
        width = head_of(run.model).get_parameter("weight").shape[1]
        head = GaussianMixtureHead(
            width, run.num_classes, variances=self.variances, log_determinant=self.log_determinant
        )
        exchange_head(run.model, head)

    def margin_at(self, fraction: float) -> float:
        """Return α after a fraction of training."""
        return min(self.largest, self.margin * 2.0 ** min(fraction // self.doubling, 1000.0))

    def objective(self, run: TrainingRun, batch: Batch) -> Tensor:
        """Compute the loss with the margin of this step."""
        self.loss.margin = self.margin_at(run.position.updates / run.updates)
        return super().objective(run, batch)
