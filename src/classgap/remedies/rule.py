"""The rule that chooses a remedy: a goal, and limits on the losses of other classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from classgap.audit._types import Floats
from classgap.remedies.adjustments import Context
from classgap.remedies.class_values import check_costs, check_priors
from classgap.remedies.selection import Limits

GOALS = ("hard", "worst", "balanced", "cost")
EASY_LIMIT, MEDIUM_LIMIT = 0.3, 1.0  # percentage points
IMBALANCED = 2.0  # ratio of training samples between the most and the least frequent class


def check_points(what: str, value: float) -> float:
    """Convert percentage points to a fraction.

    >>> check_points("max_easy_loss", 0.5)
    0.005
    """
    if not 0 <= value <= 100:
        raise ValueError(f"{what} must be in percentage points, from 0 to 100; got {value}.")
    return value / 100


@dataclass(frozen=True)
class Rule:
    """Goal and limits as given by users; see :func:`classgap.remedies.fix`.

    With an imbalanced training set, frequent classes are easy at the expense of rare ones, and validation samples are
    usually as imbalanced. Unless stated otherwise, the easy and medium thirds then have no limits of their own, and all
    classes count alike.

    Raises:
        ValueError: if an argument is invalid.

    >>> context, limits = Rule().resolve(["cat", "dog"], np.array([100.0, 10.0]))
    >>> context.priors_K.tolist(), limits.easy
    ([0.5, 0.5], 1.0)
    """

    goal: str = "hard"
    max_easy_loss: float | None = None
    max_overall_loss: float = 0.1
    max_medium_loss: float | None = None
    costs: Any = None
    priors: Any = None

    def __post_init__(self) -> None:
        if self.goal not in GOALS:
            raise ValueError(f"goal must be one of {', '.join(GOALS)}; got {self.goal!r}.")
        if self.goal == "cost" and self.costs is None:
            raise ValueError("goal='cost' needs costs: pass a (K, K) array, rows are true classes.")
        check_points("max_overall_loss", self.max_overall_loss)
        for name in ("max_easy_loss", "max_medium_loss"):
            if getattr(self, name) is not None:
                check_points(name, getattr(self, name))

    def resolve(self, class_names: Sequence[str], train_counts_K: Floats | None) -> tuple[Context, Limits]:
        """Check costs and priors, and fill in the defaults for the data."""
        imbalanced = is_imbalanced(train_counts_K)
        given_K = check_priors(self.priors, class_names)
        priors_K = np.full(len(class_names), 1 / len(class_names)) if given_K is None and imbalanced else given_K
        easy, medium = (100.0, 100.0) if imbalanced else (EASY_LIMIT, MEDIUM_LIMIT)
        easy = easy if self.max_easy_loss is None else self.max_easy_loss
        medium = medium if self.max_medium_loss is None else self.max_medium_loss
        limits = Limits(
            check_points("max_easy_loss", easy),
            check_points("max_overall_loss", self.max_overall_loss),
            check_points("max_medium_loss", medium),
        )
        costs_KK = check_costs(self.costs, class_names)
        return Context(len(class_names), self.goal, train_counts_K, priors_K, costs_KK, given_K), limits


def is_imbalanced(train_counts_K: Floats | None) -> bool:
    """Return whether classes differ in their number of training samples by more than a factor of 2."""
    if train_counts_K is None:
        return False
    return float(train_counts_K.max()) > IMBALANCED * max(float(train_counts_K.min()), 1.0)
