"""Methods that re-weight classes or samples, move margins, or look for flat minima."""

from __future__ import annotations

from classgap.losses import (
    BalancedSoftmaxLoss,
    ClassBalancedFocalLoss,
    ClassLoss,
    ConditionalMutualInformationLoss,
    ConfusionalSpectralLoss,
    CrossEntropyLoss,
    EqualizationLoss,
    FairDROLoss,
    FeatureNormLoss,
    FocalLoss,
    GroupDROLoss,
    LDAMLoss,
    LogitAdjustedLoss,
)
from classgap.methods.entry import CODE, OURS, PAPER, MethodEntry
from classgap.methods.epoch_pass import csr, fair_dro
from classgap.methods.focal import cb_focal, focal
from classgap.methods.jtt import JustTrainTwice
from classgap.methods.ldam import DeferredLDAM, ldam, ldam_drw
from classgap.methods.lff import LearningFromFailure
from classgap.methods.post_hoc import PostHocLogitAdjustment
from classgap.methods.sam import SharpnessAware, asam, sam

_LDAM = "Cao et al., NeurIPS 2019, arXiv 1906.07413"
_ADJUSTED = {"post-hoc-logit-adjustment": "the class priors would be taken out twice"}
_COSINE = {"post-hoc": "the cosine head of ldam has no bias, and its rows no lengths that count"}


def label_smoothing(num_classes: int, *, smoothing: float = 0.1) -> ClassLoss:
    """Cross-entropy with smoothed labels.

    Args:
        num_classes: K.
        smoothing: ε.

    >>> label_smoothing(10).label_smoothing
    0.1
    """
    return CrossEntropyLoss(num_classes, label_smoothing=smoothing)


ENTRIES: list[MethodEntry] = [
    MethodEntry(
        "label-smoothing",
        "Cross-entropy that also wants a little of every class.",
        label_smoothing,
        given=("num_classes",),
        paper="Szegedy et al., CVPR 2016, arXiv 1512.00567",
        origins={"smoothing": PAPER},
        explained_by=CrossEntropyLoss,
    ),
    MethodEntry(
        "feature-norm",
        "Cross-entropy and smaller features for all samples alike: a control without a paper.",
        FeatureNormLoss,
        given=("num_classes",),
        required_inputs=("features",),
        origins={"strength": OURS},
    ),
    MethodEntry(
        "logit-adjustment",
        "Cross-entropy of logits that carry the class priors.",
        LogitAdjustedLoss,
        given=("class_counts",),
        paper="Menon et al., ICLR 2021, arXiv 2007.07314",
        required_inputs=("class counts",),
        origins={"tau": PAPER},
        refuses=_ADJUSTED,
        joins={"mr2": "class_counts"},
    ),
    MethodEntry(
        "balanced-softmax",
        "Cross-entropy under a softmax that weighs classes by their counts: logit adjustment with tau 1.",
        BalancedSoftmaxLoss,
        given=("class_counts",),
        paper="Ren et al., NeurIPS 2020, arXiv 2007.10740",
        required_inputs=("class counts",),
        refuses=_ADJUSTED,
    ),
    MethodEntry(
        "eql",
        "Cross-entropy that mostly spares rare classes the push from other classes' samples.",
        EqualizationLoss,
        given=("class_counts",),
        paper="Tan et al., CVPR 2020, arXiv 2003.05176",
        required_inputs=("class counts",),
        origins={"threshold": CODE, "drop": CODE},
    ),
    MethodEntry(
        "group-dro",
        "Class losses mixed with weights that grow for the classes that do badly.",
        GroupDROLoss,
        given=("num_classes",),
        paper="Sagawa et al., ICLR 2020, arXiv 1911.08731",
        origins={"step": CODE, "renormalize": OURS},
    ),
    MethodEntry(
        "cmic-dl",
        "Outputs close to those of their class, and those of different classes far apart.",
        ConditionalMutualInformationLoss,
        given=("num_classes",),
        paper="Yang et al., TNNLS 2025, arXiv 2309.09123",
        origins={"concentrate": OURS, "separate": OURS, "decay": OURS},
    ),
    MethodEntry(
        "sam",
        "Steps with the gradient from where the loss is highest nearby; two passes a step.",
        sam,
        given=("inner",),
        paper="Foret et al., ICLR 2021, arXiv 2010.01412",
        required_inputs=("second pass",),
        origins={"rho": PAPER},
        role="step",
        explained_by=SharpnessAware,
    ),
    MethodEntry(
        "asam",
        "SAM in a neighbourhood that is wide where weights are large; two passes a step.",
        asam,
        given=("inner",),
        paper="Kwon et al., ICML 2021, arXiv 2102.11600",
        required_inputs=("second pass",),
        origins={"rho": PAPER, "smallest": CODE},
        role="step",
        explained_by=SharpnessAware,
    ),
    MethodEntry(
        "post-hoc-logit-adjustment",
        "After training, predictions as if all classes were equally frequent.",
        PostHocLogitAdjustment,
        given=("inner", "class_counts"),
        paper="Menon et al., ICLR 2021, arXiv 2007.07314",
        required_inputs=("class counts", "linear head"),
        origins={"tau": PAPER},
        role="post-hoc",
    ),
    MethodEntry(
        "focal",
        "Cross-entropy that fades for samples which are right already.",
        focal,
        given=("num_classes",),
        paper="Lin et al., ICCV 2017, arXiv 1708.02002",
        origins={"gamma": PAPER, "form": OURS},
        explained_by=FocalLoss,
    ),
    MethodEntry(
        "cb-focal",
        "The focal loss, each class weighted by the inverse of its effective number of samples.",
        cb_focal,
        given=("class_counts",),
        paper="Cui et al., CVPR 2019, arXiv 1901.05555",
        required_inputs=("class counts",),
        origins={"beta": CODE, "gamma": CODE, "form": CODE},
        explained_by=ClassBalancedFocalLoss,
    ),
    MethodEntry(
        "ldam",
        "Cosine logits with margins that are the larger the rarer the class.",
        ldam,
        given=("class_counts",),
        paper=_LDAM,
        required_inputs=("class counts", "own head"),
        origins={"margin": CODE, "scale": CODE},
        refuses=_COSINE,
        explained_by=LDAMLoss,
    ),
    MethodEntry(
        "ldam-drw",
        "LDAM whose classes are re-weighted by their effective numbers late in training.",
        ldam_drw,
        given=("class_counts",),
        paper=_LDAM,
        required_inputs=("class counts", "own head"),
        origins={"margin": CODE, "scale": CODE, "beta": CODE, "switch": CODE},
        refuses=_COSINE,
        explained_by=DeferredLDAM,
    ),
    MethodEntry(
        "fair-dro",
        "Class losses mixed with weights that answer those of the training set once an epoch.",
        fair_dro,
        given=("num_classes",),
        paper="Jung et al., ICLR 2023, arXiv 2303.00442",
        required_inputs=("pass over the training set each epoch",),
        origins={"radius": CODE},
        explained_by=FairDROLoss,
    ),
    MethodEntry(
        "csr",
        "Samples weighted by how their confusion shapes the worst class's error, without the adversary.",
        csr,
        given=("num_classes",),
        paper="Jin et al., ICLR 2025, arXiv 2501.13273",
        required_inputs=("pass over the training set each epoch",),
        origins={"strength": CODE, "narrowing": CODE},
        explained_by=ConfusionalSpectralLoss,
    ),
    MethodEntry(
        "jtt",
        "Trains twice; the second time the errors of the first are up-sampled.",
        JustTrainTwice,
        given=("num_classes", "num_samples"),
        paper="Liu et al., ICML 2021, arXiv 2107.09044",
        required_inputs=("two trainings", "index"),
        origins={"first": OURS, "copies": CODE, "errors": PAPER},
        role="procedure",
    ),
    MethodEntry(
        "lff",
        "A second network learns what is easy; the own one learns what the second fails.",
        LearningFromFailure,
        given=("num_classes", "num_samples"),
        paper="Nam et al., NeurIPS 2020, arXiv 2007.02561",
        required_inputs=("second network", "index"),
        origins={"q": CODE, "decay": CODE},
        role="procedure",
    ),
]
