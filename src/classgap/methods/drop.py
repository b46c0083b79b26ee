"""DRoP: class quotas proportional to class errors (Vysogorets et al. 2025)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from classgap.data.sampling.orders import QuotaOrder, RepeatedOrder
from classgap.data.splits import draw_per_class
from classgap.functional import error_quotas
from classgap.losses.arguments import check_bool, check_float, check_probability
from classgap.losses.cross_entropy import CrossEntropyLoss
from classgap.methods.class_errors import count_errors
from classgap.methods.method import Method, Stage

if TYPE_CHECKING:
    from classgap.methods.protocol import TrainingRun

MEASURE, RETRAIN = "measure errors", "train"


class DistributionallyRobustPruning(Method):
    """Train, then restart on a random subset of each class, which is larger for classes with more errors.

        d_k = min(1, s e_k),      Σ_k N_k d_k = d N,      e_k = (errors_k + a) / (n_k + 2a)                 Algorithm 1

    Vysogorets et al., "DRoP: Distributionally Robust Data Pruning", ICLR 2025, arXiv 2404.05579. The errors are those
    of the first model on the n_k held-out samples of class k, or on its training samples if none are held out; after
    long training few errors remain there, so set --val-fraction. The second model starts from the same initial weights.
    Its epochs have d N samples; classes whose quota would exceed their size are used in full.

    The paper draws one subset and trains on it (``redraw=no``). By default each epoch draws a new one, so that no
    sample is lost. The paper does not smooth the errors (``smoothing=0``), but has larger validation sets. Without
    smoothing, a class with few held-out samples and no errors would lose its training samples. At least one sample of
    each class is kept.

    Args:
        num_classes: Number of classes K.
        density: Fraction d of the training samples to use per epoch.
        first: Length of the first stage, as a fraction of the run's epochs.
        redraw: Whether to draw a new subset for each epoch.
        smoothing: Pseudo-count a of errors and of correct predictions per class.

    Attributes:
        quotas: Samples of each class per epoch, (K,).

    >>> [(stage.name, stage.length(40)) for stage in DistributionallyRobustPruning(num_classes=2, first=0.5).stages()]
    [('measure errors', 20), ('train', 40)]
    """

    quotas: Tensor

    def __init__(
        self,
        num_classes: int,
        *,
        density: float = 0.5,
        first: float = 1.0,
        redraw: bool = True,
        smoothing: float = 1.0,
    ) -> None:
        super().__init__(CrossEntropyLoss(num_classes))
        self.density = check_probability("density", check_float("density", density, gt=0))
        self.first = check_probability("first", check_float("first", first, gt=0))
        self.redraw = check_bool("redraw", redraw)
        self.smoothing = check_float("smoothing", smoothing, ge=0)
        self.register_buffer("quotas", torch.zeros(num_classes, dtype=torch.long))

    def stages(self) -> Sequence[Stage]:
        """Return the two stages."""
        return (Stage(MEASURE, fraction=self.first), Stage(RETRAIN))

    def prepare(self, run: TrainingRun) -> None:
        """Keep the initial weights, which depend on the seed only."""
        if run.config.sampler != "random":
            raise ValueError(f"sampler must be random with drop, which samples itself, got {run.config.sampler!r}.")
        self._initial = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}

    def stage_start(self, run: TrainingRun) -> None:
        """Restart from the initial weights and draw by the quotas."""
        if run.stage.name != RETRAIN:
            return
        run.model.load_state_dict(self._initial)
        if not bool(self.quotas.any()):  # not measured yet: all samples
            return
        quotas_K, targets_N, seed = self.quotas.cpu(), run.train.targets, run.config.seed
        if self.redraw:
            run.order = QuotaOrder(targets_N, quotas_K, seed)
            return
        kept = torch.zeros(len(targets_N), dtype=torch.long)
        kept[draw_per_class(targets_N, run.train.index, quotas_K, seed, "prune")] = 1
        run.order = RepeatedOrder(kept, seed)

    def epoch_start(self, run: TrainingRun) -> None:
        """Report the number of samples in use."""
        if run.stage.name == RETRAIN:
            run.meter.add({"kept": int(self.quotas.sum())}, 1)

    def stage_end(self, run: TrainingRun) -> None:
        """Measure the errors of the first model and set the quotas."""
        if run.stage.name != MEASURE:
            return
        wrong_K, count_K = count_errors(run)
        errors_K = (wrong_K + self.smoothing) / (count_K + 2 * self.smoothing)
        self.quotas.copy_(error_quotas(run.train_counts, errors_K, self.density))
