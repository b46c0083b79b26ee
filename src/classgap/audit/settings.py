"""How an audit is computed, where there is a choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def level_name(level: float) -> str:
    """The level of intervals, in words.

    >>> level_name(0.95), level_name(0.975)
    ('95 %', '97.5 %')
    """
    return f"{100 * level:g} %"


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """Choices that apply to any data.

    Attributes:
        top_k: the k of the top-k accuracies.
        level: of all intervals.
        replicates: bootstrap replicates.
        seed: of bootstrap, map and subsets.
        frequency_cuts: head from the first number of training samples on, tail below the second.
        confusions: how many confusions are kept for each class.
        pairs: how many confused pairs are kept.
        map: "auto" for the worst classes and their confusions, "none", or class names or numbers.
        map_points: samples in the map at most.
        check_labels: look for wrong test labels by cleanlab's confident learning. ``None``: if cleanlab is installed
            and there are at most 20 million scores.

    >>> AuditSettings(level=0.9).level
    0.9
    """

    top_k: tuple[int, ...] = (1, 5)
    level: float = 0.95
    replicates: int = 1000
    seed: int = 0
    frequency_cuts: tuple[float, float] = (100, 20)
    confusions: int = 5
    pairs: int = 50
    map: str | Sequence[str | int] = "auto"
    map_points: int = 600
    check_labels: bool | None = None

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ValueError(f"level must be between 0 and 1, such as 0.95; got {self.level}.")
        for name, least in (("replicates", 2), ("confusions", 1), ("pairs", 0), ("map_points", 0), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}; got {getattr(self, name)}.")
        if not self.top_k or min(self.top_k) < 1:
            raise ValueError(f"top_k must be whole numbers from 1; got {self.top_k}.")
        if isinstance(self.map, str) and self.map not in ("auto", "none"):
            raise ValueError(f'map must be "auto", "none" or a list of classes; got {self.map!r}.')
