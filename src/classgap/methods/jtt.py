"""Just Train Twice (Liu et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from classgap.data.sampling.batching import count_batches
from classgap.data.sampling.orders import RepeatedOrder
from classgap.distributed import Shards, world_size
from classgap.losses.arguments import check_choice, check_float, check_int, check_probability
from classgap.losses.cross_entropy import CrossEntropyLoss
from classgap.methods.method import Method, Stage

if TYPE_CHECKING:
    from classgap.data.batch import Batch
    from classgap.methods.protocol import TrainingRun

FIND, RETRAIN = "find errors", "train"


class JustTrainTwice(Method):
    """Train for a few epochs, then restart and upsample the training samples that were misclassified.

    Liu et al., "Just Train Twice: Improving Group Robustness without Training Group Information", ICML 2021, arXiv
    2107.09044. The second model starts from the same initial weights. Each error appears ``copies`` + 1 times per
    epoch, which makes epochs longer. The paper's λ is ``copies`` + 1; the option of the published code is ``copies``.

    With ``errors=clean`` the error set is that of the paper: errors of the first model at the end, in a pass without
    augmentation. With ``errors=online`` it is that of the published code: errors made during the last epoch, each
    before its own update. Samples that this epoch does not reach (because of --max-steps or an incomplete batch) keep
    the result of their previous visit. Without errors, the second stage is plain training. Select ``first`` and
    ``copies`` on held-out samples: after many epochs no errors remain; after few, almost all samples are errors.

    Args:
        num_classes: Number of classes K.
        num_samples: Size of the training set.
        first: Length of the first stage, as a fraction of the run's epochs.
        copies: Additional appearances of each error per epoch.
        errors: Definition of the error set, "clean" or "online".

    Attributes:
        wrong: Mask of the error set, (N,).

    >>> [(stage.name, stage.length(300)) for stage in JustTrainTwice(num_classes=2, num_samples=10).stages()]
    [('find errors', 60), ('train', 300)]
    """

    wrong: Tensor

    def __init__(
        self, num_classes: int, num_samples: int, *, first: float = 0.2, copies: int = 20, errors: str = "clean"
    ) -> None:
        super().__init__(CrossEntropyLoss(num_classes))
        self.first = check_probability("first", check_float("first", first, gt=0))
        self.copies = check_int("copies", copies, ge=0)
        self.errors = check_choice("errors", errors, ("clean", "online"))
        self.register_buffer("wrong", torch.zeros(num_samples, dtype=torch.bool))

    def stages(self) -> Sequence[Stage]:
        """Return the two stages."""
        return (Stage(FIND, fraction=self.first), Stage(RETRAIN))

    def mixing_conflict(self) -> str:
        """Return a reason for online errors: a mixed sample has no single label."""
        return "errors=online needs one label per sample" if self.errors == "online" else super().mixing_conflict()

    def prepare(self, run: TrainingRun) -> None:
        """Keep the initial weights, which depend on the seed only."""
        if run.config.sampler != "random":
            raise ValueError(f"sampler must be random with jtt, which resamples itself, got {run.config.sampler!r}.")
        if self.errors == "online" and run.config.max_steps is not None:
            self._require_full_epoch(run, run.config.max_steps)
        self._initial = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}

    def stage_start(self, run: TrainingRun) -> None:
        """Restart from the initial weights and upsample the errors."""
        if run.stage.name != RETRAIN:
            return
        run.model.load_state_dict(self._initial)
        if self.copies and bool(self.wrong.any()):  # otherwise the order equals that of plain training
            run.order = RepeatedOrder(1 + self.copies * self.wrong.long().cpu(), run.config.seed)

    def epoch_start(self, run: TrainingRun) -> None:
        """Report the size of the error set."""
        if run.stage.name == RETRAIN:
            run.meter.add({"errors": int(self.wrong.sum())}, 1)

    def objective(self, run: TrainingRun, batch: Batch) -> Tensor:
        """Compute cross-entropy and record online errors."""
        logits = run.forward(batch.inputs)
        if self.loss.updates and self.errors == "online" and run.stage.name == FIND:  # later visits overwrite
            shards = Shards.from_batch_size(len(batch), run.device)
            wrong_B = (logits.detach().argmax(dim=1) != batch.labels).long()  # gloo does not send bools
            self.wrong[shards.gather(batch.rows)] = shards.gather(wrong_B).bool()
        return self.loss(logits, batch.targets)

    def stage_end(self, run: TrainingRun) -> None:
        """Find clean errors in a pass over the training set."""
        if run.stage.name == FIND and self.errors == "clean":
            predicted = run.predictions(run.train)
            self.wrong.copy_(predicted.classes_N != predicted.targets_N)

    def _require_full_epoch(self, run: TrainingRun, steps: int) -> None:
        assert run.config.batch_size is not None
        found = self.stages()[0].length(steps)
        needed = count_batches(len(run.train), run.config.batch_size, world_size())
        if found < needed:
            raise ValueError(
                f"jtt:errors=online needs a full epoch of {needed} steps in the first stage, which has {found} "
                f"(first={self.first:g} of max_steps={steps}). Set max_steps to at least "
                f"{math.ceil(needed / self.first)}, increase first, or use errors=clean."
            )
