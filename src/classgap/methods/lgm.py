"""LGM, the large-margin Gaussian mixture (Wan et al. 2018): its head in the model, its margin over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from classgap.losses import GaussianMixtureHead, GaussianMixtureLoss
from classgap.losses.arguments import check_bool, check_choice, check_float
from classgap.methods.method import Method
from classgap.models.heads import exchange_head, head_of

if TYPE_CHECKING:
    from classgap.data.batches import Batch
    from classgap.engine.run import Run


class GaussianMixture(Method):
    """A Gaussian of each class in the place of the linear head, and a margin on the distance to the own one.

        z_k = -½ Σ_j (f_j - μ_kj)² / σ_kj²  -  ½ ln |Λ_k|
        CE(z with the own distance times 1 + α, y)  +  λ (distance to the own mean + ½ ln |Λ_y|)

    Wan et al., "Rethinking feature distribution for loss functions in image classification", CVPR 2018,
    arXiv 1803.02988. At test there is no margin: the logits are log-likelihoods up to a constant. The margin α starts
    at ``margin`` and doubles with every ``doubling`` of the training until it is ``largest``.

    Where sources differ: the published code (WeitaoVan/L-GM-loss) fixes variances at 1 (``variances=unit``, the
    default) and has no ½ ln |Λ|, which matters for learned ones only (``log-determinant=no``). Its Caffe version, whose
    settings are the defaults here, doubles α after each 5,000 of 120,000 steps, gives the means twice the learning
    rate, and adds the gradient of the likelihood, but not its value; its TensorFlow version keeps α at 0.1 and has
    λ = 0.01. The MR² paper does not tell its settings.

    Args:
        num_classes: K.
        margin: α at the start.
        largest: α at the end.
        doubling: after which share of the training α doubles, again and again.
        strength: λ.
        variances: "unit", or "learned" for each class and feature.
        log_determinant: whether learned variances have their ½ ln |Λ_k|.

    >>> method = GaussianMixture(num_classes=10)
    >>> [method.margin_at(share) for share in (0.0, 0.03, 0.05, 0.5)]
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

    def prepare(self, run: Run) -> None:
        """Exchange the head."""
        width = head_of(run.model).get_parameter("weight").shape[1]
        head = GaussianMixtureHead(
            width, run.num_classes, variances=self.variances, log_determinant=self.log_determinant
        )
        exchange_head(run.model, head)

    def margin_at(self, share: float) -> float:
        """α after this share of the training."""
        return min(self.largest, self.margin * 2.0 ** min(share // self.doubling, 1000.0))

    def objective(self, run: Run, batch: Batch) -> Tensor:
        """The loss with the margin of this step."""
        self.loss.margin = self.margin_at(run.position.updates / run.updates)
        return super().objective(run, batch)
