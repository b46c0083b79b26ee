"""``fix_by_training``: search training settings, then choose among the trained models and all other remedies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from classgap.audit import AuditSettings, read_predictions
from classgap.audit._types import Integers
from classgap.audit.io.predictions import Predictions
from classgap.engine.train import load_dataset
from classgap.remedies.checks import check_support, shared_samples
from classgap.remedies.fix import Samples, fix_samples
from classgap.remedies.results import FixResult, RemedyResult
from classgap.remedies.rule import Rule
from classgap.remedies.search.config import SearchConfig
from classgap.remedies.search.executors import Workers
from classgap.remedies.search.loop import describe_time, search
from classgap.remedies.search.objective import read_validation, to_source
from classgap.remedies.search.records import OnProgress, SearchResult, TrialRecord
from classgap.remedies.sources import Source, ensemble

MAX_MEMBERS = 4  # models of the ensemble
PREFIX = "trained:"


def fix_by_training(
    config: SearchConfig,
    *,
    goal: str = "hard",
    max_easy_loss: float | None = None,
    max_overall_loss: float = 0.1,
    costs: Any = None,
    priors: Any = None,
    confidence_level: float = 0.95,
    on_progress: OnProgress | None = None,
    workers: Workers | None = None,
) -> FixResult:
    """Search training settings, choose among the trained models and other remedies, and prove the choice once.

    The model to fix is the baseline: cross-entropy with default settings. The remedies are the best model of each
    training method ("trained:mr2"), an ensemble of the best models, and adjustments of all of them. The search and the
    choice use validation samples, the proof test samples. Estimates of trained models are optimistic, because the same
    validation samples chose their settings; the changes are not.

    Args:
        config: Settings of the search.
        goal: See :func:`classgap.remedies.fix`, also for the other arguments.
        max_easy_loss: Accuracy of the easy third that a remedy may cost, in percentage points.
        max_overall_loss: Accuracy over all samples that a remedy may cost, in percentage points.
        costs: (K, K), cost of predicting the class of the column for a sample of the class of the row.
        priors: (K,), class frequencies at prediction time.
        confidence_level: Level of all intervals.
        on_progress: Called when a trial starts or ends.
        workers: Any executor, instead of the one that ``config`` names.

    Raises:
        ValueError: If an argument is invalid, or the baseline failed or did not finish in time.
        TrainingInterrupted: If a signal stopped the search; it was saved.
    """
    rule = Rule(goal, max_easy_loss, max_overall_loss, costs, priors)
    data = load_dataset(config.data)
    context, limits = rule.resolve(data.class_names, data.train_counts.numpy().astype(float))
    result = search(config, context, None if goal == "cost" else limits, on_progress, workers)
    samples = trained_samples(result)
    settings = AuditSettings(map="none", diagnose=False, confidence_level=confidence_level, seed=config.seed)
    context = replace(context, train_counts_K=samples.fit.train_counts_K)
    fixed = fix_samples(samples, context, limits, settings)
    best = best_by_method(result)
    return replace(fixed, remedies=tuple(_with_settings(each, best) for each in fixed.remedies))


def best_by_method(result: SearchResult) -> dict[str, TrialRecord]:
    """Return the best completed trial of each training method, without the baseline."""
    found: dict[str, TrialRecord] = {}
    for each in result.ranked():
        if each.number:
            found.setdefault(f"{PREFIX}{each.method}", each)
    return found


def trained_samples(result: SearchResult) -> Samples:
    """Return the scores of the baseline, of the best model of each method, and of the best models averaged."""
    baseline = result.baseline
    fit, test = read_validation(baseline.run), read_predictions(baseline.run)
    notices = [describe_time(result)]
    shared = sorted({row for row, _ in shared_samples(fit, test)})
    rows = np.setdiff1d(np.arange(len(fit)), shared)
    if shared:
        notices.append(f"left out {len(shared)} validation samples that are also test samples.")
    fit = _take(fit, rows)
    check_support(fit, test)
    sources = [to_source(fit.name, fit, test, is_baseline=True)]
    sources += [_source(name, each, rows) for name, each in best_by_method(result).items()]
    members = result.ranked()[:MAX_MEMBERS]
    if len(members) > 1:
        sources.append(ensemble([_source(_run_name(each), each, rows) for each in members]))
    return Samples(fit, test, tuple(sources), tuple(notices))


def _source(name: str, record: TrialRecord, rows: Integers) -> Source:
    details = {"run": str(record.run), "training_seconds": f"{record.seconds:.1f}"}
    details |= {key: str(value) for key, value in record.params.items()}
    return to_source(name, _take(read_validation(record.run), rows), read_predictions(record.run), details=details)


def _run_name(record: TrialRecord) -> str:
    return f"{record.run.parent.name}/{record.run.name}"


def _take(data: Predictions, rows: Integers) -> Predictions:
    assert data.logits_NK is not None
    return Predictions.from_arrays(
        data.targets_N[rows],
        logits=data.logits_NK[torch.from_numpy(rows)],
        class_names=data.class_names,
        train_counts=data.train_counts_K,
        name=data.name,
    )


def _with_settings(remedy: RemedyResult, best: dict[str, TrialRecord]) -> RemedyResult:
    """Add the training settings and the training time to the row of a trained model."""
    record = best.get(remedy.name.split("+")[0])
    if record is None:
        return remedy
    numbers = {name: float(value) for name, value in record.params.items() if isinstance(value, int | float)}
    return replace(remedy, settings={**numbers, "training_seconds": record.seconds, **remedy.settings})
