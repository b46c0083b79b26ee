"""A loss that is no longer a number: the run stops and says where."""

from __future__ import annotations

from torch import Tensor

SHOWN = 8  # samples in the message; all of them are in the run's failure.json


class NonFiniteLossError(ArithmeticError):
    """The loss became NaN or infinite.

    Attributes:
        where: stage, epoch and step.
        terms: names of what is not finite.
        samples: the batch's numbers in the source that the training data come from.

    >>> print(NonFiniteLossError("epoch 1, step 3", ["logits (nan)"], [17, 4]))
    the loss is not finite at epoch 1, step 3: logits (nan). The batch held samples 17, 4 of the source. Try ...
    """

    def __init__(self, where: str, terms: list[str], samples: list[int]) -> None:
        self.where, self.terms, self.samples = where, terms, samples
        shown = ", ".join(map(str, samples[:SHOWN])) + (", …" if len(samples) > SHOWN else "")
        held = f" The batch held samples {shown} of the source." if samples else ""
        super().__init__(
            f"the loss is not finite at {where}: {', '.join(terms)}.{held} Try a smaller learning rate, warm-up, "
            "gradient clipping, or bf16 or fp32 in place of fp16."
        )


def non_finite(values: dict[str, Tensor]) -> list[str]:
    """Names of the values that hold NaN or infinity.

    >>> import torch
    >>> non_finite({"loss": torch.tensor(1.0), "logits": torch.tensor([0.0, float("nan")])})
    ['logits (nan)']
    """
    return [
        f"{name} ({'nan' if bool(value.isnan().any()) else 'infinite'})"
        for name, value in values.items()
        if not bool(value.isfinite().all())
    ]
