"""The catalog of all methods, and ``build`` to create one by name."""

from __future__ import annotations

from typing import Any

from classgap.losses import ELMLoss, LargeMarginDiscriminativeLoss, MR2Loss, MR2ReleaseLoss
from classgap.losses.base import ClassLoss
from classgap.losses.cross_entropy import CrossEntropyLoss
from classgap.methods import catalog_embedding, catalog_robust
from classgap.methods.composition import compose, parse
from classgap.methods.entry import CODE, OURS, PAPER, MethodEntry
from classgap.methods.method import Method
from classgap.registry import MissingInputsError, Registry

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
            "Feature-adaptive logit margins and compact classes.",
            MR2Loss,
            given=("num_classes",),
            paper=_MR2,
            required_inputs=("features",),
            origins={
                "margin": f"{OURS}; {PAPER}: best near 2 of {{1, 2, 3}}",
                "strength": f"{OURS}; {PAPER}: best near 0.5 in [0.01, 0.9]; {CODE}: 0.1",
                "p": f"{PAPER}; 3 for cosine classifiers; {CODE}: 5",
                "logit": PAPER,
                "slack": PAPER,
                "spread": f"{OURS}; {PAPER}: plain",
                "normalize": PAPER,
                "decay": PAPER,
                "memory_size": OURS,
            },
            differences="The published code computes a different loss; see `mr2-release`.",
        ),
        MethodEntry(
            "mr2-release",
            "MR² as implemented in its published code.",
            MR2ReleaseLoss,
            given=("num_classes",),
            paper=_MR2,
            required_inputs=("features",),
            origins={"source": OURS, "strength": CODE, "decay": f"{CODE}, CIFAR; 0.999 for ImageNet"},
        ),
        MethodEntry(
            "elm",
            "Logit adjustment, tight features of rare classes.",
            ELMLoss,
            given=("class_counts",),
            paper="Jitkrittum et al., 2022, arXiv 2204.13208",
            required_inputs=("features", "class counts"),
            origins={"strength": PAPER, "slack": f"{PAPER}, CIFAR100-LT and iNaturalist"},
            differences="No code was published. We assume that the positives are taken from the batch.",
            incompatible=dict.fromkeys(
                ("logit-adjustment", "balanced-softmax", "post-hoc-logit-adjustment"),
                "ELM already includes logit adjustment",
            ),
        ),
        MethodEntry(
            "lmdl",
            "Compact classes, centroids far from the boundaries.",
            LargeMarginDiscriminativeLoss,
            given=("num_classes", "feature_dim"),
            paper="Nguyen et al., 2024",
            required_inputs=("features", "head"),
            origins={
                "radius": CODE,
                "distance": f"{CODE}, training script",
                "compact": CODE,
                "separate": CODE,
                "shrink": CODE,
                "momentum": CODE,
                "centroids": PAPER,
            },
            differences="Published code and paper agree. In the code, the constructor defaults to a distance of 1.5 "
            "and the training script uses 6. Only partial momentum is implemented, and the centroids are not saved.",
        ),
        *catalog_robust.ENTRIES,
        *catalog_embedding.ENTRIES,
    ],
)


def names() -> list[str]:
    """Return the names of all methods.

    >>> "mr2" in names()
    True
    """
    return METHODS.names()


def build(text: str, *, num_classes: int, **given: Any) -> Method:
    """Create a method from its name.

    Args:
        text: ``NAME[:option=value …]``, for example ``mr2:strength=0.1``, or a composition joined by ``+`` in any
            order: ``sam:rho=0.1+mr2``, ``mr2+tau-norm``, ``mr2+logit-adjustment``.
        num_classes: Number of classes.
        given: Inputs that some methods require: ``class_counts`` (training samples per class), ``feature_dim`` (width
            of the features), ``num_samples`` (size of the training set).

    Raises:
        MissingInputsError: If a required input is missing.
        ValueError: If a name or an option is invalid, or two methods do not compose.

    >>> build("mr2:margin=2", num_classes=10).loss.margin
    2.0
    >>> build("sam+center", num_classes=10, feature_dim=64).loss.strength
    0.008
    >>> build("triplet+center", num_classes=10, feature_dim=64)
    Traceback (most recent call last):
    ValueError: method triplet+center: triplet and center do not compose; both are losses, and a run minimizes one loss.
    """
    components = parse(text, METHODS)
    try:
        return compose(components, METHODS, num_classes=num_classes, **given)
    except MissingInputsError as error:
        error.args = (
            f"{str(error).removesuffix('.')}: pass {', '.join(f'{name}=…' for name in error.names)} to build.",
        )
        raise
