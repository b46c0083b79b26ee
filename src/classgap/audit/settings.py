"""How an audit is computed, where there is a choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def format_level(confidence_level: float) -> str:
    """The level of intervals, in words.

    >>> format_level(0.95), format_level(0.975)
    ('95 %', '97.5 %')
    """
    return f"{100 * confidence_level:g} %"


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """Choices that apply to any data.

    Attributes:
        top_k: the k of the top-k accuracies.
        confidence_level: of all intervals.
        n_resamples: bootstrap resamples.
        seed: of bootstrap, map and subsets.
        frequency_cuts: head from the first number of training samples on, tail below the second.
        confusions: how many confusions are kept for each class.
        pairs: how many confused pairs are kept.
        map: "auto" for the worst classes and their confusions, "none", or class names or numbers.
        map_points: samples in the map at most.
        check_labels: look for wrong test labels by cleanlab's confident learning. ``None``: if cleanlab is installed
            and there are at most 20 million scores.

    >>> AuditSettings(confidence_level=0.9).confidence_level
    0.9
    """

    top_k: tuple[int, ...] = (1, 5)
    confidence_level: float = 0.95
    n_resamples: int = 1000
    seed: int = 0
    frequency_cuts: tuple[float, float] = (100, 20)
    confusions: int = 5
    pairs: int = 50
    map: str | Sequence[str | int] = "auto"
    map_points: int = 600
    check_labels: bool | None = None

    def __post_init__(self) -> None:
        if not 0 < self.confidence_level < 1:
            raise ValueError(f"confidence_level must be between 0 and 1, such as 0.95; got {self.confidence_level}.")
        for name, least in (("n_resamples", 2), ("confusions", 1), ("pairs", 0), ("map_points", 0), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}; got {getattr(self, name)}.")
        if not self.top_k or min(self.top_k) < 1:
            raise ValueError(f"top_k must be whole numbers from 1; got {self.top_k}.")
        if isinstance(self.map, str) and self.map not in ("auto", "none"):
            raise ValueError(f'map must be "auto", "none" or a list of classes; got {self.map!r}.')
