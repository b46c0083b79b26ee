"""Pruning of a trial against the trials that finished before it started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from classgap.remedies.search.optional import quiet_optuna, require_optuna

N_STARTUP_TRIALS = 3  # finished trials before the first one may be pruned
WARMUP = 0.25  # fraction of the epochs in which no trial is pruned


class Pruner:
    """Optuna's median rule: stop if the best value so far is below the median of the finished trials at this epoch.

    The decisions depend on ``history`` and the trial's own values only, so they are the same after a resume.

    Args:
        history: Values per epoch of the finished trials.

    >>> pruner = Pruner([(0.5, 0.6, 0.7, 0.8)] * 3)
    >>> pruner.add(0.4), pruner.add(0.7), Pruner([(0.5, 0.6)] * 3).add(0.4)
    (True, False, True)
    """

    def __init__(self, history: Sequence[Sequence[float]]) -> None:
        optuna = require_optuna()
        self._epochs = max((len(values) for values in history), default=0)
        self._epoch = 0
        pruner = optuna.pruners.MedianPruner(N_STARTUP_TRIALS, n_warmup_steps=max(1, int(WARMUP * self._epochs)))
        with quiet_optuna():
            study = optuna.create_study(direction="maximize", pruner=pruner)
        for values in history:
            numbered: Any = dict(enumerate(values, start=1))
            study.add_trial(optuna.trial.create_trial(value=0.0, intermediate_values=numbered))
        self._trial = study.ask()

    def add(self, value: float) -> bool:
        """Add the value of an epoch; return whether to stop. The last epoch never stops: nothing would be saved."""
        self._epoch += 1
        self._trial.report(value, self._epoch)
        return self._epoch < self._epochs and bool(self._trial.should_prune())
