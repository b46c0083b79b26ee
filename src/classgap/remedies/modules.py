"""Modules that turn the outputs of trained models into better scores. Each exports to ONNX with the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn


class Part(nn.Module, ABC):
    """A module of a fix that can be saved as plain values and tensors."""

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Return plain values from which :meth:`from_config` builds a module with the same shapes."""

    @classmethod
    @abstractmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Build a module whose tensors are loaded afterwards."""


class ClassAffine(Part):
    """Scale and shift the log-probability of each class: scale_k · log softmax(z)_k + offset_k.

    Logits and log-probabilities give the same result. Class offsets, prior correction and class-wise temperatures are
    of this form.

    Args:
        scale_K: inverse temperature of each class, positive.
        offset_K: offset of each class.

    >>> scores = ClassAffine(torch.ones(2), torch.tensor([0.0, 1.5]))(torch.tensor([[1.0, 0.0]]))
    >>> round((scores[0, 1] - scores[0, 0]).item(), 4)
    0.5
    """

    scale: Tensor
    offset: Tensor

    def __init__(self, scale_K: Tensor, offset_K: Tensor) -> None:
        super().__init__()
        self.register_buffer("scale", scale_K)
        self.register_buffer("offset", offset_K)

    def forward(self, logits_BK: Tensor) -> Tensor:
        """Return adjusted scores (B, K)."""
        return logits_BK.log_softmax(dim=1) * self.scale + self.offset

    def config(self) -> dict[str, Any]:
        """Return the number of classes."""
        return {"num_classes": len(self.scale)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Build the identity."""
        return cls(torch.ones(config["num_classes"]), torch.zeros(config["num_classes"]))


class ExpectedCost(Part):
    """Score each class by minus its expected cost: -Σ_j p_j C[j, k], p the softmax of the scores.

    Args:
        cost_KK: cost of predicting class k (column) for a sample of class j (row).

    >>> ExpectedCost(torch.tensor([[0.0, 1.0], [9.0, 0.0]]))(torch.tensor([[1.0, 0.0]])).argmax().item()
    1
    """

    cost: Tensor

    def __init__(self, cost_KK: Tensor) -> None:
        super().__init__()
        self.register_buffer("cost", cost_KK)

    def forward(self, logits_BK: Tensor) -> Tensor:
        """Return minus the expected cost of each class (B, K)."""
        probability_BK = logits_BK.softmax(dim=1)
        return -(probability_BK @ self.cost.to(probability_BK.dtype))

    def config(self) -> dict[str, Any]:
        """Return the number of classes."""
        return {"num_classes": len(self.cost)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Build with zero costs."""
        return cls(torch.zeros(config["num_classes"], config["num_classes"]))


class MeanProbability(Part):
    """Average the probabilities of several models: log of the mean softmax.

    >>> MeanProbability()(torch.zeros(3, 1, 2)).exp()
    tensor([[0.5000, 0.5000]])
    """

    def forward(self, logits_MBK: Tensor) -> Tensor:
        """Return log-probabilities (B, K) from the logits of M models (M, B, K)."""
        return logits_MBK.softmax(dim=2).mean(dim=0).clamp(min=torch.finfo(logits_MBK.dtype).tiny).log()

    def config(self) -> dict[str, Any]:
        """Return nothing: the mean has no settings."""
        return {}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Build the mean."""
        return cls()


class Head(Part):
    """Linear classifier of frozen features.

    Args:
        weight_KD: weight.
        bias_K: bias; 0 if ``None``.

    >>> Head(torch.eye(2))(torch.tensor([[1.0, 2.0]]))
    tensor([[1., 2.]])
    """

    weight: Tensor
    bias: Tensor

    def __init__(self, weight_KD: Tensor, bias_K: Tensor | None = None) -> None:
        super().__init__()
        self.register_buffer("weight", weight_KD.detach().float())
        self.register_buffer("bias", torch.zeros(len(weight_KD)) if bias_K is None else bias_K.detach().float())

    def forward(self, features_BD: Tensor) -> Tensor:
        """Return logits (B, K)."""
        kind = features_BD.dtype
        return nn.functional.linear(features_BD, self.weight.to(kind), self.bias.to(kind))

    def config(self) -> dict[str, Any]:
        """Return the numbers of classes and features."""
        return {"num_classes": self.weight.shape[0], "num_features": self.weight.shape[1]}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Build with zero weights."""
        return cls(torch.zeros(config["num_classes"], config["num_features"]))


class CosineHead(Part):
    """Cosine classifier of frozen features: z_k = scale · cos(f, w_k).

    Args:
        weight_KD: weight; only the directions of its rows matter.
        scale: inverse temperature, a scalar.

    >>> CosineHead(torch.tensor([[5.0, 0.0], [0.0, 1.0]]), torch.tensor(10.0))(torch.tensor([[3.0, 4.0]]))
    tensor([[6., 8.]])
    """

    weight: Tensor
    scale: Tensor

    def __init__(self, weight_KD: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.register_buffer("weight", weight_KD.detach().float())
        self.register_buffer("scale", scale.detach().float())

    def forward(self, features_BD: Tensor) -> Tensor:
        """Return logits (B, K)."""
        unit_BD, unit_KD = (nn.functional.normalize(each, dim=1) for each in (features_BD, self.weight))
        return self.scale * nn.functional.linear(unit_BD, unit_KD)

    def config(self) -> dict[str, Any]:
        """Return the numbers of classes and features."""
        return {"num_classes": self.weight.shape[0], "num_features": self.weight.shape[1]}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Build with zero weights."""
        return cls(torch.zeros(config["num_classes"], config["num_features"]), torch.tensor(1.0))


PARTS: dict[str, type[Part]] = {
    kind.__name__: kind for kind in (ClassAffine, ExpectedCost, MeanProbability, Head, CosineHead)
}


def describe_part(part: nn.Module) -> dict[str, Any]:
    """Return the type and the configuration of a part as plain values.

    >>> describe_part(MeanProbability())
    {'type': 'MeanProbability'}
    """
    assert isinstance(part, Part)
    return {"type": type(part).__name__, **part.config()}


def build_part(config: Mapping[str, Any]) -> Part:
    """Build a part from :func:`describe_part`; its tensors are loaded afterwards."""
    return PARTS[config["type"]].from_config(config)


def mean_probability(logits: Sequence[Tensor]) -> Tensor:
    """Average the probabilities of several models whose logits have the same shape."""
    logits_MNK = torch.stack([each.to(torch.promote_types(each.dtype, torch.float32)) for each in logits])
    averaged: Tensor = MeanProbability()(logits_MNK)
    return averaged
