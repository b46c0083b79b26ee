"""Synthetic audits with class names that are difficult to display."""

from __future__ import annotations

import numpy as np

from classgap.audit import Audit
from classgap.audit.settings import AuditSettings

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
