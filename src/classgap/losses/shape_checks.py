"""Checks of types, shapes, dtypes and devices of a loss's inputs. They read no values, so they cost next to nothing.

Each yields messages that name the argument, what was passed, and how to fix it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from classgap.losses.value_checks import promote

HOW_TO_GET = {
    "features": "pass features=tap.features, where tap = classgap.FeatureTap(model) and model was just called",
    "head": "pass head=tap.head (or model.fc …), the layer that maps features to logits",
    "index": "pass index=…, the position of each sample in the training set, as returned by the dataset",
}


def shape_problems(
    logits: Any,
    targets: Any,
    inputs: dict[str, Any],
    *,
    loss_name: str,
    required_inputs: frozenset[str],
    num_classes: int,
    width: int | None,
    soft_targets: bool,
) -> Iterator[str]:
    """Check shapes and dtypes of everything but the head."""
    if not isinstance(logits, Tensor) or logits.dim() != 2 or logits.shape[1] != num_classes:
        seen = describe(logits) + logits_hint(logits, num_classes)
        yield f"logits must be a tensor of shape (batch, num_classes={num_classes}); got {seen}."
        return
    if not logits.is_floating_point():
        yield f"logits must be floating point, got {logits.dtype}: pass the model's raw output."
    size = logits.shape[0]
    if isinstance(targets, Tensor) and targets.is_floating_point() and targets.dim() > 1:
        if not soft_targets:
            yield (
                f"{loss_name} does not support soft targets (mixup, CutMix): its formula needs one class per sample. "
                f"targets must be class indices, got {describe(targets)}; disable mixing or use another loss."
            )
        elif targets.shape != logits.shape:
            yield f"soft targets must have the shape of the logits, {tuple(logits.shape)}; got {describe(targets)}."
    elif not _are_labels(targets, size):
        seen = describe(targets) + targets_hint(targets, size, num_classes)
        yield f"targets must be an integer tensor of shape ({size},), one class index per sample; got {seen}."
    for name in sorted(required_inputs):
        if inputs.get(name) is None:
            yield f"{loss_name} needs {name}: {HOW_TO_GET[name]}."
            return
    yield from _keyword_problems(inputs, size, width)


def head_problems(head: Any, head_type: type[nn.Module], features: Tensor | None, num_classes: int) -> Iterator[str]:
    """Check that the head maps these features to these classes."""
    if head is None:
        return
    width = getattr(head, "in_features", "features") if features is None else features.shape[1]
    # By type too: the weight of a cosine classifier has that shape, but its decision boundaries differ.
    if not isinstance(head, head_type) or head.weight.shape != (num_classes, width):
        name = "nn.Linear" if head_type is nn.Linear else head_type.__name__
        seen = str(head) if isinstance(head, nn.Module) else f"{describe(head)}, not a module"
        yield f"head must be the {name}({width}, {num_classes}) that takes these features; got {seen}."
    elif features is not None and promote(head.weight).dtype != promote(features).dtype:
        yield f"head and features must have the same dtype; got {head.weight.dtype} and {features.dtype}."


def device_problems(
    logits: Tensor, targets: Tensor, inputs: dict[str, Any], loss_name: str, device: torch.device | None
) -> Iterator[str]:
    """Check that everything is on the device of the logits."""
    if device is not None and device != logits.device:
        yield f"{loss_name} is on {device}, logits are on {logits.device}: call loss.to({str(logits.device)!r}) once."
    for name, value in {"targets": targets, **inputs}.items():
        if isinstance(value, Tensor) and value.device != logits.device:
            yield f"{name} must be on the device of the logits, {logits.device}; got {value.device}."


def logits_hint(value: Any, num_classes: int) -> str:
    """Suggest how to get (batch, classes) from a common model output; empty for others.

    >>> import torch
    >>> logits_hint({"logits": torch.zeros(2, 3)}, 3)
    ': pass its "logits"'
    """
    if getattr(value, "logits", None) is not None or (isinstance(value, Mapping) and "logits" in value):
        return ': pass its "logits"'
    if isinstance(value, tuple | list):
        return ": pass the entry that holds the logits"
    if isinstance(value, Tensor) and value.dim() > 2 and num_classes in value.shape:
        return ": each pixel or token is a sample, so flatten them to rows, and the targets too"
    return ""


def targets_hint(value: Any, batch: int, num_classes: int) -> str:
    """Suggest how to get one class index per sample from a common loader output; empty for others.

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


def describe(value: Any) -> str:
    """Describe a value for an error message: shape and dtype of a tensor, small values themselves, else the type."""
    if isinstance(value, Tensor):
        return f"shape {tuple(value.shape)} of {str(value.dtype).removeprefix('torch.')}"
    return repr(value) if value is None or isinstance(value, (int, float, str)) else type(value).__name__


def _are_labels(targets: Any, size: int) -> bool:
    if not isinstance(targets, Tensor) or targets.shape != (size,):
        return False
    return not targets.is_floating_point() and targets.dtype != torch.bool


def _keyword_problems(inputs: dict[str, Any], size: int, width: int | None) -> Iterator[str]:
    features = inputs.get("features")
    if features is not None:
        if not isinstance(features, Tensor) or features.dim() != 2 or features.shape[0] != size:
            columns = "features" if width is None else width
            seen = describe(features)
            yield f"features must be a tensor of shape ({size}, {columns}), one row per sample; got {seen}."
            return
        if not features.is_floating_point():
            yield f"features must be floating point, got {features.dtype}."
        if width is not None and features.shape[1] != width:
            yield (
                f"features must have {width} columns, as in the constructor or in earlier batches; got "
                f"{features.shape[1]}: use one loss per network."
            )
    for name in ("index", "sample_weight"):
        value = inputs.get(name)
        if value is not None and (not isinstance(value, Tensor) or value.shape != (size,)):
            yield f"{name} must be a tensor of shape ({size},), one entry per sample; got {describe(value)}."
