"""Conformance cases of the losses that need logits and labels only, or little more."""

from functools import partial

from slow_logit_references import (
    SlowBoundedNorm,
    SlowCrossEntropy,
    SlowDifficulty,
    SlowEqualization,
    SlowFairDRO,
    SlowFeatureNorm,
    SlowFocal,
    SlowGroupDRO,
    SlowLDAM,
    SlowLogitAdjusted,
    SlowMutualInformation,
    SlowSpectral,
    difficulty_after_an_epoch,
    fair_after_two_passes,
    spectral_after_a_pass,
)

from classgap.losses import (
    BalancedSoftmaxLoss,
    ClassBalancedFocalLoss,
    ConditionalMutualInformationLoss,
    CrossEntropyLoss,
    EqualizationLoss,
    FeatureNormLoss,
    FocalLoss,
    GroupDROLoss,
    LDAMLoss,
    LogitAdjustedLoss,
)
from classgap.testing import LossCase

COUNTS = [80, 40, 20, 10, 5]
WEIGHTS = [0.2, 0.5, 1.0, 1.3, 2.0]


def cross_entropy(num_classes: int = 5, **settings) -> LossCase:
    reference = SlowCrossEntropy(num_classes, **settings)
    return LossCase(partial(CrossEntropyLoss, num_classes, **settings), num_classes, reference=reference)


def focal(gamma: float, form: str) -> LossCase:
    factory = partial(FocalLoss, 5, gamma=gamma, form=form)
    return LossCase(factory, 5, reference=SlowFocal(gamma, form, [1.0] * 5))


def class_balanced_focal(form: str) -> LossCase:
    beta, gamma = 0.99, 1.0
    raw = [(1 - beta) / (1 - beta**n) for n in COUNTS]
    weights = [w * len(raw) / sum(raw) for w in raw]
    factory = partial(ClassBalancedFocalLoss, COUNTS, beta=beta, gamma=gamma, form=form)
    return LossCase(factory, 5, reference=SlowFocal(gamma, form, weights))


def equalization(drop: float, rare: set[int]) -> LossCase:
    return LossCase(partial(EqualizationLoss, COUNTS, threshold=0.1, drop=drop), 5, reference=SlowEqualization(rare))


def ldam(counts: list[int] = COUNTS, **settings) -> LossCase:
    settings = {"margin": 0.5, "scale": 3.0} | settings
    return LossCase(partial(LDAMLoss, counts, **settings), len(counts), reference=SlowLDAM(counts, **settings))


def group_dro(num_classes: int = 5, **settings) -> LossCase:
    settings = {"step": 0.5} | settings
    reference = SlowGroupDRO(num_classes, **settings)
    return LossCase(partial(GroupDROLoss, num_classes, **settings), num_classes, reference=reference)


def mutual_information(num_classes: int = 5, **settings) -> LossCase:
    settings = {"concentrate": 0.7, "separate": 0.4, "decay": 0.8} | settings
    factory = partial(ConditionalMutualInformationLoss, num_classes, **settings)
    return LossCase(factory, num_classes, reference=SlowMutualInformation(**settings))


LOGIT_CASES = {
    "cross-entropy": cross_entropy(),
    "cross-entropy-smoothed": cross_entropy(label_smoothing=0.2),
    "cross-entropy-weighted": cross_entropy(weight=WEIGHTS, label_smoothing=0.1),
    "cross-entropy-one-class": cross_entropy(num_classes=1),
    "feature-norm": LossCase(partial(FeatureNormLoss, 5, strength=0.3), 5, reference=SlowFeatureNorm(0.3)),
    "feature-norm-auto": LossCase(partial(FeatureNormLoss, 5), 5, reference=SlowBoundedNorm()),
    "logit-adjusted": LossCase(
        partial(LogitAdjustedLoss, COUNTS, tau=1.5), 5, reference=SlowLogitAdjusted(COUNTS, 1.5)
    ),
    "balanced-softmax": LossCase(partial(BalancedSoftmaxLoss, COUNTS), 5, reference=SlowLogitAdjusted(COUNTS, 1.0)),
    "focal-softmax": focal(2.0, "softmax"),
    "focal-softmax-low": focal(0.5, "softmax"),
    "focal-sigmoid": focal(2.0, "sigmoid"),
    "focal-sigmoid-low": focal(0.5, "sigmoid"),
    "class-balanced-focal": class_balanced_focal("sigmoid"),
    "class-balanced-focal-softmax": class_balanced_focal("softmax"),
    "equalization-drops-all": equalization(1.0, {3, 4}),
    "equalization-drops-none": equalization(0.0, set()),
    "ldam": ldam(),
    "ldam-reweighted": ldam(weight=WEIGHTS),
    "ldam-one-class": ldam([7]),
    "group-dro": group_dro(),
    "group-dro-renormalized": group_dro(renormalize=True),
    "group-dro-one-class": group_dro(num_classes=1),
    "fair-dro": LossCase(partial(fair_after_two_passes, radius=0.3), 5, reference=SlowFairDRO(0.3)),
    "difficulty-balanced": LossCase(difficulty_after_an_epoch, 5, reference=SlowDifficulty(None)),
    "difficulty-balanced-fixed": LossCase(
        partial(difficulty_after_an_epoch, tau=0.5), 5, reference=SlowDifficulty(0.5)
    ),
    "confusional-spectral": LossCase(partial(spectral_after_a_pass, strength=0.4), 5, reference=SlowSpectral(0.4)),
    "mutual-information": mutual_information(),
    "mutual-information-separate-only": mutual_information(concentrate=0.0),
    "mutual-information-one-class": mutual_information(num_classes=1),
}
