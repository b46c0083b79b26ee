"""Per-class evaluation of classifiers and comparisons between them.

Suffixes are shapes: N samples, K classes, D features, U classes present, R bootstrap resamples.
"""

from classgap.audit.accumulator import AuditAccumulator
from classgap.audit.audit import Audit
from classgap.audit.diff import AuditDiff, compare
from classgap.audit.gate import gate
from classgap.audit.gate_results import GateResult
from classgap.audit.gate_rules import GateRules
from classgap.audit.history import History, history
from classgap.audit.io.predictions import Predictions
from classgap.audit.io.readers import read_predictions
from classgap.audit.results import Notice
from classgap.audit.settings import AuditSettings

__all__ = [
    "Audit",
    "AuditAccumulator",
    "AuditDiff",
    "AuditSettings",
    "GateResult",
    "GateRules",
    "History",
    "Notice",
    "Predictions",
    "compare",
    "gate",
    "history",
    "read_predictions",
]
