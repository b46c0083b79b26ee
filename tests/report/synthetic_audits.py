"""Synthetic audits with class names that are difficult to display."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from classgap.audit import Audit
from classgap.audit.results import BudgetShare, ErrorBudget
from classgap.audit.settings import AuditSettings
from classgap.audit.stats.intervals import wilson_interval

SCRIPT = "<script>alert(1)</script>"
NAMES = ("cat", "dog", "猫" * 30, SCRIPT, 'quote " & amp', "[red]brackets[/red]", "bell\x07\x1b[31m", "x" * 90, "ship")
FAST = AuditSettings(n_resamples=50, map_points=60)


def make_audit(classes: int, samples: int, *, skill: float, name: str, features: bool = True, seed: int = 0) -> Audit:
    """Audit Gaussian classes of different spread; the last class has no test samples."""
    rng = np.random.default_rng(7)
    means = rng.normal(size=(classes, 16))
    width = np.linspace(0.3, 2.5, classes)
    targets = rng.integers(0, classes - 1, size=samples)
    clouds = means[targets] + rng.normal(size=(samples, 16)) * width[targets, None] / skill
    clouds = (clouds + np.random.default_rng(seed).normal(size=clouds.shape) * 0.3).astype(np.float32)
    means = means.astype(np.float32)
    bias = -(means**2).sum(axis=1) / 2
    names = list(NAMES[:classes]) + [f"a class with a longer name {k}" for k in range(len(NAMES), classes)]
    return Audit.from_predictions(
        clouds @ means.T + bias,
        targets,
        features=clouds if features else None,
        head=(means, bias) if features else None,
        class_names=names,
        train_counts=np.geomspace(5, 500, classes).round(),
        name=name,
        settings=FAST,
    )


def make_budget(
    removed: Sequence[int | None],
    *,
    unexplained: int = 0,
    added: Sequence[int] = (0, 0, 0, 0),
    elsewhere: Sequence[int] = (0, 0, 0, 0),
    lower_bound: bool = False,
) -> ErrorBudget:
    """Make a budget from the errors that labels, decision, head and representation account for."""
    errors = sum(count or 0 for count in removed) + unexplained
    shares = [
        None
        if count is None
        else BudgetShare(count, count / errors if errors else 0.0, wilson_interval(count, errors), more, others)
        for count, more, others in zip(removed, added, elsewhere, strict=True)
    ]
    return ErrorBudget(errors, *shares, unexplained=unexplained, lower_bound=lower_bound)


def with_budgets(audit: Audit, *, lower_bound: bool = False) -> Audit:
    """Add budgets that split the errors of each class, and sample numbers."""
    samples = audit.samples
    wrong = np.flatnonzero(samples.targets != samples.predictions)
    totals, classes = np.zeros(4, dtype=int), []
    for entry in audit.classes:
        mine = wrong[samples.targets[wrong] == entry.index]
        if not len(mine):
            classes.append(entry)
            continue
        weights = np.roll([0.05, 0.2, 0.15, 0.6], entry.index)
        removed = np.floor(len(mine) * weights).astype(int)
        removed[3] += len(mine) - removed.sum()
        totals += removed
        budget = make_budget(
            removed.tolist(),
            added=(0, entry.index % 3, 1, 0),
            elsewhere=(0, entry.index % 2, 12, 0),
            lower_bound=lower_bound,
        )
        numbers = tuple(mine.tolist())
        classes.append(replace(entry, error_budget=budget, doubted_samples=numbers[:40], confident_errors=numbers[-9:]))
    whole = make_budget(totals.tolist(), added=(0, 7, 11, 0), lower_bound=lower_bound)
    return replace(audit, classes=tuple(classes), error_budget=whole)
