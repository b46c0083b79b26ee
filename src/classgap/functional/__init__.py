"""Formulas of the papers as pure functions of tensors. They return per-sample terms, without state or reduction.

Suffixes give shapes: B local samples, N samples of the global batch (all processes and a memory), K classes, D
features, U classes present. A label of -1 means that the sample has no class.
"""

from classgap.functional.class_groups import ClassGroups, group_by_class
from classgap.functional.class_quotas import error_densities, error_quotas
from classgap.functional.confusion_spectrum import count_confusions, spectral_weights
from classgap.functional.contrast import prototype_contrast, score_contrast, supervised_contrast
from classgap.functional.difficulty import difficulty_weights, dynamic_tau
from classgap.functional.discriminative import boundary_shortfall, compactness, signed_boundary_distance
from classgap.functional.effective_number import effective_number_weights
from classgap.functional.equalization import equalization_cross_entropy
from classgap.functional.focal import sigmoid_focal, softmax_focal
from classgap.functional.gaussian_mixture import half_log_determinants, mahalanobis_distances
from classgap.functional.label_margins import label_margin_cross_entropy, label_margins
from classgap.functional.margin_cross_entropy import growing_force, margin_cross_entropy
from classgap.functional.margins import class_margins, squared_norm
from classgap.functional.output_information import concentration, separation
from classgap.functional.pairwise_pull import pull, pull_with_force
from classgap.functional.ranges import nearest_centers, widest_ranges
from classgap.functional.robust_weights import chi_square_weights, exponentiated_step
from classgap.functional.sample_pairs import SamplePairs, distances, on_sphere
from classgap.functional.spread_out import spread_out
from classgap.functional.triplets import hardest_triplets

__all__ = [
    "ClassGroups",
    "SamplePairs",
    "boundary_shortfall",
    "chi_square_weights",
    "class_margins",
    "compactness",
    "concentration",
    "count_confusions",
    "difficulty_weights",
    "distances",
    "dynamic_tau",
    "effective_number_weights",
    "equalization_cross_entropy",
    "error_densities",
    "error_quotas",
    "exponentiated_step",
    "group_by_class",
    "growing_force",
    "half_log_determinants",
    "hardest_triplets",
    "label_margin_cross_entropy",
    "label_margins",
    "mahalanobis_distances",
    "margin_cross_entropy",
    "nearest_centers",
    "on_sphere",
    "prototype_contrast",
    "pull",
    "pull_with_force",
    "score_contrast",
    "separation",
    "sigmoid_focal",
    "signed_boundary_distance",
    "softmax_focal",
    "spectral_weights",
    "spread_out",
    "squared_norm",
    "supervised_contrast",
    "widest_ranges",
]
