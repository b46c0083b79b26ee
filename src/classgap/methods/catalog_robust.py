"""Catalog of methods that reweight classes or samples, shift margins, or seek flat minima."""

from __future__ import annotations

from classgap.losses import (
    BalancedSoftmaxLoss,
    ClassBalancedFocalLoss,
    ClassLoss,
    ConditionalMutualInformationLoss,
    ConfusionalSpectralLoss,
    CrossEntropyLoss,
    DifficultyBalancedLoss,
    EqualizationLoss,
    FairDROLoss,
    FeatureNormLoss,
    FocalLoss,
    GroupDROLoss,
    LDAMLoss,
    LogitAdjustedLoss,
)
from classgap.methods.drop import DistributionallyRobustPruning
from classgap.methods.entry import CODE, OURS, PAPER, MethodEntry
from classgap.methods.epoch_pass import cdb, csr, fair_dro
from classgap.methods.focal import cb_focal, focal
from classgap.methods.jtt import JustTrainTwice
from classgap.methods.ldam import DeferredLDAM, ldam, ldam_drw
from classgap.methods.lff import LearningFromFailure
from classgap.methods.post_hoc import PostHocLogitAdjustment
from classgap.methods.sam import SharpnessAware, asam, sam

_LDAM = "Cao et al., NeurIPS 2019, arXiv 1906.07413"
_ADJUSTED = {"post-hoc-logit-adjustment": "the class priors would be corrected twice"}
_COSINE = {"post-hoc": "the cosine head of ldam has no bias and ignores the norms of its rows"}


def label_smoothing(num_classes: int, *, smoothing: float = 0.1) -> ClassLoss:
    """Cross-entropy with smoothed labels.

    Args:
        num_classes: Number of classes K.
        smoothing: Label smoothing ε.

    >>> label_smoothing(10).label_smoothing
    0.1
    """
    return CrossEntropyLoss(num_classes, label_smoothing=smoothing)


ENTRIES: list[MethodEntry] = [
    MethodEntry(
        "label-smoothing",
        "Cross-entropy with smoothed labels.",
        label_smoothing,
        given=("num_classes",),
        paper="Szegedy et al., CVPR 2016, arXiv 1512.00567",
        origins={"smoothing": PAPER},
        documented_by=CrossEntropyLoss,
    ),
    MethodEntry(
        "feature-norm",
        "Cross-entropy and a penalty on feature norms.",
        FeatureNormLoss,
        given=("num_classes",),
        required_inputs=("features",),
        origins={"strength": OURS},
    ),
    MethodEntry(
        "logit-adjustment",
        "Cross-entropy with log class priors in the logits.",
        LogitAdjustedLoss,
        given=("class_counts",),
        paper="Menon et al., ICLR 2021, arXiv 2007.07314",
        required_inputs=("class counts",),
        origins={"tau": PAPER},
        incompatible=_ADJUSTED,
        merges_into={"mr2": "class_counts"},
    ),
    MethodEntry(
        "balanced-softmax",
        "Softmax weighted by class counts.",
        BalancedSoftmaxLoss,
        given=("class_counts",),
        paper="Ren et al., NeurIPS 2020, arXiv 2007.10740",
        required_inputs=("class counts",),
        incompatible=_ADJUSTED,
    ),
    MethodEntry(
        "eql",
        "Ignores rare classes as negatives most of the time.",
        EqualizationLoss,
        given=("class_counts",),
        paper="Tan et al., CVPR 2020, arXiv 2003.05176",
        required_inputs=("class counts",),
        origins={"threshold": CODE, "drop": CODE},
    ),
    MethodEntry(
        "group-dro",
        "Upweights the classes with the highest loss.",
        GroupDROLoss,
        given=("num_classes",),
        paper="Sagawa et al., ICLR 2020, arXiv 1911.08731",
        origins={"step": CODE, "renormalize": OURS},
    ),
    MethodEntry(
        "cmic-dl",
        "Similar outputs within classes, distinct across.",
        ConditionalMutualInformationLoss,
        given=("num_classes",),
        paper="Yang et al., TNNLS 2025, arXiv 2309.09123",
        origins={"concentrate": OURS, "separate": OURS, "decay": OURS},
    ),
    MethodEntry(
        "sam",
        "Sharpness-aware minimization; two passes per step.",
        sam,
        given=("inner",),
        paper="Foret et al., ICLR 2021, arXiv 2010.01412",
        required_inputs=("second forward and backward pass",),
        origins={"rho": PAPER},
        role="step",
        documented_by=SharpnessAware,
    ),
    MethodEntry(
        "asam",
        "SAM with a scale-adaptive neighborhood.",
        asam,
        given=("inner",),
        paper="Kwon et al., ICML 2021, arXiv 2102.11600",
        required_inputs=("second forward and backward pass",),
        origins={"rho": PAPER, "smallest": CODE},
        role="step",
        documented_by=SharpnessAware,
    ),
    MethodEntry(
        "post-hoc-logit-adjustment",
        "Subtracts log class priors after training.",
        PostHocLogitAdjustment,
        given=("inner", "class_counts"),
        paper="Menon et al., ICLR 2021, arXiv 2007.07314",
        required_inputs=("class counts", "linear head"),
        origins={"tau": PAPER},
        role="post-hoc",
    ),
    MethodEntry(
        "focal",
        "Downweights well-classified samples.",
        focal,
        given=("num_classes",),
        paper="Lin et al., ICCV 2017, arXiv 1708.02002",
        origins={"gamma": PAPER, "form": OURS},
        documented_by=FocalLoss,
    ),
    MethodEntry(
        "cb-focal",
        "Focal loss weighted by effective class sizes.",
        cb_focal,
        given=("class_counts",),
        paper="Cui et al., CVPR 2019, arXiv 1901.05555",
        required_inputs=("class counts",),
        origins={"beta": CODE, "gamma": CODE, "form": CODE},
        documented_by=ClassBalancedFocalLoss,
    ),
    MethodEntry(
        "ldam",
        "Cosine logits with larger margins for rare classes.",
        ldam,
        given=("class_counts",),
        paper=_LDAM,
        required_inputs=("class counts", "custom head"),
        origins={"margin": CODE, "scale": CODE},
        incompatible=_COSINE,
        documented_by=LDAMLoss,
    ),
    MethodEntry(
        "ldam-drw",
        "LDAM with deferred class reweighting.",
        ldam_drw,
        given=("class_counts",),
        paper=_LDAM,
        required_inputs=("class counts", "custom head"),
        origins={"margin": CODE, "scale": CODE, "beta": CODE, "switch": CODE},
        incompatible=_COSINE,
        documented_by=DeferredLDAM,
    ),
    MethodEntry(
        "fair-dro",
        "Reweights classes by training loss every epoch.",
        fair_dro,
        given=("num_classes",),
        paper="Jung et al., ICLR 2023, arXiv 2303.00442",
        required_inputs=("one pass over the training set per epoch",),
        origins={"radius": CODE},
        documented_by=FairDROLoss,
    ),
    MethodEntry(
        "cdb",
        "Reweights classes by their accuracy every epoch.",
        cdb,
        given=("num_classes",),
        paper="Sinha et al., ACCV 2020, arXiv 2010.01824",
        required_inputs=("held-out samples", "one pass over them per epoch"),
        origins={"tau": PAPER},
        documented_by=DifficultyBalancedLoss,
    ),
    MethodEntry(
        "csr",
        "Reweights confused class pairs every epoch.",
        csr,
        given=("num_classes",),
        paper="Jin et al., ICLR 2025, arXiv 2501.13273",
        required_inputs=("one pass over the training set per epoch",),
        origins={"strength": CODE, "narrowing": CODE},
        documented_by=ConfusionalSpectralLoss,
    ),
    MethodEntry(
        "jtt",
        "Trains twice, upsampling errors of the first run.",
        JustTrainTwice,
        given=("num_classes", "num_samples"),
        paper="Liu et al., ICML 2021, arXiv 2107.09044",
        required_inputs=("two training runs", "sample index"),
        origins={"first": OURS, "copies": CODE, "errors": PAPER},
        role="procedure",
    ),
    MethodEntry(
        "drop",
        "Retrains with more samples of error-prone classes.",
        DistributionallyRobustPruning,
        given=("num_classes",),
        paper="Vysogorets et al., ICLR 2025, arXiv 2404.05579",
        required_inputs=("two training runs",),
        origins={
            "density": f"{OURS}; {PAPER}: 0.3, 0.5 and 0.8",
            "first": PAPER,
            "redraw": f"{OURS}; {PAPER}: no",
            "smoothing": f"{OURS}; {PAPER}: 0",
        },
        role="procedure",
    ),
    MethodEntry(
        "lff",
        "Upweights samples that a biased network fails on.",
        LearningFromFailure,
        given=("num_classes", "num_samples"),
        paper="Nam et al., NeurIPS 2020, arXiv 2007.02561",
        required_inputs=("second network", "sample index"),
        origins={"q": CODE, "decay": CODE},
        role="procedure",
    ),
]
