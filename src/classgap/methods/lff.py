"""Learning from Failure (Nam et al. 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from classgap.distributed import Shards
from classgap.losses.arguments import check_float, check_fraction
from classgap.losses.cross_entropy import CrossEntropyLoss
from classgap.methods.method import Method

if TYPE_CHECKING:
    from classgap.data.batch import Batch
    from classgap.methods.protocol import TrainingRun


class LearningFromFailure(Method):
    """Train a biased network on easy samples, and upweight the samples that it fails on.

        biased network:   mean of   q p_y^q CE_b,       p_y its probability of the label, detached
        main network:     mean of   w CE,               w = E_b / (E_b + E + 1e-8), detached

    Nam et al., "Learning from Failure: Training Debiased Classifier from Biased Classifier", NeurIPS 2020, arXiv
    2007.02561. E_b and E are running means of each training sample's cross-entropy under the two networks, divided by
    the maximum over its class. Only the main network is evaluated and saved.

    As published, the loss of the biased network has a factor q that is not in the gradient of the generalized
    cross-entropy (1 - p_y^q)/q. No setting recovers plain training: two equal networks give each sample a weight of
    0.5. With --micro-batches, the maximum over the class is recomputed for each micro-batch.

    Args:
        num_classes: Number of classes K.
        num_samples: Size of the training set.
        q: Exponent of the generalized cross-entropy; larger values favor easy samples more.
        decay: Decay of the running means.

    Attributes:
        second: The biased network.
        second_losses: Running loss of each training sample under the biased network, (N,).
        own_losses: Running loss of each training sample under the main network, (N,).
        seen: Mask of the samples with a running loss, (N,).

    >>> method = LearningFromFailure(num_classes=2, num_samples=3)
    >>> method.own_losses += torch.tensor([1.0, 1.0, 2.0])
    >>> method.second_losses += torch.tensor([3.0, 6.0, 0.0])
    >>> method.weights(torch.tensor([0, 1, 2]))  # 0.5/(0.5 + 0.5), 1/(1 + 0.5), 0/(0 + 1)
    tensor([0.5000, 0.6667, 0.0000])
    """

    second: nn.Module
    second_losses: Tensor
    own_losses: Tensor
    seen: Tensor
    labels: Tensor

    def __init__(self, num_classes: int, num_samples: int, *, q: float = 0.7, decay: float = 0.7) -> None:
        super().__init__(CrossEntropyLoss(num_classes))
        self.second_loss = CrossEntropyLoss(num_classes)
        self.q = check_float("q", q, gt=0)
        self.decay = check_fraction("decay", decay)
        for name in ("second_losses", "own_losses"):
            self.register_buffer(name, torch.zeros(num_samples))
        self.register_buffer("seen", torch.zeros(num_samples, dtype=torch.bool))
        self.register_buffer("labels", torch.zeros(num_samples, dtype=torch.long), persistent=False)

    def mixing_conflict(self) -> str:
        """Return a reason: losses are tracked per sample."""
        return "it tracks the loss of each sample"

    def prepare(self, run: TrainingRun) -> None:
        """Create the biased network."""
        self.second = run.new_model()
        self.labels.copy_(run.train.targets)

    def parameter_groups(self, run: TrainingRun) -> list[dict[str, Any]]:
        """Return the parameters of both networks."""
        return [
            {"params": [each for each in net.parameters() if each.requires_grad]} for net in (run.model, self.second)
        ]

    def objective(self, run: TrainingRun, batch: Batch) -> Tensor:
        """Sum the losses of both networks; no gradient flows between them."""
        logits, second_logits = run.forward(batch.inputs), run.outputs(self.second, batch.inputs)
        with torch.no_grad():
            own_B, second_B = (
                F.cross_entropy(each.float(), batch.labels, reduction="none") for each in (logits, second_logits)
            )
            if self.loss.updates:
                self._update_losses(batch.rows, own_B, second_B)
            weight_B = self.weights(batch.rows)
            second_weight_B = self.q * (-self.q * second_B).exp()
        second_value: Tensor = self.second_loss(second_logits, batch.targets, sample_weight=second_weight_B)
        value: Tensor = self.loss(logits, batch.targets, sample_weight=weight_B)
        self.loss.terms["second"] = second_value.detach()
        return value + second_value

    def weights(self, rows_B: Tensor) -> Tensor:
        """Return the weights w of training samples, (B,)."""
        own_B, second_B = (self._relative_loss(each, rows_B) for each in (self.own_losses, self.second_losses))
        return second_B / (second_B + own_B + 1e-8)

    def _relative_loss(self, losses_N: Tensor, rows_B: Tensor) -> Tensor:
        largest_K = losses_N.new_zeros(self.loss.num_classes).scatter_reduce(0, self.labels, losses_N, "amax")
        return losses_N[rows_B] / largest_K[self.labels[rows_B]].clamp(min=torch.finfo(losses_N.dtype).tiny)

    def _update_losses(self, rows_B: Tensor, own_B: Tensor, second_B: Tensor) -> None:
        """Update the running means with the samples of all processes."""
        shards = Shards.from_batch_size(len(rows_B), rows_B.device)
        rows_U, place_N = shards.gather(rows_B).unique(return_inverse=True)
        times_U = torch.bincount(place_N, minlength=len(rows_U))
        kept_U = torch.where(self.seen[rows_U], self.decay, 0.0)
        for losses_N, new_B in ((self.own_losses, own_B), (self.second_losses, second_B)):
            # A sample that occurs several times counts once, with its mean.
            sums_U = losses_N.new_zeros(len(rows_U)).index_add(0, place_N, shards.gather(new_B))
            losses_N[rows_U] = kept_U * losses_N[rows_U] + (1 - kept_U) * sums_U / times_U
        self.seen[rows_U] = True
