"""Supervised contrastive learning (Khosla et al. 2020), in two stages or jointly with cross-entropy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from classgap.losses import CrossEntropyLoss, SupervisedContrastiveLoss
from classgap.losses.arguments import check_float, check_int
from classgap.methods.method import Method, Stage
from classgap.methods.staged import Phase, StagedMethod

if TYPE_CHECKING:
    from classgap.data.batch import Batch
    from classgap.losses.base import ClassLoss
    from classgap.methods.protocol import TrainingRun


class SupervisedContrast(StagedMethod):
    """Train the encoder with the supervised contrastive loss, then a linear classifier on the frozen encoder.

        1. contrast:    -(1/|P|) Σ_{p∈P} ln[ exp(u·u_p/τ) / Σ_{a≠i} exp(u·u_a/τ) ],   u = g(f) / ‖g(f)‖     Eq. (2)
        2. classifier:  CE(W f + b, y),   encoder frozen, g discarded

    Khosla et al., "Supervised contrastive learning", NeurIPS 2020, arXiv 2004.11362. Each sample has two
    augmented views. The positives P are all other views of its class in the global batch. The projection g has two
    linear layers with a ReLU in between. Use an augmentation: with ``augment="none"`` both views are equal. Each stage
    lasts ``epochs`` epochs.

    The published code (HobbitLong/SupContrast) multiplies the contrastive loss by τ/0.07. Its default is τ = 0.07, its
    recipe uses 0.1. The recipe trains with batch size 1024 at a learning rate of 0.5, then the classifier at 5:
    ``classifier_rate=10``. The MR² paper does not state which form it compares with.

    Args:
        num_classes: Number of classes K.
        feature_dim: Width of the features D.
        temperature: Temperature τ.
        projection: Output width of g.
        classifier_rate: Learning rate of the second stage, as a multiple of the run's.

    >>> method = SupervisedContrast(num_classes=10, feature_dim=64)
    >>> [stage.name for stage in method.stages()], method.views
    (['contrast', 'classifier'], 2)
    """

    def __init__(
        self,
        num_classes: int,
        feature_dim: int,
        *,
        temperature: float = 0.1,
        projection: int = 128,
        classifier_rate: float = 1.0,
    ) -> None:
        contrast = SupervisedContrastiveLoss(num_classes, cross_entropy=0.0, temperature=temperature)
        rate = check_float("classifier_rate", classifier_rate, gt=0)
        super().__init__(
            Phase(Stage("contrast"), contrast, "encoder"),
            Phase(Stage("classifier"), CrossEntropyLoss(num_classes), "head", rate),
        )
        self.projection = make_projection(feature_dim, projection)
        self.views = 2

    @property
    def trains_encoder(self) -> bool:
        """True in the first stage."""
        return self.phase is self.phases[0]

    def stage_start(self, run: TrainingRun) -> None:
        """Use two views for the encoder, one for the classifier."""
        super().stage_start(run)
        self.views = 2 if self.trains_encoder else 1

    def parameter_groups(self, run: TrainingRun) -> list[dict[str, Any]]:
        """Return the encoder with its projection, or the classifier."""
        groups = super().parameter_groups(run)
        if self.trains_encoder:
            groups[0]["params"] += list(self.projection.parameters())
        return groups

    def objective(self, run: TrainingRun, batch: Batch) -> Tensor:
        """Compute the contrastive loss of two views, or cross-entropy."""
        return two_view_loss(self, run, batch) if self.trains_encoder else super().objective(run, batch)


class JointContrast(Method):
    """Cross-entropy plus the supervised contrastive loss of two views, in one stage.

        mean over both views of   CE(z, y)  -  λ (1/|P|) Σ_{p∈P} ln[ exp(u·u_p/τ) / Σ_{a≠i} exp(u·u_a/τ) ],
        u = g(f) / ‖g(f)‖

    Khosla et al., "Supervised contrastive learning", NeurIPS 2020, arXiv 2004.11362, Eq. (2). The paper trains in two
    stages (``supcon``); the joint form allows comparisons at equal epochs. The MR² paper states neither which form it
    compares with nor λ. λ = 0 is cross-entropy of both views.

    Args:
        num_classes: Number of classes K.
        feature_dim: Width of the features D.
        strength: Weight λ of the contrastive loss.
        temperature: Temperature τ.
        projection: Output width of g.

    >>> JointContrast(num_classes=10, feature_dim=64).views
    2
    """

    views = 2

    def __init__(
        self,
        num_classes: int,
        feature_dim: int,
        *,
        strength: float = 1.0,
        temperature: float = 0.1,
        projection: int = 128,
    ) -> None:
        super().__init__(SupervisedContrastiveLoss(num_classes, strength=strength, temperature=temperature))
        self.projection = make_projection(feature_dim, projection)

    def parameter_groups(self, run: TrainingRun) -> list[dict[str, Any]]:
        """Return the model with its projection."""
        parameters = [each for each in run.model.parameters() if each.requires_grad]
        return [{"params": parameters + list(self.projection.parameters())}]

    def objective(self, run: TrainingRun, batch: Batch) -> Tensor:
        """Compute both terms on both views."""
        return two_view_loss(self, run, batch)


def make_projection(feature_dim: int, width: int) -> nn.Sequential:
    """Create the projection g: two linear layers with a ReLU in between.

    >>> [layer.out_features for layer in make_projection(64, 128) if isinstance(layer, nn.Linear)]
    [64, 128]
    """
    hidden = check_int("feature_dim", feature_dim, ge=1)
    return nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, check_int("projection", width, ge=1)))


def two_view_loss(method: SupervisedContrast | JointContrast, run: TrainingRun, batch: Batch) -> Tensor:
    """Compute the loss of both views of a batch, with projected features."""
    assert batch.other_view is not None
    loss: ClassLoss = method.loss
    logits = run.forward(torch.cat([batch.inputs, batch.other_view]))
    projected = run.outputs(method.projection, run.tap.features)
    return loss(logits, torch.cat([batch.targets, batch.targets]), features=projected)
