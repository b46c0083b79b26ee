"""LGM, the large-margin Gaussian mixture loss, and the head whose logits it takes (Wan et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from classgap.functional import half_log_determinants, mahalanobis_distances, margin_cross_entropy
from classgap.losses.arguments import check_bool, check_choice, check_float, check_int
from classgap.losses.base import ClassLoss, Part
from classgap.losses.inputs import LossInputs


class GaussianMixtureHead(nn.Module):
    """Classifier layer with one Gaussian per class, which replaces the last linear layer of a model.

        z_k  =  -½ Σ_j (f_j - μ_kj)² / σ_kj²  -  ½ ln |Λ_k|,     up to a constant the log-likelihood of class k

    :class:`GaussianMixtureLoss` takes its logits in training; softmax and argmax apply as usual. It computes in at
    least float32.

    Args:
        features: Number of features D.
        classes: Number of classes K.
        variances: "unit" for σ = 1, as in the published examples, or "learned", one per class and feature.
        log_determinant: Whether learned variances include the last term. The published code omits it; then the
            variances only rescale distances and z_k is not a likelihood. With it, the likelihood of a class whose
            samples coincide is unbounded.

    Attributes:
        weight: Class means μ, (K, D).
        log_variance: ln σ², (K, D), or None.

    >>> head = GaussianMixtureHead(1, 2)
    >>> _ = head.weight.data.copy_(torch.tensor([[0.0], [2.0]]))
    >>> head(torch.tensor([[0.0], [1.0]])).tolist()
    [[-0.0, -2.0], [-0.5, -0.5]]
    """

    log_variance: Tensor | None

    def __init__(self, features: int, classes: int, *, variances: str = "unit", log_determinant: bool = True) -> None:
        super().__init__()
        self.in_features = check_int("features", features, ge=1)
        self.out_features = check_int("classes", classes, ge=1)
        self.log_determinant = check_bool("log_determinant", log_determinant)
        self.weight = nn.Parameter(torch.empty(self.out_features, self.in_features))
        nn.init.xavier_uniform_(self.weight)
        learned = check_choice("variances", variances, ("unit", "learned")) == "learned"
        self.register_parameter("log_variance", nn.Parameter(torch.zeros_like(self.weight)) if learned else None)

    @property
    def bias(self) -> Tensor | None:
        """-½ ln |Λ_k|, (K,), the term of the logits that does not depend on the features; None if it is 0."""
        if self.log_variance is None or not self.log_determinant:
            return None
        return -half_log_determinants(self.log_variance)

    def forward(self, features: Tensor) -> Tensor:
        """Compute logits, (B, K)."""
        with torch.autocast(features.device.type, enabled=False):
            dtype = torch.promote_types(torch.promote_types(features.dtype, self.weight.dtype), torch.float32)
            log_variance = None if self.log_variance is None else self.log_variance.to(dtype)
            logits = -mahalanobis_distances(features.to(dtype), self.weight.to(dtype), log_variance)
            return logits if self.bias is None else logits + self.bias.to(dtype)

    def extra_repr(self) -> str:
        """Show the main settings."""
        variances = "unit" if self.log_variance is None else "learned"
        return f"{self.in_features}, {self.out_features}, variances={variances!r}"


class GaussianMixtureLoss(ClassLoss):
    """Cross-entropy with a margin on the distance to the mean of the true class, plus the likelihood of the features.

        mean over samples of   CE(z - α d_y e_y, y)  +  λ (d_y + ½ ln |Λ_y|),   d_y = ½ Σ_j (f_j - μ_yj)² / σ_yj²

    z are the logits of a :class:`GaussianMixtureHead`, which must be the head of the model; no other features are
    needed. The margin multiplies the distance to the true class by 1 + α, in training only.

    Wan et al., "Rethinking feature distribution for loss functions in image classification", CVPR 2018, arXiv
    1803.02988. Differences between sources: the published code (WeitaoVan/L-GM-loss) omits ½ ln |Λ| and fixes all
    variances at 1 (``GaussianMixtureHead(variances="unit")``, the default), for which the omitted term is 0. Its Caffe
    version, the source of the default λ, adds the gradient of the likelihood but not its value, and omits 1/σ²; its
    TensorFlow version uses λ = 0.01. The margin starts at 0.1, doubles every 5,000 steps and stops at 0.3; set
    ``loss.margin`` at any time.

    Args:
        num_classes: Number of classes K.
        margin: Margin α.
        strength: Weight λ of the likelihood.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> head = GaussianMixtureHead(1, 2)
    >>> _ = head.weight.data.copy_(torch.tensor([[0.0], [2.0]]))
    >>> loss = GaussianMixtureLoss(num_classes=2, margin=1.0)
    >>> features = torch.tensor([[1.0]])
    >>> _ = loss(head(features), torch.tensor([0]), features=features, head=head)
    >>> loss.terms  # ln(1 + e^(-½ + 2 · ½)), and ½ · 1²
    {'classification': tensor(0.9741), 'likelihood': tensor(0.5000)}
    """

    head_type = GaussianMixtureHead

    def __init__(
        self,
        num_classes: int,
        *,
        margin: float = 0.1,
        strength: float = 0.1,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.margin = check_float("margin", margin, ge=0)
        self.strength = check_float("strength", strength, ge=0)
        # Even with unit variances: logits of another head are not distances.
        self.required_inputs = frozenset({"head"})

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return the parts "classification" and "likelihood"."""
        assert batch.head is not None
        label_B = batch.labels_B.clamp(min=0)
        own_B = batch.logits_BK.gather(1, label_B[:, None]).squeeze(1)
        distance_B = -own_B if batch.head.bias_K is None else batch.head.bias_K[label_B] - own_B
        logits_BK = batch.logits_BK
        if self.training:
            logits_BK = logits_BK.scatter_add(1, label_B[:, None], -self.margin * distance_B[:, None])
        parts = {"classification": Part(margin_cross_entropy(logits_BK, batch.labels_B))}
        if self.strength:
            parts["likelihood"] = Part(batch.counted(-own_B), self.strength)
        return parts

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, margin={self.margin}, strength={self.strength}"
