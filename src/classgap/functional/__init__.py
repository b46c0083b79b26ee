"""The papers' formulas as pure functions of tensors: per-sample terms out, no state, no reduction.

Shapes are written as suffixes: B samples here, N samples in the whole batch (all processes, and a bank), K classes,
D features, U classes present. A label of -1 means "belongs to no class".
"""

from classgap.functional.class_groups import ClassGroups, group_by_class
from classgap.functional.discriminative import boundary_shortfall, compactness, signed_boundary_distance
from classgap.functional.margin_cross_entropy import growing_force, margin_cross_entropy
from classgap.functional.margins import class_margins, squared_norm
from classgap.functional.pairwise_pull import pull, pull_with_force

__all__ = [
    "ClassGroups",
    "boundary_shortfall",
    "class_margins",
    "compactness",
    "group_by_class",
    "growing_force",
    "margin_cross_entropy",
    "pull",
    "pull_with_force",
    "signed_boundary_distance",
    "squared_norm",
]
