"""Sources of scores: one model, several averaged, several views of each image, a refitted head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor, nn

from classgap.audit._types import Integers
from classgap.remedies.modules import MeanProbability, mean_probability

READS_PROBABILITIES = "reads_probabilities"  # a detail: whether rows of probabilities among the scores are converted

Inputs = Literal["logits", "ensemble", "features", "images", "samples"]


@dataclass(frozen=True)
class Source:
    """Scores of the fitting samples, and of the test samples if there are any.

    Attributes:
        name: name of the remedy, or of the model for the baseline.
        logits_NK: scores of the fitting samples.
        test_logits_NK: scores of the test samples.
        inputs: what ``module`` takes: "logits" of one model, the stacked logits of an "ensemble", "features",
            "images", or "samples" of other shapes.
        module: maps the inputs to logits (B, K).
        passes: forward passes of a model per prediction.
        is_baseline: whether this is the model to fix.
        adjustable: whether adjustments may be fitted on top.
        is_average: whether it averages models or views, which favors no class over another.
        members: models whose logits the inputs stack, in order.
        details: plain values that describe the source, for the saved fix.
    """

    name: str
    logits_NK: Tensor = field(repr=False)
    test_logits_NK: Tensor | None = field(repr=False, default=None)
    inputs: Inputs = "logits"
    module: nn.Module = field(repr=False, default_factory=nn.Identity)
    passes: float = 1.0
    is_baseline: bool = False
    adjustable: bool = True
    is_average: bool = False
    members: tuple[str, ...] = ()
    details: tuple[tuple[str, Any], ...] = ()

    @cached_property
    def predictions_N(self) -> Integers:
        """Predicted classes of the fitting samples."""
        return self.logits_NK.argmax(dim=1).numpy()

    def take(self, rows: Integers) -> Source:
        """Return the source with some of the fitting samples."""
        return replace(self, logits_NK=self.logits_NK[torch.from_numpy(rows)])


def ensemble(sources: Sequence[Source]) -> Source:
    """Average the probabilities of several models.

    >>> a, b = Source("a", torch.zeros(1, 2)), Source("b", torch.tensor([[0.0, 2.0]]))
    >>> ensemble([a, b]).logits_NK.exp().sum().item()
    1.0
    """
    test = [source.test_logits_NK for source in sources]
    reads = [bool(dict(source.details).get(READS_PROBABILITIES, True)) for source in sources]
    return Source(
        "ensemble",
        mean_probability([source.logits_NK for source in sources]),
        None if any(each is None for each in test) else mean_probability([each for each in test if each is not None]),
        inputs="ensemble",
        is_average=True,
        module=MeanProbability(),
        passes=float(len(sources)),
        members=tuple(source.name for source in sources),
        details=((READS_PROBABILITIES, reads),) if not all(reads) else (),
    )
