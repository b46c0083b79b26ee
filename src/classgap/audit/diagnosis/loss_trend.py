"""Whether the training loss was still falling when a run ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from classgap.audit._types import Floats

WINDOW = 5  # windows are a fifth of the epochs
HIGH_RATE = 0.5  # of the peak learning rate
MIN_EPOCHS = 4  # at a high learning rate
MIN_FALL = 0.05  # from one window to the next, of the loss or of its fall since the first epoch
LEAST_FALL = 0.01  # of the loss, in any case
DEVIATIONS = 2.0  # standard errors that the fall must exceed


@dataclass(frozen=True)
class LossTrend:
    """Training loss in two windows of epochs, near the end of the epochs with a high learning rate.

    Attributes:
        before: mean loss of the first window.
        after: mean loss of the second window, which follows the first.
        fall: ``before - after``, minus the part that the learning-rate schedule explains.
        noise: standard error of ``fall``.
        progress: loss of the first epoch minus ``after``.
        epoch: last epoch of the second window.
        epochs: all epochs of the stage.
    """

    before: float
    after: float
    fall: float
    noise: float
    progress: float
    epoch: int
    epochs: int

    @property
    def falling(self) -> bool:
        """Whether more training at this learning rate would have lowered the loss.

        The fall must be clear of noise, and large for the loss or, early in a slow training, for its fall so far.
        """
        large = MIN_FALL * min(self.before, max(self.progress, 0.0))
        return self.fall > max(large, LEAST_FALL * self.before, DEVIATIONS * self.noise)

    @classmethod
    def from_epochs(cls, losses_E: Floats, rates_E: Floats) -> LossTrend | None:
        """Compare the last fifth of the epochs with a high learning rate with the fifth before.

        A schedule that ends near 0 lowers the loss of a converged network too, because smaller steps add less noise.
        Such a fall is no room for improvement, so the last epochs of an annealed run show nothing. Two rules leave it
        out. The windows end where the learning rate was last at least half its peak; the rest of a cosine schedule adds
        less than a fifth to the sum of the learning rates, so a network that was far from converged there is not
        converged at the end either. And if the learning rate differs between the windows, the fall that the schedule
        explains is subtracted: noise adds a loss proportional to the learning rate, and the slope is at most that of
        the fall from the second window to the end of the run, (L_after - L_end) / (lr_after - lr_end).

        The standard error comes from second differences, which a steady fall does not change: a loss with independent
        errors of variance σ² has second differences of variance 6σ².

        Args:
            losses_E: mean training loss of each epoch of the last stage.
            rates_E: learning rate of each epoch.

        Returns:
            ``None`` with fewer than ``MIN_EPOCHS`` epochs at a high learning rate, or if the loss is not positive.

        >>> steady = LossTrend.from_epochs(np.linspace(2, 1, 20), np.ones(20))
        >>> steady.falling, steady.epoch, round(steady.before - steady.after, 3)
        (True, 20, 0.211)
        >>> LossTrend.from_epochs(1 + 0.5 ** np.arange(20), np.ones(20)).falling
        False
        """
        high_E = np.flatnonzero(rates_E >= HIGH_RATE * rates_E.max())
        first, stop = int(high_E[0]), int(high_E[-1]) + 1
        width = (stop - first) // WINDOW or 1
        if stop - first < MIN_EPOCHS:
            return None
        early, late, end = slice(stop - 2 * width, stop - width), slice(stop - width, stop), slice(-width, None)
        before, after, final = (float(losses_E[window].mean()) for window in (early, late, end))
        rate_before, rate_after, rate_final = (float(rates_E[window].mean()) for window in (early, late, end))
        if before <= 0 or after <= 0:
            return None
        explained = 0.0
        if rate_before > rate_after > rate_final:
            slope = max(after - final, 0.0) / (rate_after - rate_final)
            explained = slope * (rate_before - rate_after)
        bends = np.diff(losses_E[stop - max(2 * width, MIN_EPOCHS) : stop], n=2)
        noise = float(np.sqrt((bends**2).mean() / 6 * 2 / width))
        progress = float(losses_E[0]) - after
        return cls(before, after, before - after - explained, noise, progress, stop, len(losses_E))
