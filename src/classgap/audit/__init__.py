"""Predictions in, numbers out: which classes a classifier fails, how sure that is, why, and what a change did.

Shapes are written as suffixes: N samples, K classes, D features, U classes present, R bootstrap replicates.
"""

from classgap.audit.audit import Audit
from classgap.audit.diff import AuditDiff, compare
from classgap.audit.io.predictions import Predictions
from classgap.audit.io.readers import read_predictions
from classgap.audit.settings import AuditSettings

__all__ = ["Audit", "AuditDiff", "AuditSettings", "Predictions", "compare", "read_predictions"]
