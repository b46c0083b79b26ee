"""Classifier retraining, cRT (Kang et al. 2020)."""

from __future__ import annotations

from torch import nn

from classgap.methods.classifier_stage import ClassifierStage
from classgap.methods.method import Method


class ClassifierRetraining(ClassifierStage):
    """Retrain the classifier on frozen features with class-balanced sampling.

        encoder:     trained by another method, with the run's sampler
        classifier:  reinitialized; CE over class-balanced samples, encoder frozen

    Kang et al., "Decoupling representation and classifier for long-tailed recognition", ICLR 2020, arXiv 1910.09217.
    The learning rate schedule restarts for this stage. The published sampler draws four samples of a class in a row;
    here each draw picks a class. The published code trains the encoder for 90 epochs and the classifier for 10.

    Args:
        inner: Method that trains the encoder.
        num_classes: Number of classes K.
        fraction: Length of the stage, as a fraction of the run's epochs.

    >>> from classgap.losses import CrossEntropyLoss
    >>> method = ClassifierRetraining(Method(CrossEntropyLoss(10)), 10)
    >>> [(stage.name, stage.length(90)) for stage in method.stages()]
    [('train', 90), ('re-training', 10)]
    """

    name = "crt"

    def __init__(self, inner: Method, num_classes: int, *, fraction: float = 0.11) -> None:
        super().__init__(inner, num_classes, fraction=fraction)

    def prepare_head(self, head: nn.Linear, model: nn.Module) -> None:
        """Reinitialize the head."""
        head.reset_parameters()
        head.requires_grad_(True)
