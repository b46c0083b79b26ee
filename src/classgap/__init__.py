"""classgap finds the classes a classifier fails, explains why, and closes the gap."""

from classgap import functional, losses, methods
from classgap.audit import Audit, AuditDiff
from classgap.features import FeatureTap

__version__ = "0.1.0"

__all__ = ["Audit", "AuditDiff", "FeatureTap", "__version__", "functional", "losses", "methods"]
