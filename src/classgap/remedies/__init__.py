"""Remedies for hard classes that prove themselves on held-out samples."""

from typing import TYPE_CHECKING, Any

from classgap.remedies.fix import fix
from classgap.remedies.fixed_model import Fix, load_fix
from classgap.remedies.results import Excluded, FixResult, Proof, RemedyResult

if TYPE_CHECKING:
    from classgap.remedies.estimator import ClassOffsetClassifierCV

__all__ = ["ClassOffsetClassifierCV", "Excluded", "Fix", "FixResult", "Proof", "RemedyResult", "fix", "load_fix"]


def __getattr__(name: str) -> Any:
    if name == "ClassOffsetClassifierCV":  # imports scikit-learn
        from classgap.remedies.estimator import ClassOffsetClassifierCV

        return ClassOffsetClassifierCV
    raise AttributeError(f"module 'classgap.remedies' has no attribute {name!r}")
