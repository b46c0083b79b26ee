"""Classifier re-training, cRT (Kang et al. 2020)."""

from __future__ import annotations

from torch import nn

from classgap.methods.classifier_stage import ClassifierStage
from classgap.methods.method import Method


class ClassifierRetraining(ClassifierStage):
    """After training, a new classifier on the same features, with all classes drawn equally often.

        encoder:     as another method trains it, on the data as they are
        classifier:  fresh; CE over class-balanced draws, the encoder frozen

    Kang et al., "Decoupling representation and classifier for long-tailed recognition", ICLR 2020, arXiv 1910.09217.
    The rate starts again from the run's own and follows its schedule. The published sampler draws four samples of a
    class in a row, here every draw picks a class; the published stage has 10 epochs after 90.

    Args:
        inner: what trains the encoder.
        num_classes: K.
        share: of the run's epochs, for the classifier.

    >>> from classgap.losses import CrossEntropyLoss
    >>> method = ClassifierRetraining(Method(CrossEntropyLoss(10)), 10)
    >>> [(stage.name, stage.length(90)) for stage in method.stages()]
    [('train', 90), ('re-training', 10)]
    """

    name = "crt"

    def __init__(self, inner: Method, num_classes: int, *, share: float = 0.11) -> None:
        super().__init__(inner, num_classes, share=share)

    def trained_head(self, head: nn.Linear, model: nn.Module) -> None:
        """Start it afresh."""
        head.reset_parameters()
        head.requires_grad_(True)
