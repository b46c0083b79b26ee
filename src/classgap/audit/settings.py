"""Settings of an audit."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

from classgap.audit.results import STRICT


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """Settings of an audit, saved with it.

    Args:
        top_k: values of k for top-k accuracy.
        confidence_level: level of all intervals.
        n_resamples: number of bootstrap resamples.
        seed: seed of the bootstrap, the map and random subsets.
        frequency_cuts: head classes have at least the first number of training samples, tail classes fewer than the
            second.
        confusions: number of confusions kept for each class.
        pairs: number of confused pairs kept.
        map: "auto" for the worst classes and the classes they are confused with, "none", or class names or indices.
        map_points: maximum number of samples in the map.
        diagnose: whether to compute the error budget and the causes of failing classes.
        diagnosis_samples: maximum number of samples that the error budget examines, a random part of each class.

    >>> AuditSettings(confidence_level=0.9).confidence_level
    0.9
    """

    __pydantic_config__ = STRICT

    top_k: tuple[int, ...] = (1, 5)
    confidence_level: float = 0.95
    n_resamples: int = 1000
    seed: int = 0
    frequency_cuts: tuple[float, float] = (100, 20)
    confusions: int = 5
    pairs: int = 50
    map: str | tuple[str | int, ...] = "auto"
    map_points: int = 600
    diagnose: bool = True
    diagnosis_samples: int = 50_000

    def __post_init__(self) -> None:
        if not 0 < self.confidence_level < 1:
            raise ValueError(f"confidence_level must be in (0, 1), for example 0.95; got {self.confidence_level}.")
        for name, least in (
            ("n_resamples", 2),
            ("confusions", 1),
            ("pairs", 0),
            ("map_points", 0),
            ("seed", 0),
            ("diagnosis_samples", 1),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}; got {getattr(self, name)}.")
            object.__setattr__(self, name, operator.index(getattr(self, name)))
        if self.seed >= 2**32:  # scikit-learn's limit
            raise ValueError(f"seed must be at most {2**32 - 1}; got {self.seed}.")
        if not self.top_k or min(self.top_k) < 1:
            raise ValueError(f"top_k must be positive integers; got {self.top_k}.")
        if isinstance(self.map, str) and self.map not in ("auto", "none"):
            raise ValueError(f'map must be "auto", "none" or a list of classes; got {self.map!r}.')
        # Plain tuples and integers, so that saved settings are equal after loading.
        object.__setattr__(self, "top_k", tuple(operator.index(k) for k in self.top_k))
        object.__setattr__(self, "frequency_cuts", tuple(float(cut) for cut in self.frequency_cuts))
        if not isinstance(self.map, str):
            object.__setattr__(self, "map", _class_list(self.map))


def _class_list(classes: Sequence[str | int]) -> tuple[str | int, ...]:
    return tuple(str(entry) if isinstance(entry, str) else operator.index(entry) for entry in classes)
