"""LDAM and deferred reweighting (Cao et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from classgap.functional import effective_number_weights
from classgap.losses.arguments import check_counts, check_fraction, check_probability
from classgap.losses.ldam import LDAMLoss
from classgap.methods.method import Method
from classgap.models.cosine import CosineClassifier
from classgap.models.heads import exchange_head, head_of

if TYPE_CHECKING:
    from classgap.data.batch import Batch
    from classgap.methods.protocol import TrainingRun


class LDAM(Method):
    """The label-distribution-aware margin loss and its cosine head.

    Logits are s·cos(f, w_k), so their softmax matches the training objective. The published head returns cosines
    without the scale, which gives the same predictions. An existing cosine head keeps its weights.

    Args:
        loss: Loss with margins and scale.
    """

    loss: LDAMLoss

    def __init__(self, loss: LDAMLoss) -> None:
        super().__init__(loss)

    def prepare(self, run: TrainingRun) -> None:
        """Replace the head with a cosine classifier."""
        before = head_of(run.model)
        weight = before.get_parameter("weight")
        head = CosineClassifier(weight.shape[1], run.num_classes, scale=self.loss.scale).to(weight.device)
        if isinstance(before, CosineClassifier):
            head.weight.data.copy_(weight.data)
        exchange_head(run.model, head)

    def objective(self, run: TrainingRun, batch: Batch) -> Tensor:
        """Compute the loss from cosines, which it scales itself."""
        return self.loss(run.forward(batch.inputs) / self.loss.scale, batch.targets)


class DeferredLDAM(LDAM):
    """LDAM with class weights from effective numbers in the last part of training.

        w_c = 1 before the switch,      w_c ∝ (1 - β) / (1 - β^{N_c}),  Σ_c w_c = K  afterward            Algorithm 1

    Cao et al., "Learning Imbalanced Datasets with Label-Distribution-Aware Margin Loss", NeurIPS 2019, arXiv
    1906.07413, Sec. 3.3. Algorithm 1 uses w_c ∝ 1/N_c, the published code the weights above. The code switches at epoch
    160 of 200, where it also decays the learning rate. Here the switch is a fraction of the steps and may fall within
    an epoch.

    Args:
        loss: Loss with margins and scale.
        class_counts: Training samples per class N.
        beta: Parameter β of the effective number.
        switch: Fraction of the steps before reweighting; 1 disables it.
    """

    def __init__(
        self, loss: LDAMLoss, class_counts: Sequence[float] | Tensor, *, beta: float = 0.9999, switch: float = 0.8
    ) -> None:
        super().__init__(loss)
        self.class_counts = check_counts("class_counts", class_counts)
        self.beta = check_fraction("beta", beta)
        self.switch = check_probability("switch", switch)
        self._switched = False  # not saved: a resumed run computes the same weights again

    def objective(self, run: TrainingRun, batch: Batch) -> Tensor:
        """Compute the loss, with class weights after the switch."""
        if not self._switched and (run.position.updates + 1) / run.updates > self.switch:
            self.loss.reweight(effective_number_weights(self.class_counts, self.beta))
            self._switched = True
        return super().objective(run, batch)


def ldam(class_counts: Sequence[float] | Tensor, *, margin: float = 0.5, scale: float = 30.0) -> Method:
    """Create LDAM.

    >>> ldam([16, 1]).loss.margins
    tensor([0.2500, 0.5000])
    """
    return LDAM(LDAMLoss(class_counts, margin=margin, scale=scale))


def ldam_drw(
    class_counts: Sequence[float] | Tensor,
    *,
    margin: float = 0.5,
    scale: float = 30.0,
    beta: float = 0.9999,
    switch: float = 0.8,
) -> Method:
    """Create LDAM with deferred reweighting.

    Args:
        class_counts: Training samples per class N.
        margin: Largest margin, that of the rarest class.
        scale: Scale s of the cosines.
        beta: Parameter β of the effective number.
        switch: Fraction of the steps before reweighting; 1 disables it.

    >>> ldam_drw([16, 1]).switch
    0.8
    """
    return DeferredLDAM(LDAMLoss(class_counts, margin=margin, scale=scale), class_counts, beta=beta, switch=switch)
