"""Running statistics of losses: buffers with an explicit ``update``."""

from classgap.state.class_centroids import ClassCentroids
from classgap.state.class_stats import ClassStats
from classgap.state.feature_bank import FeatureBank

__all__ = ["ClassCentroids", "ClassStats", "FeatureBank"]
