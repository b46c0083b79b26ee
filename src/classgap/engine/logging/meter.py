"""Means over an epoch."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from classgap.distributed import all_gather_object, rank


def numbers_in(values: Mapping[str, Tensor]) -> dict[str, float]:
    """The numbers in tensors of one element each, for all of which a device is waited for once."""
    if all(value.device.type == "cpu" for value in values.values()):
        return {name: value.item() for name, value in values.items()}
    together = torch.stack([value.detach().double() for value in values.values()])
    return dict(zip(values, together.tolist(), strict=True))


class Meter:
    """Weighted means of named numbers.

    >>> meter = Meter()
    >>> meter.add({"loss": 1.0}, weight=3)
    >>> meter.add({"loss": 5.0}, weight=1)
    >>> meter.means()
    {'loss': 2.0}
    """

    def __init__(self) -> None:
        self._sums: dict[str, tuple[float, float]] = {}  # the sum of values times weights, and of weights
        self._local: set[str] = set()

    def add(self, values: Mapping[str, float], weight: float, *, local: bool = False) -> None:
        """Count numbers of one batch; ``local`` ones are of this process's samples, others are the same everywhere."""
        for name, value in values.items():
            total, before = self._sums.get(name, (0.0, 0.0))
            self._sums[name] = total + value * weight, before + weight
        if local:
            self._local.update(values)

    def means(self) -> dict[str, float]:
        """The means so far over all processes, in the order in which the names came; all processes must ask."""
        return {name: total / weight for name, (total, weight, _) in self.state_dict().items() if weight}

    def reset(self) -> None:
        """Start again from nothing."""
        self._sums = {}

    def state_dict(self) -> dict[str, tuple[float, float, bool]]:
        """Sum, weight and locality by name, over all processes; all processes must ask."""
        mine = dict(self._sums)
        if self._local:
            everywhere = all_gather_object({name: mine[name] for name in sorted(self._local) if name in mine})
            for name in self._local & mine.keys():
                parts = [each[name] for each in everywhere if name in each]
                mine[name] = (sum(total for total, _ in parts), sum(weight for _, weight in parts))
        return {name: (total, weight, name in self._local) for name, (total, weight) in mine.items()}

    def load_state_dict(self, state: Mapping[str, tuple[float, float, bool]]) -> None:
        """Go on from a stored state, of which process 0 takes the local parts of all."""
        self._local = {name for name, (_, _, local) in state.items() if local}
        kept = {name: 0.0 if local and rank() else 1.0 for name, (_, _, local) in state.items()}
        self._sums = {name: (kept[name] * total, kept[name] * weight) for name, (total, weight, _) in state.items()}
