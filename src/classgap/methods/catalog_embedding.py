"""Methods that shape the features, and those that give trained features another classifier."""

from __future__ import annotations

from classgap.losses import CenterLoss, HybridContrastiveLoss, RangeLoss, SpreadOutLoss, TripletLoss
from classgap.methods.crt import ClassifierRetraining
from classgap.methods.dro_lt import DistributionalRobustness, one_stage
from classgap.methods.entry import CODE, OURS, PAPER, MethodEntry
from classgap.methods.lgm import GaussianMixture
from classgap.methods.lws import LearnedWeightScaling
from classgap.methods.supcon import JointContrast, SupervisedContrast
from classgap.methods.tau_norm import WeightNormalization

_SUPCON = "Khosla et al., NeurIPS 2020, arXiv 2004.11362"
_DRO_LT = "Samuel and Chechik, ICCV 2021, arXiv 2104.03066"
_DECOUPLING = "Kang et al., ICLR 2020, arXiv 1910.09217"
_WIDTH = ("num_classes", "feature_dim")

ENTRIES: list[MethodEntry] = [
    MethodEntry(
        "center",
        "Cross-entropy, and samples near the center of their class.",
        CenterLoss,
        given=_WIDTH,
        paper="Wen et al., ECCV 2016",
        required_inputs=("features",),
        origins={"strength": CODE, "centers": PAPER, "rate": PAPER},
    ),
    MethodEntry(
        "lgm",
        "A Gaussian of each class in the place of the linear head, with a margin on the own one.",
        GaussianMixture,
        given=("num_classes",),
        paper="Wan et al., CVPR 2018, arXiv 1803.02988",
        required_inputs=("features", "own head"),
        origins={
            "margin": CODE,
            "largest": CODE,
            "doubling": f"{CODE}: 5,000 of 120,000 steps",
            "strength": CODE,
            "variances": CODE,
            "log_determinant": PAPER,
        },
        refuses={"post-hoc": "the head of lgm is a mixture of Gaussians, not a linear layer whose rows may be changed"},
    ),
    MethodEntry(
        "triplet",
        "Cross-entropy, and class mates nearer than the nearest stranger, by a margin.",
        TripletLoss,
        given=("num_classes",),
        paper="Schroff et al., CVPR 2015, arXiv 1503.03832; Hermans et al., 2017, arXiv 1703.07737",
        required_inputs=("features",),
        origins={
            "strength": OURS,
            "margin": f"{CODE}: fast-reid",
            "distance": f"{PAPER}: Hermans et al.",
            "normalize": f"{PAPER}: Hermans et al.",
        },
    ),
    MethodEntry(
        "range",
        "Cross-entropy, narrow classes, and a margin between the two nearest class centers.",
        RangeLoss,
        given=("num_classes",),
        paper="Zhang et al., ICCV 2017, arXiv 1611.08976",
        required_inputs=("features",),
        origins=dict.fromkeys(("intra", "inter", "widest", "margin", "squared"), f"{PAPER}, as remembered"),
    ),
    MethodEntry(
        "spread-out",
        "Cross-entropy, and feature directions that are spread as evenly as random ones.",
        SpreadOutLoss,
        given=("num_classes",),
        paper="Zhang et al., ICCV 2017, arXiv 1708.06320",
        required_inputs=("features",),
        origins={"strength": CODE, "pairs": CODE},
    ),
    MethodEntry(
        "hybrid",
        "Cross-entropy over classes, and over samples: a sample scores highest for its class.",
        HybridContrastiveLoss,
        given=("num_classes",),
        paper="Liu and Abbeel, 2020, arXiv 2007.09070",
        origins={"strength": CODE, "temperature": CODE, "normalize": CODE, "queue": f"{OURS}; {CODE}: 65,536"},
    ),
    MethodEntry(
        "supcon",
        "Supervised contrastive pre-training with two views, then a linear classifier on the frozen encoder.",
        SupervisedContrast,
        given=_WIDTH,
        paper=_SUPCON,
        required_inputs=("features", "two views", "two stages"),
        origins={"temperature": f"{CODE}: recipe", "projection": CODE, "classifier_rate": OURS},
        role="procedure",
    ),
    MethodEntry(
        "supcon-joint",
        "Cross-entropy and the supervised contrast of two views, in one stage.",
        JointContrast,
        given=_WIDTH,
        paper=_SUPCON,
        required_inputs=("features", "two views"),
        origins={"strength": OURS, "temperature": f"{CODE}: recipe", "projection": CODE},
    ),
    MethodEntry(
        "dro-lt",
        "Features near the centroid of their class, even a shifted one; three stages.",
        DistributionalRobustness,
        given=_WIDTH,
        paper=_DRO_LT,
        required_inputs=("features", "pass over the training set each epoch", "three stages"),
        origins={
            **dict.fromkeys(("strength", "temperature", "epsilon", "squared", "per_class"), CODE),
            "feature_rate": f"{CODE}: 0.005 of 0.1",
            "classifier_rate": f"{CODE}: 0.01 of 0.1",
        },
        role="procedure",
    ),
    MethodEntry(
        "dro-lt-joint",
        "The one-stage form of DRO-LT that the ELM paper compares with.",
        one_stage,
        given=(*_WIDTH, "class_counts"),
        paper=f"{_DRO_LT}; Jitkrittum et al., 2022, arXiv 2204.13208",
        required_inputs=("features", "class counts"),
        origins=dict.fromkeys(("strength", "temperature", "epsilon", "momentum"), OURS),
    ),
    MethodEntry(
        "tau-norm",
        "After training, classifier rows over a power of their length; the power chosen on held-out samples.",
        WeightNormalization,
        given=("inner",),
        paper=_DECOUPLING,
        required_inputs=("held-out samples", "linear head"),
        origins={"tau": PAPER, "monitor": CODE},
        role="post-hoc",
    ),
    MethodEntry(
        "crt",
        "After training, a new classifier on the same features with all classes drawn equally often.",
        ClassifierRetraining,
        given=("inner", "num_classes"),
        paper=_DECOUPLING,
        required_inputs=("linear head", "one more stage"),
        origins={"share": f"{CODE}: 10 epochs after 90"},
        role="post-hoc",
    ),
    MethodEntry(
        "lws",
        "After training, a learned factor for each row of the classifier, with all classes drawn equally often.",
        LearnedWeightScaling,
        given=("inner", "num_classes"),
        paper=_DECOUPLING,
        required_inputs=("linear head", "one more stage"),
        origins={"share": f"{CODE}: 5 epochs after 90"},
        role="post-hoc",
    ),
]
