"""LDAM and deferred re-weighting (Cao et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from classgap.functional import effective_number_weights
from classgap.losses.arguments import check_counts, check_float, check_fraction
from classgap.losses.ldam import LDAMLoss
from classgap.methods.method import Method
from classgap.models.cosine import CosineClassifier
from classgap.models.heads import exchange_head, head_of

if TYPE_CHECKING:
    from classgap.data.batches import Batch
    from classgap.engine.run import Run


class LDAM(Method):
    """The label-distribution-aware margin loss with the cosine head that it requires.

    The model's logits are s·cos(f, w_k), so that their softmax is the one that was trained; the published head gives
    the cosines alone, which rank the classes the same. A head that is a cosine classifier keeps its directions.

    Args:
        loss: with margins and scale.
    """

    loss: LDAMLoss

    def __init__(self, loss: LDAMLoss) -> None:
        super().__init__(loss)

    def prepare(self, run: Run) -> None:
        """Put the cosine head into the model."""
        before = head_of(run.model)
        weight = before.get_parameter("weight")
        head = CosineClassifier(weight.shape[1], run.num_classes, scale=self.loss.scale).to(weight.device)
        if isinstance(before, CosineClassifier):
            head.weight.data.copy_(weight.data)
        exchange_head(run.model, head)

    def objective(self, run: Run, batch: Batch) -> Tensor:
        """The loss takes cosines, and scales them itself."""
        return self.loss(run.forward(batch.inputs) / self.loss.scale, batch.targets)


class DeferredLDAM(LDAM):
    """LDAM whose classes are weighted by their effective numbers once the representation has formed.

        w_c = 1 before the switch,      w_c ∝ (1 - β) / (1 - β^{N_c}),  Σ_c w_c = K  from then on          Algorithm 1

    Cao et al., "Learning Imbalanced Datasets with Label-Distribution-Aware Margin Loss", NeurIPS 2019, arXiv
    1906.07413, Sec. 3.3. The algorithm has w_c ∝ 1/N_c, the published code the weights above. Its schedule switches at
    epoch 160 of 200, where it also lowers the learning rate. Here updates are counted, so that runs of a few epochs or
    of a number of steps switch too, in mid-epoch if need be.

    Args:
        loss: with margins and scale.
        class_counts: N, training samples of each class.
        beta: β.
        switch: the share of the updates after which the weights change; 1 is never.
    """

    def __init__(
        self, loss: LDAMLoss, class_counts: Sequence[float] | Tensor, *, beta: float = 0.9999, switch: float = 0.8
    ) -> None:
        super().__init__(loss)
        self.class_counts = check_counts("class_counts", class_counts)
        self.beta = check_fraction("beta", beta)
        if check_float("switch", switch, ge=0) > 1:
            raise ValueError(f"switch must be a share of the updates from 0 to 1; got {switch!r}.")
        self.switch = switch
        self._switched = False  # a resumed run finds out again, and gives the same weights

    def objective(self, run: Run, batch: Batch) -> Tensor:
        """The loss; from the update on in which the switch falls, with the weights."""
        if not self._switched and (run.position.updates + 1) / run.updates > self.switch:
            self.loss.reweight(effective_number_weights(self.class_counts, self.beta))
            self._switched = True
        return super().objective(run, batch)


def ldam(class_counts: Sequence[float] | Tensor, *, margin: float = 0.5, scale: float = 30.0) -> Method:
    """LDAM.

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
    """LDAM with deferred re-weighting.

    Args:
        class_counts: N, training samples of each class.
        margin: the largest margin, that of the rarest class.
        scale: s, of the cosines.
        beta: β.
        switch: the share of the updates after which the weights change; 1 is never.

    >>> ldam_drw([16, 1]).switch
    0.8
    """
    return DeferredLDAM(LDAMLoss(class_counts, margin=margin, scale=scale), class_counts, beta=beta, switch=switch)
