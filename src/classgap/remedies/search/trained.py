"""``fix_by_training``: search training settings, then choose among the trained models and all other remedies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from classgap.audit import AuditSettings
from classgap.engine.executors import Workers
from classgap.engine.train import load_dataset
from classgap.remedies.fix import fix_samples
from classgap.remedies.results import FixResult, RemedyResult
from classgap.remedies.rule import Rule
from classgap.remedies.runs import Progress
from classgap.remedies.search.budget import format_seconds
from classgap.remedies.search.config import SearchConfig
from classgap.remedies.search.loop import describe_time, search
from classgap.remedies.search.records import PREFIX, OnProgress, SearchResult, TrialRecord, best_by_method
from classgap.remedies.search.trained_sources import cross_validated_samples, trained_samples


def fix_by_training(
    config: SearchConfig,
    *,
    goal: str = "hard",
    max_easy_loss: float | None = None,
    max_overall_loss: float = 0.1,
    max_medium_loss: float | None = None,
    costs: Any = None,
    priors: Any = None,
    confidence_level: float = 0.95,
    on_progress: OnProgress | None = None,
    progress: Progress = lambda message: None,
    workers: Workers | None = None,
) -> FixResult:
    """Search training settings, choose among the trained models and other remedies, and prove the choice once.

    The model to fix is the baseline: cross-entropy with default settings. The remedies are the best model of each
    training method ("trained:mr2"), an ensemble of the best models, views of images, and adjustments of all of them.
    The search and the choice use validation samples, the proof test samples. If the budget allows it, the two best
    models and the baseline are cross-validated, so that all training samples choose, and then trained on all of them.
    Estimates of trained models are optimistic, because the same samples chose their settings; the changes are not.

    Args:
        config: Settings of the search.
        goal: See :func:`classgap.remedies.fix`, also for the other arguments.
        max_easy_loss: Accuracy of the easy third that a remedy may cost, in percentage points.
        max_overall_loss: Accuracy over all samples that a remedy may cost, in percentage points.
        max_medium_loss: Accuracy of the medium third that a remedy may cost, in percentage points.
        costs: (K, K), cost of predicting the class of the column for a sample of the class of the row.
        priors: (K,), class frequencies at prediction time.
        confidence_level: Level of all intervals.
        on_progress: Called when a trial starts or ends.
        progress: Called with a line of text before each step after the search.
        workers: Any executor, instead of the one that ``config`` names.

    Raises:
        ValueError: If an argument is invalid, or the baseline failed or did not finish in time.
        TrainingInterrupted: If a signal stopped the search; it was saved.
    """
    rule = Rule(goal, max_easy_loss, max_overall_loss, max_medium_loss, costs, priors)
    data = load_dataset(config.data)
    context, limits = rule.resolve(data.class_names, data.train_counts.numpy().astype(float))
    result = search(config, context, None if goal == "cost" else limits, on_progress, workers, progress)
    samples = cross_validated_samples(result, progress) if result.finalists else trained_samples(result, progress)
    progress("trying remedies")
    settings = AuditSettings(map="none", diagnose=False, confidence_level=confidence_level, seed=config.seed)
    context = replace(context, train_counts_K=samples.fit.train_counts_K)
    fixed = fix_samples(samples, context, limits, settings)
    best = best_by_method(result)
    return replace(
        fixed,
        remedies=tuple(_with_settings(each, best) for each in fixed.remedies),
        notices=(describe_time(result), *describe_choice(result), *fixed.notices),
    )


def describe_choice(result: SearchResult) -> tuple[str, ...]:
    """Explain which samples were used to choose, and which runs of the cross-validation failed."""
    methods = {each.number: f"{PREFIX}{each.method}" for each in result.trials} | {0: "the baseline"}
    failed = tuple(
        f"{methods[number]} was not cross-validated, because a run failed ({reason})."
        for number, reason in result.failures.items()
    )
    if result.finalists:
        names = " and ".join(methods[each.record.number] for each in result.finalists[1:])
        folds = len(result.finalists[0].folds)
        done = f"cross-validated the baseline and {names} in {folds} folds, then trained them on all samples."
        return (done, *failed)
    if failed:
        return (
            *failed,
            "One held-out split was used to choose, not cross-validation. To try again, rerun the command, with a "
            "larger budget if it is used up.",
        )
    if result.seconds_short:
        needed = format_seconds(result.seconds_short)
        return (
            f"The budget was too short to choose by cross-validation (about {needed}): one held-out split was used.",
        )
    return ()


def _with_settings(remedy: RemedyResult, best: dict[str, TrialRecord]) -> RemedyResult:
    """Add the training settings and the training time to the row of a trained model."""
    record = best.get(remedy.name.split("+")[0])
    if record is None:
        return remedy
    numbers = {name: float(value) for name, value in record.params.items() if isinstance(value, int | float)}
    return replace(remedy, settings={**numbers, "training_seconds": record.seconds, **remedy.settings})
