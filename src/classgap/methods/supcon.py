"""Supervised contrastive learning (Khosla et al. 2020) with two views: in two stages, or joint with cross-entropy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from classgap.losses import CrossEntropyLoss, SupervisedContrastiveLoss
from classgap.losses.arguments import check_float, check_int
from classgap.methods.method import Method, Stage
from classgap.methods.staged import Phase, StagedMethod

if TYPE_CHECKING:
    from classgap.data.batches import Batch
    from classgap.engine.run import Run
    from classgap.losses.base import ClassLoss


class SupervisedContrast(StagedMethod):
    """First an encoder that puts classes apart, then a linear classifier on the encoder as it is.

        1. contrast:    -(1/|P|) Σ_{p∈P} ln[ exp(u·u_p/τ) / Σ_{a≠i} exp(u·u_a/τ) ],   u = g(f) / ‖g(f)‖     Eq. (2)
        2. classifier:  CE(W f + b, y),   the encoder frozen and g forgotten

    Khosla et al., "Supervised contrastive learning", NeurIPS 2020, arXiv 2004.11362. Every sample is there in two
    augmented views; P are all views of its class in the batch but itself, on all processes. g is a projection by two
    linear layers with ReLU between them. With ``augment="none"`` the two views are equal, and the paper's point is
    missed. Each stage has the run's epochs.

    Where sources differ: the published code (HobbitLong/SupContrast) multiplies the contrast by τ/0.07; its default is
    τ = 0.07, its recipe 0.1. Its recipe trains with batches of 1024 at a rate of 0.5 and then the classifier at 5: ten
    times the rate, ``classifier_rate=10``. The MR² paper does not say which form it compares with.

    Args:
        num_classes: K.
        feature_dim: D, the width of the features.
        temperature: τ.
        projection: width of g's output.
        classifier_rate: of the second stage, as a share of the run's learning rate.

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
        self.projection = new_projection(feature_dim, projection)
        self.views = 2

    @property
    def contrasts(self) -> bool:
        """Whether this is the first stage."""
        return self.phase is self.phases[0]

    def stage_start(self, run: Run) -> None:
        """Two views for the contrast, one for the classifier."""
        super().stage_start(run)
        self.views = 2 if self.contrasts else 1

    def parameter_groups(self, run: Run) -> list[dict[str, Any]]:
        """The encoder with its projection, or the classifier."""
        groups = super().parameter_groups(run)
        if self.contrasts:
            groups[0]["params"] += list(self.projection.parameters())
        return groups

    def objective(self, run: Run, batch: Batch) -> Tensor:
        """The contrast of two views, or cross-entropy."""
        return contrast_of_views(self, run, batch) if self.contrasts else super().objective(run, batch)


class JointContrast(Method):
    """Cross-entropy and the supervised contrast of two views, in one stage.

        mean over both views of   CE(z, y)  -  λ (1/|P|) Σ_{p∈P} ln[ exp(u·u_p/τ) / Σ_{a≠i} exp(u·u_a/τ) ],
        u = g(f) / ‖g(f)‖

    The contrast of Khosla et al., "Supervised contrastive learning", NeurIPS 2020, arXiv 2004.11362, Eq. (2), beside
    cross-entropy as a comparison on equal epochs may want it. The paper has two stages (``supcon``). The MR² paper says
    neither which form it compares with nor λ. With λ = 0 it is cross-entropy of both views.

    Args:
        num_classes: K.
        feature_dim: D, the width of the features.
        strength: λ.
        temperature: τ.
        projection: width of g's output.

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
        self.projection = new_projection(feature_dim, projection)

    def parameter_groups(self, run: Run) -> list[dict[str, Any]]:
        """The model with its projection."""
        parameters = [each for each in run.model.parameters() if each.requires_grad]
        return [{"params": parameters + list(self.projection.parameters())}]

    def objective(self, run: Run, batch: Batch) -> Tensor:
        """Both parts, of both views."""
        return contrast_of_views(self, run, batch)


def new_projection(feature_dim: int, width: int) -> nn.Sequential:
    """g: two linear layers with ReLU between them.

    >>> [layer.out_features for layer in new_projection(64, 128) if isinstance(layer, nn.Linear)]
    [64, 128]
    """
    hidden = check_int("feature_dim", feature_dim, ge=1)
    return nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, check_int("projection", width, ge=1)))


def contrast_of_views(method: SupervisedContrast | JointContrast, run: Run, batch: Batch) -> Tensor:
    """The method's loss of a batch of twice the size: every sample in both views, projected."""
    assert batch.other_view is not None
    loss: ClassLoss = method.loss
    logits = run.forward(torch.cat([batch.inputs, batch.other_view]))
    projected = run.outputs(method.projection, run.tap.features)
    return loss(logits, torch.cat([batch.targets, batch.targets]), features=projected)
