"""Means over an epoch."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from classgap.distributed import all_gather_object, rank


def to_floats(values: Mapping[str, Tensor]) -> dict[str, float]:
    """Convert scalar tensors to floats, with a single device synchronization."""
    if all(value.device.type == "cpu" for value in values.values()):
        return {name: value.item() for name, value in values.items()}
    stacked = torch.stack([value.detach().double() for value in values.values()])
    return dict(zip(values, stacked.tolist(), strict=True))


class Meter:
    """Weighted means of named numbers.

    >>> meter = Meter()
    >>> meter.add({"loss": 1.0}, weight=3)
    >>> meter.add({"loss": 5.0}, weight=1)
    >>> meter.means()
    {'loss': 2.0}
    """

    def __init__(self) -> None:
        self._sums: dict[str, tuple[float, float]] = {}  # sum of values times weights, sum of weights
        self._local: set[str] = set()

    def add(self, values: Mapping[str, float], weight: float, *, local: bool = False) -> None:
        """Add the numbers of one batch.

        Args:
            values: Numbers by name.
            weight: Their weight in the mean.
            local: Whether they describe this process's samples only; others are the same on all processes.
        """
        for name, value in values.items():
            total, before = self._sums.get(name, (0.0, 0.0))
            self._sums[name] = total + value * weight, before + weight
        if local:
            self._local.update(values)

    def means(self) -> dict[str, float]:
        """Return the means over all processes, in the order of addition; all processes must call it."""
        return {name: total / weight for name, (total, weight, _) in self.state_dict().items() if weight}

    def reset(self) -> None:
        """Discard all numbers."""
        self._sums = {}

    def state_dict(self) -> dict[str, tuple[float, float, bool]]:
        """Return sum, weight and locality by name, over all processes; all processes must call it."""
        sums = dict(self._sums)
        if self._local:
            gathered = all_gather_object({name: sums[name] for name in sorted(self._local) if name in sums})
            for name in self._local & sums.keys():
                parts = [each[name] for each in gathered if name in each]
                sums[name] = (sum(total for total, _ in parts), sum(weight for _, weight in parts))
        return {name: (total, weight, name in self._local) for name, (total, weight) in sums.items()}

    def load_state_dict(self, state: Mapping[str, tuple[float, float, bool]]) -> None:
        """Restore a state; process 0 takes the local sums of all processes."""
        self._local = {name for name, (_, _, local) in state.items() if local}
        kept = {name: 0.0 if local and rank() else 1.0 for name, (_, _, local) in state.items()}
        self._sums = {name: (kept[name] * total, kept[name] * weight) for name, (total, weight, _) in state.items()}
