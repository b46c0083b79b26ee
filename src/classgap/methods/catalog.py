"""Every method with its name, its paper and what it needs."""

from __future__ import annotations

from classgap.losses import ELMLoss, LargeMarginDiscriminativeLoss, MR2Loss, MR2ReleaseLoss
from classgap.losses.base import ClassLoss
from classgap.losses.cross_entropy import CrossEntropyLoss
from classgap.methods import catalog_robust
from classgap.methods.entry import MethodEntry
from classgap.methods.method import Method
from classgap.registry import Registry

_MR2 = "Zhu et al., ICLR 2026"

METHODS: Registry[Method | ClassLoss] = Registry(
    "method",
    [
        MethodEntry("erm", "Cross-entropy.", CrossEntropyLoss, given=("num_classes",)),
        MethodEntry(
            "mr2",
            "Wider logit margins for classes with large features, and a pull within classes.",
            MR2Loss,
            given=("num_classes",),
            paper=_MR2,
            needs=("features",),
        ),
        MethodEntry(
            "mr2-release",
            "What the published code of MR² computes.",
            MR2ReleaseLoss,
            given=("num_classes",),
            paper=_MR2,
            needs=("features",),
        ),
        MethodEntry(
            "elm",
            "Logit adjustment, and a pull within classes that is tighter for rare ones.",
            ELMLoss,
            given=("class_counts",),
            paper="Jitkrittum et al., 2022",
            needs=("features", "class counts"),
        ),
        MethodEntry(
            "lmdl",
            "Samples near their centroid, centroids far from decision boundaries.",
            LargeMarginDiscriminativeLoss,
            given=("num_classes", "feature_dim"),
            paper="Nguyen et al., 2024",
            needs=("features", "head"),
        ),
        *catalog_robust.ENTRIES,
    ],
)
