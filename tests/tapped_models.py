"""Small models for the tests of FeatureTap, and what must hold for every one of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from classgap.features import FeatureTap

CLASSES = 7
TEXT = {"vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}


class CosineHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(CLASSES, 5))

    def forward(self, features: Tensor) -> Tensor:
        return 16 * F.normalize(features) @ F.normalize(self.weight).T


class Net(nn.Module):
    """A plain model: body, ReLU, and a head of any kind under any name."""

    def __init__(self, name: str = "top", head: nn.Module | None = None) -> None:
        super().__init__()
        self.body = nn.Linear(6, 5)
        self.name = name
        self.add_module(name, nn.Linear(5, CLASSES) if head is None else head)

    def embed(self, x: Tensor) -> Tensor:
        return self.body(x).relu()

    def forward(self, x: Tensor) -> Tensor:
        return self.get_submodule(self.name)(self.embed(x))


def check_tap(model: nn.Module, inputs: Tensor | dict[str, Tensor], name: str, **given: Any) -> FeatureTap:
    """The head is the layer called ``name``, and applied to the features it gives the logits."""
    tap = FeatureTap(model, **given)
    assert tap.head is model.get_submodule(name)
    output = model(**inputs) if isinstance(inputs, dict) else model(inputs)
    assert tap.features.dim() == 2
    assert tap.features.requires_grad
    torch.testing.assert_close(tap.head(tap.features), getattr(output, "logits", output))
    return tap


def hugging_face(kind: str, options: dict[str, Any]) -> tuple[nn.Module, dict[str, Tensor]]:
    model_class = getattr(pytest.importorskip("transformers"), kind)
    model = model_class(model_class.config_class(num_labels=CLASSES, **options)).eval()
    if "Image" in kind:
        return model, {"pixel_values": torch.randn(2, 3, 16, 16)}
    return model, {"input_ids": torch.tensor([[3, 4, 5, 2], [6, 7, 8, 2]])}
