"""torchmetrics: states that keep their precision, and are loaded completely or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor

try:
    from torchmetrics import Metric
except ImportError as error:
    raise ImportError(
        "classgap.integrations.torchmetrics requires torchmetrics: pip install 'classgap[metrics]'."
    ) from error


class ExactStates(Metric):
    """A metric whose states are sums in double precision and integers."""

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Any = "") -> Self:
        """Move the states, but keep their type: ``model.to(torch.bfloat16)`` would round the sums."""

        def move(value: Tensor) -> Tensor:
            device = fn(torch.zeros(1, device=value.device)).device
            return value if device.type == "mps" else value.to(device)  # MPS has no double precision

        super()._apply(move, exclude_state)
        return self

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load the states if all of them fit, and forget results computed from others."""
        saved = {key: state_dict.pop(prefix + key) for key in self._defaults if prefix + key in state_dict}
        lost = [key for key, kept in self._persistent.items() if kept and key not in saved]
        shapes = {key: tuple(getattr(self, key).shape) for key in saved}
        wrong = [key for key, value in saved.items() if tuple(value.shape) != shapes[key]]
        missing_keys += [prefix + key for key in lost] if strict else []
        error_msgs += [
            f"{prefix}{key} must have shape {shapes[key]}, got {tuple(saved[key].shape)}: "
            "num_classes, feature_dim and top_k must be the same."
            for key in wrong
        ]
        if saved and not lost and not wrong:
            for key, value in saved.items():
                setattr(self, key, value.to(getattr(self, key)))
            self._computed = None
            self._update_count = max(self._update_count, int(any(bool(value.any()) for value in saved.values())))
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
