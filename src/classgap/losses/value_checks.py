"""Value checks of a loss's inputs, arranged so that the host reads from the device once.

``summarize`` condenses all inputs to a few numbers, which a caller reads together. Only if they look suspicious does
``find_problem`` examine the inputs one by one, to name the argument and the row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor

IGNORED = -0.5  # no label, but within the range of valid labels and recognizable as their minimum
SUMMARY_SIZE = 16  # of all processes, whatever their inputs: more than any loss has


def summarize(logits: Tensor, targets: Tensor, inputs: dict[str, Any], ignore_index: int) -> Tensor:
    """Return the lowest and highest label and a magnitude of each float input, in float32.

    Ignored samples count as a label of -1/2. A magnitude is NaN or infinite if an entry is. Labels are compared exactly
    for up to 2²⁴ classes.
    """
    numbers = [*_summarize_targets(targets, ignore_index), _magnitude(logits)]
    for name, values in _float_inputs(inputs):
        numbers.append(_magnitude(values, squared=name == "features"))
    weight = inputs.get("sample_weight")
    if weight is not None and len(weight):
        numbers.append(torch.where(weight.detach().amin() < 0, math.inf, 0.0))
    return torch.stack([number if number.dtype is torch.float32 else number.float() for number in numbers])


def is_suspicious(summary: Sequence[float], num_classes: int) -> bool:
    """Return whether a summary calls for a closer look."""
    return summary[0] < IGNORED or summary[1] >= num_classes or not all(map(math.isfinite, summary))


def find_problem(
    logits: Tensor, targets: Tensor, inputs: dict[str, Any], num_classes: int, ignore_index: int
) -> str | None:
    """Describe the first invalid value; None if all are valid, such as huge logits whose sum overflows."""
    return next(_problems(logits, targets, inputs, num_classes, ignore_index), None)


def promote(tensor: Any) -> Any:
    """Return the tensor in at least float32; None stays None."""
    if tensor is None or tensor.dtype in (torch.float32, torch.float64):
        return tensor
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _float_inputs(inputs: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    head = inputs.get("head")
    parameters = () if head is None else ((f"head.{name}", value) for name, value in head.named_parameters())
    for name, value in chain(inputs.items(), parameters):
        if isinstance(value, Tensor) and value.is_floating_point():
            yield name, value


def _magnitude(values: Tensor, *, squared: bool = False) -> Tensor:
    """Return a number that is finite only if all entries are, and with ``squared`` only if their squares are too."""
    values = promote(values.detach())  # sums in half precision would overflow at ordinary values
    return torch.linalg.vector_norm(values) if squared else values.sum()


def _summarize_targets(targets: Tensor, ignore_index: int) -> tuple[Tensor, ...]:
    if targets.is_floating_point():
        zero = targets.new_zeros(())
        return zero, torch.where(_invalid_rows(targets).any(), math.inf, 0.0)
    if not len(targets):
        zero = targets.new_zeros(())
        return zero, zero
    return targets.float().masked_fill_(targets.long() == ignore_index, IGNORED).aminmax()


def _invalid_rows(targets: Tensor) -> Tensor:
    # Half-precision probabilities of a thousand classes sum to 1 within about a percent.
    return ~((promote(targets).sum(dim=1) - 1).abs() < 0.02) | (targets < 0).any(dim=1)


def _problems(
    logits: Tensor, targets: Tensor, inputs: dict[str, Any], num_classes: int, ignore_index: int
) -> Iterator[str]:
    yield from _target_problems(targets, num_classes, ignore_index)
    for name, value in (("logits", logits), *_float_inputs(inputs)):
        bad = (~value.isfinite()).reshape(len(value), -1).any(dim=1).nonzero().flatten().tolist()
        if bad:
            yield f"{name} must be finite, but row {bad[0]} is not: the model or the data produced NaN or infinity."
        if name == "features" and not math.isfinite(_magnitude(value, squared=True).item()):
            largest = float(value.detach().abs().max())
            yield f"features must be small enough to be squared; the largest entry is {largest:g}."
    weight = inputs.get("sample_weight")
    if weight is not None and bool((weight < 0).any()):
        yield f"sample_weight must not be negative, got {float(weight.min())}."


def _target_problems(targets: Tensor, num_classes: int, ignore_index: int) -> Iterator[str]:
    if targets.is_floating_point():
        for row in _invalid_rows(targets).nonzero()[:1].flatten().tolist():
            yield (
                "soft targets must be probabilities: nonnegative, with rows that sum to 1; row "
                f"{row} is {_format_numbers(targets[row])}."
            )
        return
    labels = targets.long()
    wrong = labels[((labels < 0) | (labels >= num_classes)) & (labels != ignore_index)]
    if len(wrong):
        yield (
            f"targets must be class indices from 0 to {num_classes - 1}, or ignore_index={ignore_index}; got "
            f"{int(wrong[0])}: check the labels, or build the loss with a larger num_classes."
        )


def _format_numbers(row: Tensor) -> str:
    """Format the numbers, at most the first five."""
    return ", ".join(f"{value:g}" for value in row[:5].tolist()) + (", …" if len(row) > 5 else "")
