"""Generalization bounds of MR², ELM and LMDL, as functions that return the terms of each bound.

- `mr2`: Eq. (3), Definition 2, Lemmas 1 and 2, Propositions 1 and 2, Corollary 1, Discussion 1 and the bound of a
  single class
- `elm`: Propositions 1 and 2, Lemmas 3 to 5, the hard pull, and nearest neighbors after training
- `lmdl`: Definitions 4.1, 4.2 and 6.2, Propositions 4.1, 4.2 and 4.4, Corollary 4.1, Theorems 5.2, 5.3 and 6.3

If a printed equation is wrong, the docstring explains it and the function computes what the proof supports.

All bounds assume that features, margins and norms were fixed before the sample was drawn. On the training data of a
network they compare terms between classes and methods, but are not a guarantee. See docs/theory.md for examples.

Suffixes give shapes: N samples, K classes, D features, U classes present. A label of -1 means no class.
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
