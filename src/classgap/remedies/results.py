"""Records of a fix: the remedies that were tried, the one that was chosen, and its proof. Fractions throughout."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from classgap.audit.diff import AuditDiff
from classgap.audit.results import STRICT, Interval
from classgap.audit.serialization import to_plain, write_json
from classgap.remedies.fixed_model import Fix

GROUPS = ("overall", "easy", "medium", "hard", "worst")


@dataclass(frozen=True)
class RemedyResult:
    """One remedy, at the strength that the fitting samples chose.

    Attributes:
        name: its name, for example "ensemble+class-offsets".
        settings: its strength and other settings.
        change: measure → change of accuracy on samples that neither fitted nor chose anything.
        interval: measure → interval of ``change``.
        estimate: measure → cross-fitted change on the fitting samples, which the choice is based on.
        within_limits: whether the estimate respects the limits.
        passes: forward passes of a model per prediction.
        chosen: whether this remedy was chosen.

    >>> change, interval = {"hard": 0.02, "easy": -0.001}, {"hard": (0.01, 0.03), "easy": (-0.004, 0.002)}
    >>> remedy = RemedyResult("class-offsets", {"strength": 0.5}, change, interval, change, True, 1.0, True)
    >>> remedy.change["hard"]
    0.02
    """

    __pydantic_config__ = STRICT

    name: str
    settings: Mapping[str, float]
    change: Mapping[str, float]
    interval: Mapping[str, Interval]
    estimate: Mapping[str, float]
    within_limits: bool
    passes: float
    chosen: bool


@dataclass(frozen=True)
class Proof:
    """Accuracy before and after the chosen remedy.

    Attributes:
        before: accuracy of the model as given.
        after: accuracy with the remedy.
        change: after minus before.
        interval: interval of ``change``.

    >>> Proof(before=0.50, after=0.75, change=0.25, interval=(0.1, 0.4)).change
    0.25
    """

    __pydantic_config__ = STRICT

    before: float
    after: float
    change: float
    interval: Interval


@dataclass(frozen=True)
class Excluded:
    """A remedy that the limits exclude and that would gain more than the chosen one.

    Attributes:
        name: its name.
        settings: its strength and other settings.
        estimate: measure → cross-fitted change on the fitting samples.
        limits: "easy" and "overall" → smallest limit that would allow it, rounded up to 0.1 points; only limits that
            it exceeds.

    >>> Excluded("class-offsets", {"strength": 1.0}, {"hard": 0.03, "easy": -0.01}, {"easy": 0.011}).limits
    {'easy': 0.011}
    """

    __pydantic_config__ = STRICT

    name: str
    settings: Mapping[str, float]
    estimate: Mapping[str, float]
    limits: Mapping[str, float]


@dataclass(frozen=True)
class FixResult:
    """Result of :func:`classgap.fix`.

    Attributes:
        model_name: the model to fix; with several, the most accurate one on the fitting samples.
        goal: "hard", "worst", "balanced" or "cost".
        limits: "easy" and "overall" → accuracy that a remedy may cost.
        n_fit: number of fitting samples.
        n_test: number of test samples; 0 if the fix is tested on the fitting samples, by nested cross-fitting.
        nested: whether the proof is by nested cross-fitting; then its intervals are approximate.
        remedies: all remedies, the chosen one first, then by their estimates.
        chosen: name of the chosen remedy; ``None`` if nothing helped.
        proof: measure → accuracy before and after, on samples that were not used for the choice; ``None`` if nothing
            was chosen.
        excluded: the best remedy that the limits exclude, if it would gain more than the chosen one.
        confidence_level: level of all intervals.
        notices: remarks about the inputs.
        diff: class-by-class comparison on the test samples, where there are any.
        fix: the chosen remedy, ready to use.

    >>> import numpy as np
    >>> from classgap.audit import Predictions
    >>> from classgap.remedies import fix
    >>> targets = np.arange(400) % 3
    >>> logits = 2 * np.eye(3)[targets] + np.random.default_rng(0).normal(size=(400, 3)) - [0, 0, 2]
    >>> val, test = (Predictions.from_arrays(targets[i::2], logits=logits[i::2]) for i in range(2))
    >>> result = fix(val, test)
    >>> result.proof["hard"].after > result.proof["hard"].before
    True
    """

    SCHEMA: ClassVar[int] = 1

    model_name: str
    goal: str
    limits: Mapping[str, float]
    n_fit: int
    n_test: int
    nested: bool
    remedies: tuple[RemedyResult, ...]
    chosen: str | None
    proof: Mapping[str, Proof] | None
    excluded: Excluded | None
    confidence_level: float
    notices: tuple[str, ...]
    diff: AuditDiff | None
    fix: Fix | None

    def __repr__(self) -> str:
        if self.proof is None:
            return f"<FixResult {self.model_name!r}: nothing helped, {len(self.remedies)} remedies tried>"
        hard = self.proof["hard"]
        return f"<FixResult {self.model_name!r}: {self.chosen}, hard third {hard.before:.3f} to {hard.after:.3f}>"

    def __str__(self) -> str:
        from classgap import report

        return report.fix_text(self)

    def _repr_html_(self) -> str:
        from classgap import report

        return report.fix_fragment(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON file."""
        skipped = ("diff", "fix")
        values = {name: to_plain(value) for name, value in vars(self).items() if name not in skipped}
        comparison = None if self.diff is None else self.diff.to_dict()
        return {"schema": self.SCHEMA, **values, "comparison": comparison}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result as JSON, atomically."""
        write_json(path, self.to_dict())

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the result as a self-contained HTML page."""
        from classgap import report

        report.write_html(self, path)
