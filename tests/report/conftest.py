"""Audits and comparisons shared by the report tests."""

from __future__ import annotations

import pytest
from synthetic_audits import FAST, SCRIPT, make_audit, with_budgets

from biased_predictions import biased
from classgap.audit import Audit, AuditDiff, History
from classgap.audit.io.predictions import Predictions
from classgap.remedies import FixResult, fix


@pytest.fixture(scope="session")
def audit() -> Audit:
    """Nine classes with difficult names and all inputs."""
    return make_audit(9, 900, skill=1.0, name="before <b>")


@pytest.fixture(scope="session")
def labels_audit(audit: Audit) -> Audit:
    """The same predictions as labels only: no scores, features or training counts."""
    samples = audit.samples
    return Audit.from_predictions(
        predictions=samples.predictions, targets=samples.targets, class_names=audit.class_names, settings=FAST
    )


@pytest.fixture(scope="session")
def budget_audit(audit: Audit) -> Audit:
    """The audit with error budgets and sample numbers."""
    return with_budgets(audit)


@pytest.fixture(scope="session")
def many_audit() -> Audit:
    """100 classes: too many for one row each."""
    return make_audit(100, 4000, skill=1.0, name="many")


@pytest.fixture(scope="session")
def diff(audit: Audit) -> AuditDiff:
    """A significant change."""
    return AuditDiff.from_audits(audit, make_audit(9, 900, skill=1.6, name="after", seed=1), n_resamples=50)


@pytest.fixture(scope="session")
def runs_diff(audit: Audit) -> AuditDiff:
    """Two runs per side."""
    before = [audit, make_audit(9, 900, skill=1.0, name="before", seed=2)]
    after = [make_audit(9, 900, skill=1.3, name="after", seed=seed) for seed in (3, 4)]
    return AuditDiff.from_audits(before, after, n_resamples=50)


def predictions(seed: int, *, noise: float = 0.0, bias: float = 1.0, n: int = 900) -> Predictions:
    """Predictions of a biased model, with difficult names."""
    names = [SCRIPT, "a & b", *"cdefghi"]
    return Predictions.from_arrays(**biased(n, seed, bias=bias, noise=noise, names=names), name=f"model {noise} <b>")


@pytest.fixture(scope="session")
def tested_fix() -> FixResult:
    """Two models with test samples."""
    fit, test = ([predictions(seed, noise=noise) for noise in (0.9, 0.91)] for seed in (0, 1))
    return fix(fit, test)


@pytest.fixture(scope="session")
def nested_fix() -> FixResult:
    """One model without test samples."""
    return fix(predictions(0), max_easy_loss=100)


@pytest.fixture(scope="session")
def no_fix() -> FixResult:
    """No remedy is within the limits."""
    return fix(predictions(0, bias=0.0), predictions(1, bias=0.0), max_easy_loss=0, max_overall_loss=0)


@pytest.fixture(scope="session")
def history(audit: Audit) -> History:
    """Three releases with difficult names."""
    others = [make_audit(9, 900, skill=skill, name=SCRIPT, seed=2) for skill in (1.2, 1.5)]
    return History.from_audits([audit, *others])
