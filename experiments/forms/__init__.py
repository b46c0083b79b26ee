"""Forms compared with MR² that are not part of the library. Importing this package registers them."""

from classgap.methods import METHODS
from classgap.methods.entry import MethodEntry
from classgap.models import MODELS
from classgap.registry import Entry
from forms.class_difficulty import ClassDifficulty
from forms.gamma import GammaLoss
from forms.held_apart import HeldApartMR2Loss
from forms.penalty import PenaltyLoss
from forms.scaled_mlp import scaled_mlp
from forms.smoothed import SmoothedMR2Loss

__all__ = ["ClassDifficulty", "GammaLoss", "HeldApartMR2Loss", "PenaltyLoss", "SmoothedMR2Loss", "scaled_mlp"]

METHODS.entries |= {
    "gamma-form": MethodEntry(
        "gamma-form", "Cross-entropy of logits over other class margins.", GammaLoss, given=("num_classes",)
    ),
    "penalty": MethodEntry(
        "penalty", "Cross-entropy and a bounded penalty on the features.", PenaltyLoss, given=("num_classes",)
    ),
    "held-apart": MethodEntry(
        "held-apart",
        "MR² with the margin term of LMDL.",
        HeldApartMR2Loss,
        given=("num_classes", "feature_dim"),
    ),
    "smoothed": MethodEntry("smoothed", "MR² with label smoothing.", SmoothedMR2Loss, given=("num_classes",)),
}
MODELS.entries["scaled-mlp"] = Entry(
    "scaled-mlp", "One hidden layer with features of any scale.", scaled_mlp, given=("num_classes", "input_shape")
)
