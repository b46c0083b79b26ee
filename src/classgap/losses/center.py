"""Center loss (Wen et al. 2016), the "DFL" baseline of the MR² paper."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from classgap.losses.added_term import AddedTermLoss
from classgap.losses.arguments import check_choice, check_float, check_int
from classgap.losses.inputs import LossInputs
from classgap.state.buffers import write


class CenterLoss(AddedTermLoss):
    """Cross-entropy plus a pull of each sample toward the center of its class.

        mean over samples of   CE(z, y)  +  λ ½ ‖f - c_y‖²                                         Eq. (2), (5)
        c_k  ←  c_k - α Σ_{i∈k} (c_k - f_i) / (1 + n_k),   n_k samples of class k in the batch          Eq. (4)

    Wen et al., "A discriminative feature learning approach for deep face recognition", ECCV 2016. Centers start at 0. A
    batch first uses the centers and then updates those of its classes, with the samples of all processes.

    Differences between sources:

    - The official code (ydwen/caffe-face) updates centers with the solver's learning rate instead of α, applies weight
      decay to them and initializes them at random. Its example uses λ = 0.008, the paper 0.003.
    - The common PyTorch code (KaiyangZhou/pytorch-center-loss) has no ½, so its weight w corresponds to λ = 2w. Its
      centers are parameters: ``centers="trained"``. Their gradient is proportional to the fraction of the *batch* in
      the class, so they move slowly if there are many classes. It trains them with a separate learning rate of 0.5 and
      removes w from their gradient; ``train_own_parameters(loss, optimizer, lr=0.5 / w)`` does the same.
    - The ELM paper omits ½ and uses class means for c. The MR² paper does not state λ.

    Args:
        num_classes: Number of classes K.
        feature_dim: Number of features D.
        strength: Weight λ of the pull.
        centers: "running" to update centers by Eq. (4), "trained" for parameters that an optimizer trains.
        rate: Update rate α of running centers.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> loss = CenterLoss(num_classes=2, feature_dim=2)
    >>> _ = loss(torch.zeros(1, 2), torch.tensor([0]), features=torch.tensor([[1.0, 1.0]]))
    >>> loss.terms["center"], loss.centers[0]
    (tensor(1.), tensor([0.2500, 0.2500]))
    """

    term_name = "center"
    centers: Tensor

    def __init__(
        self,
        num_classes: int,
        feature_dim: int,
        *,
        strength: float = 0.008,
        centers: str = "running",
        rate: float = 0.5,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(
            num_classes, strength=strength, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args
        )
        self.rate = check_float("rate", rate, gt=0)
        self.running = check_choice("centers", centers, ("running", "trained")) == "running"
        start_KD = torch.zeros(self.num_classes, check_int("feature_dim", feature_dim, ge=1))
        if self.running:
            self.register_buffer("centers", start_KD)
        else:
            self.centers = nn.Parameter(start_KD)

    def term(self, batch: LossInputs) -> Tensor:
        """½ ‖f - c_y‖²."""
        away_BD = batch.features - self.centers.to(batch.features.dtype)[batch.labels_B.clamp(min=0)]
        away_BD = torch.where(batch.labels_B[:, None] >= 0, away_BD, 0)
        if self.running and self.updates:
            self._update_centers(away_BD.detach(), batch)
        return away_BD.square().sum(dim=1) / 2

    @torch.no_grad()
    def _update_centers(self, away_BD: Tensor, batch: LossInputs) -> None:
        """Eq. (4)."""
        groups = batch.group_by_class(self.num_classes)
        sums_UD = groups.sum(batch.shards.gather(away_BD))
        step_UD = self.rate * sums_UD / (1 + groups.counts_U)[:, None]
        if batch.finite is not None:
            step_UD = torch.where(batch.finite, step_UD, 0)
        write(self, "centers", self.centers[groups.classes_U] + step_UD, groups.classes_U)

    def feature_width(self) -> int:
        """Return ``feature_dim``."""
        return self.centers.shape[1]
