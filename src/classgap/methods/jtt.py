"""Just Train Twice (Liu et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from classgap.data.sampling.order import Repeated, count_batches
from classgap.distributed import Shards, world_size
from classgap.losses.arguments import check_choice, check_float, check_int, check_probability
from classgap.losses.cross_entropy import CrossEntropyLoss
from classgap.methods.method import Method, Stage

if TYPE_CHECKING:
    from classgap.data.batches import Batch
    from classgap.engine.run import Run

FIND, RETRAIN = "find errors", "train"


class JustTrainTwice(Method):
    """Plain training for a few epochs, then from the start again with the samples it got wrong up-sampled.

    Liu et al., "Just Train Twice: Improving Group Robustness without Training Group Information", ICML 2021, arXiv
    2107.09044. The second training begins with the first one's initial weights. An error appears ``copies`` + 1 times
    an epoch, so that epochs are longer; the paper's λ is ``copies`` + 1, the published option is ``copies``.

    The error set is that of the paper, what the first network gets wrong at the end, in a pass without augmentation; or
    that of the published code, the predictions made on the way through the last epoch, each before its own update. What
    that epoch leaves out (--steps may cut it short, and a few samples that fill no batch are dropped) counts with its
    visit before. If nothing is wrong, the second training is plain. Both numbers below should be chosen on held-out
    samples: with many epochs there are no errors left, with few nearly everything is one.

    Args:
        num_classes: K.
        num_samples: of the training set.
        first: the share of the run's epochs that the first training takes.
        copies: additional appearances of an error.
        errors: "clean" or "online".

    Attributes:
        wrong: whether each training sample is in the error set.

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
        """Two trainings, each with an optimiser and a schedule of its own."""
        return (Stage(FIND, share=self.first), Stage(RETRAIN))

    def refuses_mixing(self) -> str:
        """A mixed sample is neither right nor wrong."""
        return "errors=online looks at single samples" if self.errors == "online" else super().refuses_mixing()

    def prepare(self, run: Run) -> None:
        """Keep the initial weights, which are the same whenever the run is made."""
        if run.config.sampler != "random":
            raise ValueError(f"jtt repeats samples itself; sampler must be random, got {run.config.sampler!r}.")
        if self.errors == "online" and run.config.steps is not None:
            self._expect_an_epoch(run, run.config.steps)
        self._initial = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}

    def stage_start(self, run: Run) -> None:
        """Begin again, with the errors repeated."""
        if run.stage.name != RETRAIN:
            return
        run.model.load_state_dict(self._initial)
        if self.copies and bool(self.wrong.any()):  # else the very order of plain training
            run.order = Repeated(1 + self.copies * self.wrong.long().cpu(), run.config.seed)

    def epoch_start(self, run: Run) -> None:
        """Metrics tell how many errors there are."""
        if run.stage.name == RETRAIN:
            run.meter.add({"errors": int(self.wrong.sum())}, 1)

    def objective(self, run: Run, batch: Batch) -> Tensor:
        """Cross-entropy."""
        logits = run.forward(batch.inputs)
        if self.loss.updates and self.errors == "online" and run.stage.name == FIND:  # the last visit is what stays
            shards = Shards.from_batch_size(len(batch), run.device)
            wrong_B = (logits.detach().argmax(dim=1) != batch.labels).long()  # gloo does not send bools
            self.wrong[shards.gather(batch.rows)] = shards.gather(wrong_B).bool()
        return self.loss(logits, batch.targets)

    def stage_end(self, run: Run) -> None:
        """Clean errors: look at every sample once."""
        if run.stage.name == FIND and self.errors == "clean":
            predicted = run.predictions(run.train)
            self.wrong.copy_(predicted.classes_N != predicted.targets_N)

    def _expect_an_epoch(self, run: Run, steps: int) -> None:
        assert run.config.batch_size is not None
        found = self.stages()[0].length(steps)
        needed = count_batches(len(run.train), run.config.batch_size, world_size())
        if found < needed:
            raise ValueError(
                f"jtt:errors=online has to go through the training set, which takes {needed} updates, but the first "
                f"training has {found}, a share of {self.first:g} of steps={steps}; use at least "
                f"{math.ceil(needed / self.first)} steps, a larger first=…, or errors=clean."
            )
