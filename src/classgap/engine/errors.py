"""Exceptions that end a training run."""

from __future__ import annotations

MAX_SAMPLES_SHOWN = 8  # failure.json in the run directory lists all of them


class TrainingInterrupted(Exception):
    """A signal stopped the run; it was saved and can be resumed.

    Args:
        message: One sentence for the user.
        signal: Name of the signal that this process received; "" if another process received it.

    >>> TrainingInterrupted("stopped by SIGTERM at epoch 3; run the same command to continue.", "SIGTERM").signal
    'SIGTERM'
    """

    def __init__(self, message: str, signal: str = "") -> None:
        super().__init__(message)
        self.signal = signal


class RunLockedError(ValueError):
    """Another process is training in the run directory."""


class NonFiniteLossError(FloatingPointError):
    """The loss became NaN or infinite.

    Attributes:
        where: Stage, epoch and step.
        terms: Names of the values that are not finite.
        samples: Indices of the batch's samples in the source of the training data.

    >>> print(NonFiniteLossError("epoch 1, step 3", ["logits (nan)"], [17, 4]))
    the loss is not finite at epoch 1, step 3: logits (nan). The batch contains samples 17, 4 of the source. Try ...
    """

    def __init__(self, where: str, terms: list[str], samples: list[int]) -> None:
        self.where, self.terms, self.samples = where, terms, samples
        more = ", …" if len(samples) > MAX_SAMPLES_SHOWN else ""
        shown = ", ".join(map(str, samples[:MAX_SAMPLES_SHOWN])) + more
        held = f" The batch contains samples {shown} of the source." if samples else ""
        super().__init__(
            f"the loss is not finite at {where}: {', '.join(terms)}.{held} Try a smaller learning rate, warmup, "
            "gradient clipping, or bf16 or fp32 instead of fp16."
        )
