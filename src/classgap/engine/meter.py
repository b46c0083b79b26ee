"""Means over an epoch, gathered on the device so that no step waits for them."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from classgap.distributed import gather_values, rank


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
        self._local: set[str] = set()

    def add(self, values: Mapping[str, Tensor], weight: float, *, local: bool = False) -> None:
        """Count numbers of one batch; ``local`` ones are of this process's samples, others are the same everywhere."""
        for name, value in values.items():
            share = value.detach().double() * weight
            self._sums[name] = self._sums[name] + share if name in self._sums else share
            self._weights[name] = self._weights.get(name, 0.0) + weight
        if local:
            self._local.update(values)

    def means(self) -> dict[str, float]:
        """The means so far over all processes, in the order in which the names came; all processes must ask."""
        return {name: total / weight for name, (total, weight, _) in self.state_dict().items() if weight}

    def reset(self) -> None:
        """Start again from nothing."""
        self._sums, self._weights = {}, {}

    def state_dict(self) -> dict[str, tuple[float, float, bool]]:
        """Sum, weight and locality by name, over all processes; all processes must ask."""
        mine = {name: (float(total), self._weights[name]) for name, total in self._sums.items()}
        if self._local:
            everywhere = gather_values({name: mine[name] for name in sorted(self._local) if name in mine})
            for name in self._local & mine.keys():
                parts = [each[name] for each in everywhere if name in each]
                mine[name] = (sum(total for total, _ in parts), sum(weight for _, weight in parts))
        return {name: (total, weight, name in self._local) for name, (total, weight) in mine.items()}

    def load_state_dict(self, state: Mapping[str, tuple[float, float, bool]], device: torch.device) -> None:
        """Go on from a stored state, of which process 0 takes the local parts of all."""
        self.reset()
        self._local = {name for name, (_, _, local) in state.items() if local}
        for name, (total, weight, local) in state.items():
            kept = 0.0 if local and rank() else 1.0
            self._sums[name] = torch.tensor(kept * total, dtype=torch.float64, device=device)
            self._weights[name] = kept * weight
