"""Every method with its name, its paper and what it needs."""

from __future__ import annotations

from classgap.losses import ELMLoss, LargeMarginDiscriminativeLoss, MR2Loss, MR2ReleaseLoss
from classgap.losses.base import ClassLoss
from classgap.losses.cross_entropy import CrossEntropyLoss
from classgap.methods import catalog_embedding, catalog_robust
from classgap.methods.entry import CODE, OURS, PAPER, MethodEntry
from classgap.methods.method import Method
from classgap.registry import Registry

_MR2 = "Zhu et al., ICLR 2026"

METHODS: Registry[Method | ClassLoss] = Registry(
    "method",
    [
        MethodEntry(
            "erm",
            "Cross-entropy.",
            CrossEntropyLoss,
            given=("num_classes",),
            hidden=("reduction", "ignore_index", "validate_args", "weight", "label_smoothing"),
        ),
        MethodEntry(
            "mr2",
            "Wider logit margins for classes with large features, and a pull within classes.",
            MR2Loss,
            given=("num_classes",),
            paper=_MR2,
            required_inputs=("features",),
            origins={
                "margin": f"{OURS}; {PAPER}: of 1, 2 and 3 best near 2",
                "strength": f"{OURS}; {PAPER}: of 0.1 to 0.9 best near 0.5, {CODE}: 0.1",
                "p": f"{PAPER}; 3 for cosine classifiers, {CODE}: 5",
                "logit": PAPER,
                "slack": PAPER,
                "spread": f"{OURS}; {PAPER}: plain",
                "normalize": PAPER,
                "decay": PAPER,
                "memory_size": OURS,
            },
            differences="The published code computes something else: `mr2-release`, which tells how it differs.",
        ),
        MethodEntry(
            "mr2-release",
            "What the published code of MR² computes.",
            MR2ReleaseLoss,
            given=("num_classes",),
            paper=_MR2,
            required_inputs=("features",),
            origins={"source": OURS, "strength": CODE, "decay": f"{CODE}: CIFAR; ImageNet 0.999"},
        ),
        MethodEntry(
            "elm",
            "Logit adjustment, and a pull within classes that is tighter for rare ones.",
            ELMLoss,
            given=("class_counts",),
            paper="Jitkrittum et al., 2022, arXiv 2204.13208",
            required_inputs=("features", "class counts"),
            origins={"strength": PAPER, "slack": f"{PAPER}: CIFAR100-LT, iNaturalist"},
            differences="No code was published; that positives are those of the batch is a reading of the paper.",
            refuses=dict.fromkeys(
                ("logit-adjustment", "balanced-softmax", "post-hoc-logit-adjustment"),
                "ELM contains logit adjustment already",
            ),
        ),
        MethodEntry(
            "lmdl",
            "Samples near their centroid, centroids far from decision boundaries.",
            LargeMarginDiscriminativeLoss,
            given=("num_classes", "feature_dim"),
            paper="Nguyen et al., 2024",
            required_inputs=("features", "head"),
            origins={
                "radius": CODE,
                "distance": f"{CODE}: training script",
                "compact": CODE,
                "separate": CODE,
                "shrink": CODE,
                "momentum": CODE,
                "centroids": PAPER,
            },
            differences="Published code and paper agree. The code's constructor has a distance of 1.5, its training "
            "script 6; of the paper's forms of momentum it has the partial one only, and its centroids are not saved.",
        ),
        *catalog_robust.ENTRIES,
        *catalog_embedding.ENTRIES,
    ],
)
