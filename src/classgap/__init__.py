"""classgap finds the classes a classifier fails on, explains why, and closes the gap.

Everything people type in a notebook is here and is imported on first use, so that ``import classgap`` stays light::

    import classgap as cg

    audit = cg.Audit.from_predictions(logits, targets)
    loss = cg.losses.MR2Loss(num_classes=10)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from classgap._version import __version__

if TYPE_CHECKING:
    from classgap import data, functional, losses, methods, models, theory
    from classgap.audit import (
        Audit,
        AuditAccumulator,
        AuditDiff,
        AuditSettings,
        GateResult,
        GateRules,
        History,
        compare,
    )
    from classgap.audit.gate import gate
    from classgap.audit.history import history
    from classgap.engine import TrainConfig
    from classgap.engine.train import train
    from classgap.features import FeatureTap
    from classgap.inference import LoadedRun, PredictResult, load_run
    from classgap.remedies import ClassOffsetClassifierCV, Fix, FixResult, load_fix
    from classgap.remedies.fix import fix

_PACKAGES = ("data", "functional", "losses", "methods", "models", "theory")
_NAMES = {
    "Audit": "classgap.audit",
    "AuditAccumulator": "classgap.audit",
    "AuditDiff": "classgap.audit",
    "AuditSettings": "classgap.audit",
    "ClassOffsetClassifierCV": "classgap.remedies",
    "compare": "classgap.audit",
    "FeatureTap": "classgap.features",
    "Fix": "classgap.remedies",
    "FixResult": "classgap.remedies",
    "fix": "classgap.remedies",
    "GateResult": "classgap.audit",
    "GateRules": "classgap.audit",
    "gate": "classgap.audit",
    "History": "classgap.audit",
    "history": "classgap.audit",
    "load_fix": "classgap.remedies",
    "load_run": "classgap.inference",
    "LoadedRun": "classgap.inference",
    "PredictResult": "classgap.inference",
    "TrainConfig": "classgap.engine",
    "train": "classgap.engine",
}

__all__ = [
    "Audit",
    "AuditAccumulator",
    "AuditDiff",
    "AuditSettings",
    "ClassOffsetClassifierCV",
    "FeatureTap",
    "Fix",
    "FixResult",
    "GateResult",
    "GateRules",
    "History",
    "LoadedRun",
    "PredictResult",
    "TrainConfig",
    "__version__",
    "compare",
    "data",
    "fix",
    "functional",
    "gate",
    "history",
    "load_fix",
    "load_run",
    "losses",
    "methods",
    "models",
    "theory",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"classgap.{name}")
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
        globals()[name] = value  # found once, it is an ordinary attribute
        return value
    raise AttributeError(f"module 'classgap' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
