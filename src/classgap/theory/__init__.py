"""The bounds of the three papers as functions that return their terms one by one.

    mr2    Lemma 2, Proposition 1 and 2, Corollary 1 and the bound of a single class
    elm    Proposition 1 and 2
    lmdl   Definition 4.1 and 4.2, Proposition 4.1 and 4.2, Theorem 5.2, 5.3 and 6.3

Where a printed equation does not follow, the docstring says so and the function computes what the proof supports.

All of these bounds take the features, the margins and the norms as fixed before the sample was drawn. On the data a
network was trained on they show how the terms compare between classes and methods; they are no certificate for it.

Shapes are written as suffixes: N samples, K classes, D features, U classes present. A label of -1 belongs to no class.
"""

from classgap.theory import elm, lmdl, mr2
from classgap.theory.class_moments import ClassMoments, class_moments, class_sizes
from classgap.theory.risk_bound import RiskBound, low_order_term, ramp_loss

__all__ = [
    "ClassMoments",
    "RiskBound",
    "class_moments",
    "class_sizes",
    "elm",
    "lmdl",
    "low_order_term",
    "mr2",
    "ramp_loss",
]
