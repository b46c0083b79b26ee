"""Means over an epoch, gathered on the device so that no step waits for them."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


class Meter:
    """Weighted means of named numbers.

    >>> meter = Meter()
    >>> meter.add({"loss": torch.tensor(1.0)}, weight=3)
    >>> meter.add({"loss": torch.tensor(5.0)}, weight=1)
    >>> meter.means()
    {'loss': 2.0}
    """

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._weights: dict[str, float] = {}

    def add(self, values: Mapping[str, Tensor], weight: float) -> None:
        """Count numbers of one batch."""
        for name, value in values.items():
            share = value.detach().double() * weight
            self._sums[name] = self._sums[name] + share if name in self._sums else share
            self._weights[name] = self._weights.get(name, 0.0) + weight

    def means(self) -> dict[str, float]:
        """The means so far, in the order in which the names came."""
        return {name: float(total) / self._weights[name] for name, total in self._sums.items() if self._weights[name]}

    def reset(self) -> None:
        """Start again from nothing."""
        self._sums, self._weights = {}, {}

    def state_dict(self) -> dict[str, list[float]]:
        """Sums and weights by name."""
        return {name: [float(total), self._weights[name]] for name, total in self._sums.items()}

    def load_state_dict(self, state: Mapping[str, list[float]], device: torch.device) -> None:
        """Go on from a stored state."""
        self._sums = {
            name: torch.tensor(total, dtype=torch.float64, device=device) for name, (total, _) in state.items()
        }
        self._weights = {name: weight for name, (_, weight) in state.items()}
