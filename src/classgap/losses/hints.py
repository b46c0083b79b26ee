"""What to do about inputs of another form than a loss takes; "" where nothing is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor


def logits_hint(value: Any, num_classes: int) -> str:
    """How to get (batch, classes) from what a model may return.

    >>> import torch
    >>> logits_hint({"logits": torch.zeros(2, 3)}, 3)
    ': pass its "logits"'
    """
    if getattr(value, "logits", None) is not None or (isinstance(value, Mapping) and "logits" in value):
        return ': pass its "logits"'
    if isinstance(value, tuple | list):
        return ": pass the entry that holds the logits"
    if isinstance(value, Tensor) and value.dim() > 2 and num_classes in value.shape:
        return ": every pixel or token is a sample here, so make rows of them, and of the targets"
    return ""


def targets_hint(value: Any, batch: int, num_classes: int) -> str:
    """How to get one class index a sample from what a loader may give.

    >>> import torch
    >>> targets_hint(torch.tensor([[0], [2]]), 2, 3)
    ': use targets.squeeze(1)'
    >>> targets_hint(torch.tensor([[1, 0, 0], [0, 0, 1]]), 2, 3)
    ': use targets.argmax(1) if they are one-hot'
    """
    if isinstance(value, list):
        return ": use torch.tensor(targets)"
    if not isinstance(value, Tensor):
        return ""
    if value.shape == (batch, num_classes) and num_classes > 1:
        return ": use targets.argmax(1) if they are one-hot"
    if value.shape == (batch, 1):
        return ": use targets.squeeze(1)"
    if value.shape == (batch,):
        return ": use targets.long()"
    return ""
