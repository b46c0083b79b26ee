"""The logits in whatever a model returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

_RETURN = 'return the logits (batch, classes) alone, or as "logits"'


def logits_of(output: Any, head: nn.Module | None = None) -> Tensor:
    """``output`` itself, its "logits" (attribute or entry), or one of several: that of the head's width, or the first.

    Args:
        output: what the model returned.
        head: the layer that makes the logits, where it is known.

    Raises:
        ValueError: with what was seen, if there are no logits.

    >>> import torch
    >>> features, logits = torch.ones(2, 4), torch.zeros(2, 3)
    >>> logits_of((features, logits), nn.Linear(4, 3)).shape
    torch.Size([2, 3])
    """
    found = getattr(output, "logits", output)
    if isinstance(found, Mapping):
        if "logits" not in found:
            raise ValueError(f"the model returned a mapping with the keys {', '.join(map(repr, found))}: {_RETURN}.")
        found = found["logits"]
    elif isinstance(found, (tuple, list)) and found:
        # Features may come first; only the head tells them from logits, and only if their widths differ.
        fitting = [] if head is None else [part for part in found if _width(part) == _outputs(head)]
        found = fitting[0] if len(fitting) == 1 else found[0]
    if not isinstance(found, Tensor):
        raise ValueError(f"the model returned {type(found).__name__} where logits should be: {_RETURN}.")
    return found


def id2label_names(model: nn.Module, num_classes: int) -> tuple[str, ...] | None:
    """Class names from ``model.config.id2label``, as Hugging Face models have it; ``None`` if there are none.

    Args:
        model: a model, or a wrapper with the model as ``module`` (``DistributedDataParallel``).
        num_classes: number of logits.
    """
    config = getattr(getattr(model, "module", model), "config", None)
    id2label = getattr(config, "id2label", None)
    if not isinstance(id2label, Mapping) or len(id2label) != num_classes:
        return None
    names = {int(index): str(label) for index, label in id2label.items()}
    if sorted(names) != list(range(num_classes)) or len(set(names.values())) < num_classes:
        return None
    return tuple(names[k] for k in range(num_classes))


def _width(part: Any) -> int | None:
    return part.shape[1] if isinstance(part, Tensor) and part.dim() == 2 else None


def _outputs(head: nn.Module) -> int:
    weight = getattr(head, "weight", None)
    return len(weight) if isinstance(weight, Tensor) else -1
