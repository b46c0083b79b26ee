"""Trained networks as parts of a fix: rebuilt from their names, with the weights in ``fix.safetensors``."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from classgap.engine.storage.networks import TrainedNetwork, build_network, describe_network
from classgap.models.heads import exchange_head, head_of
from classgap.remedies.modules import PARTS, Part, build_part, describe_part


class Network(Part):
    """A trained network: inputs, normalized as in training, to logits (B, K).

    Args:
        module: the network, in any mode.
        model: its name, from which :func:`classgap.models.build` creates the architecture.
        num_classes: K.
        input_shape: shape of one input.

    >>> network = Network.from_config({"model": "mlp:width=8", "num_classes": 3, "input_shape": [4], "head": "linear"})
    >>> network(torch.zeros(2, 4)).shape
    torch.Size([2, 3])
    """

    def __init__(self, module: nn.Module, model: str, num_classes: int, input_shape: Sequence[int]) -> None:
        super().__init__()
        self.module = module.requires_grad_(False)
        self.model, self.num_classes, self.input_shape = model, num_classes, tuple(input_shape)
        self.eval()

    @property
    def head(self) -> nn.Module:
        """The layer that computes the logits."""
        return head_of(self.module)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits (B, K)."""
        logits: Tensor = self.module(inputs)
        return logits

    def with_head(self, head: nn.Module) -> Network:
        """Return the network with another head; all other weights are shared with this one, not copied."""
        shared = {id(each): each for each in (*self.module.parameters(), *self.module.buffers())}
        module = copy.deepcopy(self.module, shared)
        exchange_head(module, head.requires_grad_(False))
        return Network(module, self.model, self.num_classes, self.input_shape)

    def same_architecture(self, other: Network) -> bool:
        """Return whether weights of one network fit the other."""
        return self.config() == other.config()

    def config(self) -> dict[str, Any]:
        """Return the name of the architecture, its shapes and the kind of its head."""
        return describe_network(self.module, self.model, self.num_classes, self.input_shape)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Build the architecture; no pretrained weights are loaded."""
        return cls(build_network(config), config["model"], int(config["num_classes"]), tuple(config["input_shape"]))

    @classmethod
    def from_trained(cls, trained: TrainedNetwork) -> Self:
        """Take the network of a finished run."""
        about = trained.description
        return cls(trained.module, about["model"], int(about["num_classes"]), tuple(about["input_shape"]))


class MeanNetwork(Part):
    """Average the probabilities of several networks or views of them for the same inputs: log of the mean softmax.

    Args:
        parts: modules that map the inputs to logits (B, K).

    >>> same = {"model": "linear", "num_classes": 2, "input_shape": [3], "head": "linear"}
    >>> mean = MeanNetwork([Network.from_config(same), Network.from_config(same)])
    >>> round(mean(torch.ones(1, 3)).exp().sum().item(), 4)
    1.0
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.eval()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return log-probabilities (B, K)."""
        total = torch.stack([part(inputs).softmax(dim=1) for part in self.parts]).mean(dim=0)
        return total.clamp(min=torch.finfo(total.dtype).tiny).log()

    def config(self) -> dict[str, Any]:
        """Return the configurations of the averaged modules."""
        return {"parts": [describe_part(part) for part in self.parts]}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Build the modules."""
        return cls([build_part(part) for part in config["parts"]])


PARTS.update({kind.__name__: kind for kind in (Network, MeanNetwork)})
