"""Catalog of methods that shape the features or retrain the classifier."""

from __future__ import annotations

from classgap.losses import CenterLoss, HybridContrastiveLoss, RangeLoss, SpreadOutLoss, TripletLoss
from classgap.methods.crt import ClassifierRetraining
from classgap.methods.dro_lt import DistributionalRobustness, dro_lt_joint
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
        "Cross-entropy and center loss.",
        CenterLoss,
        given=_WIDTH,
        paper="Wen et al., ECCV 2016",
        required_inputs=("features",),
        origins={"strength": CODE, "centers": PAPER, "rate": PAPER},
    ),
    MethodEntry(
        "lgm",
        "Gaussian mixture head with a margin.",
        GaussianMixture,
        given=("num_classes",),
        paper="Wan et al., CVPR 2018, arXiv 1803.02988",
        required_inputs=("features", "custom head"),
        origins={
            "margin": CODE,
            "largest": CODE,
            "doubling": f"{CODE}, 5,000 of 120,000 steps",
            "strength": CODE,
            "variances": CODE,
            "log_determinant": PAPER,
        },
        incompatible={"post-hoc": "the head of lgm is a Gaussian mixture, not a linear layer"},
    ),
    MethodEntry(
        "triplet",
        "Cross-entropy and batch-hard triplet loss.",
        TripletLoss,
        given=("num_classes",),
        paper="Schroff et al., CVPR 2015, arXiv 1503.03832; Hermans et al., 2017, arXiv 1703.07737",
        required_inputs=("features",),
        origins={
            "strength": OURS,
            "margin": f"{CODE}, fast-reid",
            "distance": f"{PAPER}, Hermans et al.",
            "normalize": f"{PAPER}, Hermans et al.",
        },
    ),
    MethodEntry(
        "range",
        "Cross-entropy, compact classes, distant centers.",
        RangeLoss,
        given=("num_classes",),
        paper="Zhang et al., ICCV 2017, arXiv 1611.08976",
        required_inputs=("features",),
        origins=dict.fromkeys(("intra", "inter", "widest", "margin", "squared"), f"{PAPER} (unverified)"),
    ),
    MethodEntry(
        "spread-out",
        "Cross-entropy and evenly spread feature directions.",
        SpreadOutLoss,
        given=("num_classes",),
        paper="Zhang et al., ICCV 2017, arXiv 1708.06320",
        required_inputs=("features",),
        origins={"strength": CODE, "pairs": CODE},
    ),
    MethodEntry(
        "hybrid",
        "Cross-entropy over classes and over samples.",
        HybridContrastiveLoss,
        given=("num_classes",),
        paper="Liu and Abbeel, 2020, arXiv 2007.09070",
        origins={"strength": CODE, "temperature": CODE, "normalize": CODE, "queue": f"{OURS}; {CODE}: 65,536"},
    ),
    MethodEntry(
        "supcon",
        "Supervised contrastive encoder, then a classifier.",
        SupervisedContrast,
        given=_WIDTH,
        paper=_SUPCON,
        required_inputs=("features", "two views", "two stages"),
        origins={"temperature": f"{CODE}, recipe", "projection": CODE, "classifier_rate": OURS},
        role="procedure",
    ),
    MethodEntry(
        "supcon-joint",
        "Cross-entropy and SupCon loss in one stage.",
        JointContrast,
        given=_WIDTH,
        paper=_SUPCON,
        required_inputs=("features", "two views"),
        origins={"strength": OURS, "temperature": f"{CODE}, recipe", "projection": CODE},
    ),
    MethodEntry(
        "dro-lt",
        "Robust distances to class centroids; three stages.",
        DistributionalRobustness,
        given=_WIDTH,
        paper=_DRO_LT,
        required_inputs=("features", "one pass over the training set per epoch", "three stages"),
        origins={
            **dict.fromkeys(("strength", "temperature", "epsilon", "squared", "per_class"), CODE),
            "feature_rate": f"{CODE}, 0.005 of 0.1",
            "classifier_rate": f"{CODE}, 0.01 of 0.1",
        },
        role="procedure",
    ),
    MethodEntry(
        "dro-lt-joint",
        "One-stage DRO-LT, a baseline in the ELM paper.",
        dro_lt_joint,
        given=(*_WIDTH, "class_counts"),
        paper=f"{_DRO_LT}; Jitkrittum et al., 2022, arXiv 2204.13208",
        required_inputs=("features", "class counts"),
        origins=dict.fromkeys(("strength", "temperature", "epsilon", "momentum"), OURS),
    ),
    MethodEntry(
        "tau-norm",
        "Normalizes the classifier rows after training.",
        WeightNormalization,
        given=("inner",),
        paper=_DECOUPLING,
        required_inputs=("held-out samples", "linear head"),
        origins={"tau": PAPER, "monitor": CODE},
        role="post-hoc",
    ),
    MethodEntry(
        "crt",
        "Retrains the classifier on class-balanced samples.",
        ClassifierRetraining,
        given=("inner", "num_classes"),
        paper=_DECOUPLING,
        required_inputs=("linear head", "extra stage"),
        origins={"fraction": f"{CODE}, 10 epochs after 90"},
        role="post-hoc",
    ),
    MethodEntry(
        "lws",
        "Learns a scale per classifier row after training.",
        LearnedWeightScaling,
        given=("inner", "num_classes"),
        paper=_DECOUPLING,
        required_inputs=("linear head", "extra stage"),
        origins={"fraction": f"{CODE}, 5 epochs after 90"},
        role="post-hoc",
    ),
]
