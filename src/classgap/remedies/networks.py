"""Trained networks as parts of a fix: rebuilt from their names, with the weights in ``fix.safetensors``."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from classgap.losses import GaussianMixtureHead
from classgap.models import MODELS, CosineClassifier, Frozen
from classgap.models.checkpoint import network_spec
from classgap.models.heads import exchange_head, head_of
from classgap.models.state_files import read_weights
from classgap.registry import Spec
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
        head = self.head
        described: dict[str, Any] = {
            "model": self.model,
            "num_classes": self.num_classes,
            "input_shape": list(self.input_shape),
        }
        if isinstance(head, GaussianMixtureHead):
            variances = "unit" if head.log_variance is None else "learned"
            return described | {
                "head": "gaussian-mixture",
                "variances": variances,
                "log_determinant": head.log_determinant,
            }
        if isinstance(head, CosineClassifier):
            return described | {"head": "cosine"}
        return described | {"head": "linear", "bias": getattr(head, "bias", None) is not None}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Build the architecture; no pretrained weights are loaded."""
        classes, shape = int(config["num_classes"]), tuple(config["input_shape"])
        names = [str(k) for k in range(classes)]  # for a zero-shot head, whose weights are loaded afterwards
        module = MODELS.build(config["model"], num_classes=classes, input_shape=shape, class_names=names, load=False)
        module = module.module if isinstance(module, Frozen) else module
        _fit_head(module, config, classes)
        return cls(module, config["model"], classes, shape)


class MeanNetwork(Part):
    """Average the probabilities of several networks or views of them for the same inputs: log of the mean softmax.

    Args:
        parts: modules that map the inputs to logits (B, K).

    >>> same = {"model": "linear", "num_classes": 2, "input_shape": [3], "head": "linear"}
    >>> mean = MeanNetwork([Network.from_config(same), Network.from_config(same)])
    >>> mean(torch.ones(1, 3)).exp().sum().item()
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


def architecture(model: str) -> str:
    """Return the name of a network without options that load or freeze weights.

    >>> architecture("timm:resnet18:pretrained=yes:frozen=yes")
    'timm:resnet18:pretrained=yes'
    """
    spec = Spec.parse(model)
    while spec.name == "checkpoint":
        path = spec.argument or ""
        spec = network_spec(path, spec.options.get("model") or read_weights(Path(path)).network)
    options = [f"{key}={value}" for key, value in spec.options.items() if key != "frozen"]
    return ":".join([spec.name, *([] if spec.argument is None else [spec.argument]), *options])


def load_network(run_directory: Path, module: nn.Module, config: Mapping[str, Any]) -> Network:
    """Build the network of a finished run with its final weights.

    Args:
        run_directory: directory of the run.
        module: a network as the run trained it, for the kind of its head; methods may replace the head.
        config: "model", "num_classes" and "input_shape".

    Raises:
        ValueError: if the weights do not fit.
    """
    like = Network(module, config["model"], config["num_classes"], config["input_shape"])
    network = Network.from_config(like.config())
    try:
        network.module.load_state_dict(read_weights(run_directory).state)
    except RuntimeError as error:
        raise ValueError(f"the weights of {run_directory} do not fit {config['model']}: {error}") from None
    return network


def _fit_head(module: nn.Module, config: Mapping[str, Any], classes: int) -> None:
    """Replace the head that the architecture was created with, if the trained network has another kind."""
    before, kind = head_of(module), config["head"]
    features = before.get_parameter("weight").shape[1]
    bias = config.get("bias", True)
    if kind == "gaussian-mixture":
        options = {"variances": config["variances"], "log_determinant": config["log_determinant"]}
        exchange_head(module, GaussianMixtureHead(features, classes, **options))
    elif kind == "cosine" and not isinstance(before, CosineClassifier):
        exchange_head(module, CosineClassifier(features, classes))
    elif kind == "linear" and (getattr(before, "bias", None) is not None) != bias:
        exchange_head(module, nn.Linear(features, classes, bias=bias))
