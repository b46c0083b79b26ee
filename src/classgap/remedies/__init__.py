"""Remedies for hard classes that prove themselves on held-out samples."""

from classgap.remedies.fix import fix
from classgap.remedies.fixed_model import Fix, load_fix
from classgap.remedies.results import Excluded, FixResult, Proof, RemedyResult

__all__ = ["Excluded", "Fix", "FixResult", "Proof", "RemedyResult", "fix", "load_fix"]
