"""What a loss is called with: checked, promoted to at least float32, and with ignored samples marked.

Nothing here changes any state, so that a refused batch leaves a loss as it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from classgap.distributed import Shards, all_agree
from classgap.losses.hints import logits_hint, targets_hint

HOW_TO_GET = {
    "features": "pass features=tap.features, where tap = classgap.FeatureTap(model) and model was just called",
    "head": "pass head=tap.head (or model.fc …): the layer that turns features into logits",
    "index": "pass index=…: the position of each sample in the training set, which the dataset must return",
}


class InvalidBatchError(ValueError):
    """Wrong inputs of a loss; in training all processes raise it together, whichever was given them."""


@dataclass(frozen=True)
class Head:
    """Weight and bias of the classifier layer, at least float32."""

    weight_KD: Tensor
    bias_K: Tensor | None


@dataclass(frozen=True)
class LossInputs:
    """One call's inputs."""

    logits_BK: Tensor
    labels_B: Tensor  # -1 where ignored; of soft targets the largest class
    soft_BK: Tensor | None  # soft targets, of a loss that allows them
    features_BD: Tensor | None
    head: Head | None
    index_B: Tensor | None
    weight_B: Tensor | None
    shards: Shards
    finite: Tensor | None  # 0-d, in compiled code only: elsewhere anything else was refused
    complete: bool = False  # whether no sample here is ignored; False in compiled code, which cannot look

    def counted(self, terms_B: Tensor) -> Tensor:
        """The terms, with 0 for samples that are ignored."""
        return terms_B if self.complete else terms_B * (self.labels_B >= 0)

    def count(self) -> Tensor | int:
        """How many samples of this process are not ignored."""
        return len(self.labels_B) if self.complete else (self.labels_B >= 0).sum()

    @property
    def features(self) -> Tensor:
        """The features, of a loss that needs them."""
        assert self.features_BD is not None
        return self.features_BD

    @property
    def targets(self) -> Tensor:
        """What ``torch.nn.functional.cross_entropy`` takes: soft targets if there are any, else labels."""
        return self.labels_B if self.soft_BK is None else self.soft_BK


def admit(
    logits: Tensor,
    targets: Tensor,
    given: dict[str, Any],
    *,
    loss_name: str,
    required_inputs: frozenset[str],
    num_classes: int,
    width: int | None,
    ignore_index: int,
    soft_targets: bool,
    head_type: type[nn.Module],
    device: torch.device | None,
    joint: bool,
) -> LossInputs:
    """Check one call's inputs and make a :class:`LossInputs` of them.

    Raises:
        InvalidBatchError: if anything is wrong, on all processes together (``joint``), before anything has changed.
    """
    inputs = {name: value for name, value in given.items() if name in required_inputs or name == "sample_weight"}
    compiling = torch.compiler.is_compiling()
    problem = _first(
        _shape_problems(logits, targets, inputs, loss_name, required_inputs, num_classes, width, soft_targets)
    )
    if problem is None:
        problem = _first(_head_problems(inputs.get("head"), head_type, inputs.get("features"), num_classes))
    if problem is None:
        problem = _first(_device_problems(logits, targets, inputs, loss_name, device))
    span = None
    if problem is None and not compiling:
        span = _span(targets)
        problem = _first(_value_problems(logits, targets, span, inputs, num_classes, ignore_index))
    place = logits.device if isinstance(logits, Tensor) else torch.device("cpu")
    everywhere = all_agree(problem is None, place) if joint and not compiling else problem is None
    if not everywhere:
        raise InvalidBatchError(
            problem or f"{loss_name}: another process was given invalid inputs; its message says which."
        )

    logits, features = _promote(logits), _promote(inputs.get("features"))
    complete = span is not None and not span[0] <= ignore_index <= span[1]
    labels = targets.long() if complete else _labels(targets, num_classes, ignore_index)
    soft = targets.to(logits.dtype) if targets.is_floating_point() else None
    weight = _promote(inputs.get("sample_weight"))
    finite = None
    if compiling:
        finite = logits.isfinite().all()
        if features is not None:
            finite = finite & torch.linalg.vector_norm(features).isfinite()  # so are its squares
    return LossInputs(
        logits_BK=logits,
        labels_B=labels,
        soft_BK=soft,
        features_BD=features,
        head=_head(inputs.get("head")),
        index_B=inputs.get("index"),
        weight_B=weight,
        shards=Shards.from_batch_size(len(labels), place, joint=joint),
        finite=finite,
        complete=complete,
    )


def _first(problems: Iterator[str]) -> str | None:
    return next(problems, None)


def _promote(tensor: Any) -> Any:
    if tensor is None or tensor.dtype in (torch.float32, torch.float64):
        return tensor
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _labels(targets: Tensor, num_classes: int, ignore_index: int) -> Tensor:
    if targets.is_floating_point():
        return targets.argmax(dim=1)
    labels = targets.long()
    if torch.compiler.is_compiling():  # nothing was refused: what is below 0 is out of range, too, and not ignored
        return torch.where(labels == ignore_index, -1, torch.where(labels < 0, num_classes, labels))
    return torch.where(labels == ignore_index, -1, labels)


def _head(module: nn.Module | None) -> Head | None:
    if module is None:
        return None
    return Head(_promote(module.weight), _promote(getattr(module, "bias", None)))


def _shape_problems(
    logits: Any,
    targets: Any,
    inputs: dict[str, Any],
    loss_name: str,
    required_inputs: frozenset[str],
    num_classes: int,
    width: int | None,
    soft_targets: bool,
) -> Iterator[str]:
    if not isinstance(logits, Tensor) or logits.dim() != 2 or logits.shape[1] != num_classes:
        seen = _seen(logits) + logits_hint(logits, num_classes)
        yield f"logits must be a tensor of shape (batch, {num_classes}), as num_classes says; got {seen}."
        return
    if not logits.is_floating_point():
        yield f"logits must be floating point, got {logits.dtype}: pass the model's raw output."
    size = logits.shape[0]
    if isinstance(targets, Tensor) and targets.is_floating_point() and targets.dim() > 1:
        if not soft_targets:
            yield (
                f"{loss_name} takes class indices as targets, got {_seen(targets)}: it is defined by each sample's one "
                "class, so soft targets (mixup, CutMix) cannot be used with it; switch them off or use another loss."
            )
        elif targets.shape != logits.shape:
            yield f"soft targets must have the shape of the logits, {tuple(logits.shape)}; got {_seen(targets)}."
    elif not _are_labels(targets, size):
        seen = _seen(targets) + targets_hint(targets, size, num_classes)
        yield f"targets must be an integer tensor of shape ({size},), one class index a sample; got {seen}."
    for name in sorted(required_inputs):
        if inputs.get(name) is None:
            yield f"{loss_name} needs {name}: {HOW_TO_GET[name]}."
            return
    yield from _keyword_problems(inputs, size, width)


def _are_labels(targets: Any, size: int) -> bool:
    if not isinstance(targets, Tensor) or targets.shape != (size,):
        return False
    return not targets.is_floating_point() and targets.dtype != torch.bool


def _device_problems(
    logits: Tensor, targets: Tensor, inputs: dict[str, Any], loss_name: str, device: torch.device | None
) -> Iterator[str]:
    if device is not None and device != logits.device:
        yield f"{loss_name} is on {device}, logits are on {logits.device}: call loss.to({str(logits.device)!r}) once."
    for name, value in {"targets": targets, **inputs}.items():
        if isinstance(value, Tensor) and value.device != logits.device:
            yield f"{name} must be on {logits.device}, where the logits are; got {value.device}."


def _keyword_problems(inputs: dict[str, Any], size: int, width: int | None) -> Iterator[str]:
    features = inputs.get("features")
    if features is not None:
        if not isinstance(features, Tensor) or features.dim() != 2 or features.shape[0] != size:
            columns = "features" if width is None else width
            yield f"features must be a tensor of shape ({size}, {columns}), a row a sample; got {_seen(features)}."
            return
        if not features.is_floating_point():
            yield f"features must be floating point, got {features.dtype}."
        if width is not None and features.shape[1] != width:
            yield (
                f"features must have {width} columns, for which the loss was built or which it has seen before; got "
                f"{features.shape[1]}: one loss serves one network."
            )
    for name in ("index", "sample_weight"):
        value = inputs.get(name)
        if value is not None and (not isinstance(value, Tensor) or value.shape != (size,)):
            yield f"{name} must be a tensor of shape ({size},), one entry a sample; got {_seen(value)}."


def _head_problems(head: Any, head_type: type[nn.Module], features: Tensor | None, num_classes: int) -> Iterator[str]:
    if head is None:
        return
    width = getattr(head, "in_features", "features") if features is None else features.shape[1]
    # By type too: the weight of a cosine classifier has that shape, but its boundaries between classes are others.
    if not isinstance(head, head_type) or head.weight.shape != (num_classes, width):
        name = "nn.Linear" if head_type is nn.Linear else head_type.__name__
        yield f"head must be the {name}({width}, {num_classes}) that takes these features; got {_seen_head(head)}."
    elif features is not None and _promote(head.weight).dtype != _promote(features).dtype:
        yield f"head and features must have one precision; got {head.weight.dtype} and {features.dtype}."


def _value_problems(
    logits: Tensor,
    targets: Tensor,
    span: tuple[int, int] | None,
    inputs: dict[str, Any],
    num_classes: int,
    ignore_index: int,
) -> Iterator[str]:
    yield from _target_problems(targets, span, num_classes, ignore_index)
    head = inputs.get("head")
    parameters = {} if head is None else {f"head.{name}": value for name, value in head.named_parameters()}
    for name, value in {"logits": logits, **inputs, **parameters}.items():
        if (
            isinstance(value, Tensor)
            and value.is_floating_point()
            and not _all_finite(value, squared=name == "features")
        ):
            bad = (~value.isfinite()).reshape(len(value), -1).any(dim=1).nonzero().flatten().tolist()
            if bad:
                yield f"{name} must be finite; row {bad[0]} is not: the model or the data produced NaN or infinity."
            yield f"{name} must be small enough to be squared; got up to {float(value.detach().abs().max()):g}."
    weight = inputs.get("sample_weight")
    if weight is not None and bool((weight < 0).any()):
        yield f"sample_weight must not be negative; got {float(weight.min())}."


def _target_problems(
    targets: Tensor, span: tuple[int, int] | None, num_classes: int, ignore_index: int
) -> Iterator[str]:
    if targets.is_floating_point():
        # Half precision shares of a thousand classes add up to 1 within about a percent.
        wrong_B = ~((_promote(targets).sum(dim=1) - 1).abs() < 0.02) | (targets < 0).any(dim=1)
        for row in wrong_B.nonzero()[:1].flatten().tolist():
            yield f"soft targets must be shares of at least 0 that add up to 1; row {row} is {_numbers(targets[row])}."
        return
    if span is None or (span[0] >= 0 and span[1] < num_classes):
        return
    wrong = targets[((targets < 0) | (targets >= num_classes)) & (targets != ignore_index)]
    if len(wrong):
        yield (
            f"targets must be class indices from 0 to {num_classes - 1}, or {ignore_index} to be ignored; got "
            f"{int(wrong[0])}: check the labels, or build the loss with a larger num_classes."
        )


def _span(targets: Tensor) -> tuple[int, int] | None:
    """The smallest and the largest label, where there are labels."""
    if targets.is_floating_point() or not targets.numel():
        return None
    lowest, highest = targets.aminmax()
    return int(lowest), int(highest)


def _all_finite(values: Tensor, squared: bool = False) -> bool:
    """Whether all entries, or all their squares, are finite."""
    if squared:
        return math.isfinite(torch.linalg.vector_norm(_promote(values.detach())).item())
    # A finite sum has finite terms, and takes one pass; only a sum that is not finite calls for a closer look.
    return math.isfinite(values.detach().sum().item()) or bool(values.isfinite().all())


def _numbers(row: Tensor) -> str:
    """The numbers, or the first of many."""
    return ", ".join(f"{value:g}" for value in row[:5].tolist()) + (", …" if len(row) > 5 else "")


def _seen_head(head: Any) -> str:
    return str(head) if isinstance(head, nn.Module) else f"{_seen(head)}, where the module is meant"


def _seen(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"shape {tuple(value.shape)} of {str(value.dtype).removeprefix('torch.')}"
    return repr(value) if value is None or isinstance(value, (int, float, str)) else type(value).__name__
