"""The value of a trial: its change against the baseline on validation samples, by the measure that a fix uses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from classgap.audit import read_predictions
from classgap.audit._types import Integers
from classgap.audit.io.predictions import Predictions
from classgap.audit.io.rows import as_tensor
from classgap.engine import RunDirectory
from classgap.remedies.adjustments import Context
from classgap.remedies.evaluation import Measured
from classgap.remedies.selection import cross_fit
from classgap.remedies.sources import Source


@dataclass(frozen=True)
class Judge:
    """Validation samples with the scores of the baseline.

    Attributes:
        baseline: Scores of the baseline.
        labels_N: True classes.
        context: Goal, priors and costs.
        seed: Seed of the folds.
    """

    baseline: Source
    labels_N: Integers
    context: Context
    seed: int

    @classmethod
    def from_run(cls, run: Path, context: Context, seed: int) -> Judge:
        """Read the baseline."""
        data = _read_validation(run)
        return cls(_to_source("baseline", data, is_baseline=True), data.targets_N, context, seed)

    def measure(self, run: Path) -> dict[str, Measured]:
        """Measure a finished run against the baseline; test samples are not read.

        In each fold of the validation samples, the others rank the classes into thirds: thirds that the measured
        samples rank would make the baseline look worse than it is.
        """
        data = _read_validation(run)
        if not np.array_equal(data.targets_N, self.labels_N):
            raise ValueError(f"{run} has other validation samples than the baseline: start the search over.")
        sources = [self.baseline, _to_source(run.name, data)]
        return dict(cross_fit(sources, self.labels_N, (), self.context, seed=self.seed)[0].estimate)


def _read_validation(run: Path) -> Predictions:
    """Read the validation predictions of a finished run."""
    return replace(read_predictions(RunDirectory(run).val_predictions), name=f"{run.parent.name}/{run.name}")


def _to_source(name: str, data: Predictions, *, is_baseline: bool = False) -> Source:
    assert data.logits_NK is not None
    return Source(name, as_tensor(data.logits_NK), is_baseline=is_baseline, adjustable=False)
