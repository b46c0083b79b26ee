"""Networks by name: those of the papers, of timm, torchvision and open_clip, and from checkpoints."""

from classgap.models.catalog import MODELS, build, default_for, names
from classgap.models.cosine import CosineClassifier
from classgap.models.heads import Frozen
from classgap.models.interpolation import interpolate_weights
from classgap.models.statistics import expected_images

__all__ = [
    "MODELS",
    "CosineClassifier",
    "Frozen",
    "build",
    "default_for",
    "expected_images",
    "interpolate_weights",
    "names",
]
