"""Classification losses, one per module: hyperparameters, state, and a call into ``functional``."""

from classgap.losses.added_term import AddedTermLoss
from classgap.losses.balanced_softmax import BalancedSoftmaxLoss
from classgap.losses.base import ClassLoss, Part
from classgap.losses.center import CenterLoss
from classgap.losses.class_balanced_focal import ClassBalancedFocalLoss
from classgap.losses.conditional_mutual_information import ConditionalMutualInformationLoss
from classgap.losses.confusional_spectral import ConfusionalSpectralLoss
from classgap.losses.cross_entropy import CrossEntropyLoss
from classgap.losses.difficulty_balanced import DifficultyBalancedLoss
from classgap.losses.dro_lt import DROLTLoss
from classgap.losses.elm import ELMLoss
from classgap.losses.equalization import EqualizationLoss
from classgap.losses.fair_dro import FairDROLoss
from classgap.losses.feature_norm import FeatureNormLoss
from classgap.losses.focal import FocalLoss
from classgap.losses.gaussian_mixture import GaussianMixtureHead, GaussianMixtureLoss
from classgap.losses.group_dro import GroupDROLoss
from classgap.losses.hybrid_contrastive import HybridContrastiveLoss
from classgap.losses.inputs import InvalidBatchError
from classgap.losses.large_margin_discriminative import LargeMarginDiscriminativeLoss
from classgap.losses.ldam import LDAMLoss
from classgap.losses.logit_adjusted import LogitAdjustedLoss
from classgap.losses.mr2 import MR2Loss
from classgap.losses.mr2_release import MR2ReleaseLoss
from classgap.losses.own_parameters import train_own_parameters
from classgap.losses.range_loss import RangeLoss
from classgap.losses.spread_out import SpreadOutLoss
from classgap.losses.supervised_contrastive import SupervisedContrastiveLoss
from classgap.losses.triplet import TripletLoss
from classgap.losses.weighted import ClassWeightedLoss

__all__ = [
    "AddedTermLoss",
    "BalancedSoftmaxLoss",
    "CenterLoss",
    "ClassBalancedFocalLoss",
    "ClassLoss",
    "ClassWeightedLoss",
    "ConditionalMutualInformationLoss",
    "ConfusionalSpectralLoss",
    "CrossEntropyLoss",
    "DROLTLoss",
    "DifficultyBalancedLoss",
    "ELMLoss",
    "EqualizationLoss",
    "FairDROLoss",
    "FeatureNormLoss",
    "FocalLoss",
    "GaussianMixtureHead",
    "GaussianMixtureLoss",
    "GroupDROLoss",
    "HybridContrastiveLoss",
    "InvalidBatchError",
    "LDAMLoss",
    "LargeMarginDiscriminativeLoss",
    "LogitAdjustedLoss",
    "MR2Loss",
    "MR2ReleaseLoss",
    "Part",
    "RangeLoss",
    "SpreadOutLoss",
    "SupervisedContrastiveLoss",
    "TripletLoss",
    "train_own_parameters",
]
