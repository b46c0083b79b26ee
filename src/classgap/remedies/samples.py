"""Samples of a fix: predictions for fitting and for testing, checked against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from classgap.audit.io.predictions import Predictions
from classgap.audit.io.rows import as_tensor
from classgap.remedies.checks import (
    check_disjoint,
    check_distinct,
    check_models,
    check_same_classes,
    check_same_models,
    check_support,
    find_ambiguous,
    order_notices,
)
from classgap.remedies.sources import READS_PROBABILITIES, Source, ensemble


@dataclass(frozen=True)
class Samples:
    """Fitting and test samples, checked.

    Attributes:
        fit: predictions of the model to fix for the fitting samples.
        test: its predictions for the test samples, or ``None``.
        sources: scores to choose from; the first is the model to fix.
        notices: remarks about the inputs.
    """

    fit: Predictions
    test: Predictions | None
    sources: tuple[Source, ...]
    notices: tuple[str, ...] = ()

    @classmethod
    def from_predictions(cls, fit: Sequence[Predictions], test: Sequence[Predictions] | None = None) -> Samples:
        """Check the predictions of one model or several; the model to fix is the most accurate one.

        Raises:
            ValueError: if scores are missing, files do not match, a class has too few samples, or fitting samples are
                test samples.
        """
        if test is not None and len(test) != len(fit):
            raise ValueError(f"fit and test must have one file per model each, got {len(fit)} and {len(test)} files.")
        check_models(fit)
        check_distinct(fit)
        notices: tuple[str, ...] = ()
        left_out = 0
        if test is not None:
            check_models(test)
            check_same_classes(fit[0], test[0])
            check_same_models(fit, test)
            check_distinct(test)
            shared_N, notices = check_disjoint(fit, test)
            notices = (*order_notices(fit, test), *notices)
            left_out = len(shared_N)
            if left_out:
                kept_N = np.setdiff1d(np.arange(len(fit[0])), shared_N)
                fit = [each.take(kept_N) for each in fit]
        check_support(fit[0], None if test is None else test[0], left_out)
        best = int(np.argmax([np.mean(each.predictions_N == each.targets_N) for each in fit]))
        order = [best, *(i for i in range(len(fit)) if i != best)]
        ambiguous, ambiguity = find_ambiguous(fit)
        models = [
            Source(
                fit[i].name,
                _logits(fit[i]),
                None if test is None else _logits(test[i]),
                is_baseline=i == best,
                details=((READS_PROBABILITIES, False),) if ambiguous[i] else (),
            )
            for i in order
        ]
        by_place = [models[order.index(i)] for i in range(len(fit))]  # an ensemble keeps the order of the files
        sources = (models[0], *([ensemble(by_place)] if len(models) > 1 else []))
        return cls(fit[best], None if test is None else test[best], sources, (*notices, *ambiguity))


def _logits(data: Predictions) -> Tensor:
    assert data.logits_NK is not None
    return as_tensor(data.logits_NK)
