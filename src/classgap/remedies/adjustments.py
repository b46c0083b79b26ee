"""Adjustments of scores: families of modules that are fitted to validation scores, from weak to strong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from classgap.audit._types import Floats
from classgap.audit.diagnosis.counterfactuals import TopScores, fit_temperature
from classgap.remedies.evaluation import Ranking
from classgap.remedies.modules import ClassAffine, ExpectedCost
from classgap.remedies.offsets import fit_class_offsets, fit_class_scales

# Weights of the focused classes and of the easy third in the cross-entropy that offsets minimize. Without a weight on
# the easy third, offsets pay for the hard classes with the easy ones. Chosen, like STRENGTHS, on held-out halves of
# 20 Newsgroups, CIFAR-10 and CLINC150 predictions.
EMPHASES = ((1.0, 1.0), (1.5, 1.3), (2.0, 1.7), (3.0, 2.2))
STRENGTHS = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Candidate:
    """A fitted adjustment.

    Attributes:
        settings: values that distinguish it from other candidates of its family.
        module: maps logits (B, K) to scores (B, K).
    """

    settings: Mapping[str, float]
    module: nn.Module


@dataclass(frozen=True)
class Context:
    """Knowledge that adjustments may use.

    Attributes:
        num_classes: K.
        goal: "hard", "worst", "balanced" or "cost".
        train_counts_K: training samples of each class.
        priors_K: class frequencies at prediction time; uniform if ``None``.
        costs_KK: cost of each prediction (column) for each class (row).
        reported_priors_K: frequencies that the user gave, which weight overall accuracy and cost in reports.
            ``priors_K`` may also be a default, which only guides the choice.
    """

    num_classes: int
    goal: str = "hard"
    train_counts_K: Floats | None = None
    priors_K: Floats | None = None
    costs_KK: Floats | None = None
    reported_priors_K: Floats | None = None


@dataclass(frozen=True)
class Calibrated:
    """Scores of fitting samples, divided by the temperature that calibrates them.

    Attributes:
        scores: calibrated scores and labels.
        scale: inverse temperature.
    """

    scores: TopScores
    scale: float

    @classmethod
    def from_scores(cls, scores: TopScores) -> Calibrated:
        """Fit the temperature."""
        scale = fit_temperature(scores)
        return cls(scores.scaled(scale), scale)


@dataclass(frozen=True)
class Adjustment:
    """A family of adjustments.

    Attributes:
        name: its name.
        fit: fits all candidates to calibrated scores, in the same order for any samples; they apply to logits.
        summary: one line for people.
    """

    name: str
    fit: Callable[[Calibrated, Ranking], list[Candidate]] = field(repr=False)
    summary: str


def adjustments(context: Context) -> list[Adjustment]:
    """Return the adjustments that the context allows.

    >>> [each.name for each in adjustments(Context(3))]
    ['class-offsets', 'class-temperature']
    """
    found = []
    prior_K = _prior_shift(context)
    if prior_K is not None:
        found.append(
            Adjustment(
                "prior-correction",
                lambda data, ranking: _scaled(prior_K, (*STRENGTHS, 1.25, 1.5, 2.0)),
                "subtract the log of the training frequencies",
            )
        )
    if context.costs_KK is not None:
        cost_KK = torch.from_numpy(context.costs_KK).float()
        found.append(
            Adjustment(
                "expected-cost",
                lambda data, ranking: _expected_cost(cost_KK, prior_K, data.scale),
                "predict the class with the lowest expected cost",
            )
        )
    found += [
        Adjustment(
            "class-offsets",
            lambda data, ranking: _offsets(context, data, ranking),
            "add an offset to the score of each class",
        ),
        Adjustment(
            "class-temperature",
            lambda data, ranking: _scales(context, data, ranking),
            "divide the score of each class by its own temperature",
        ),
    ]
    return found


def _prior_shift(context: Context) -> Tensor | None:
    """Log of the frequencies at prediction time over those in training; ``None`` if unknown or equal."""
    counts_K = context.train_counts_K
    if counts_K is None or (counts_K <= 0).any():
        return None
    wanted_K = np.full(context.num_classes, 1 / context.num_classes) if context.priors_K is None else context.priors_K
    shift_K = np.log(np.maximum(wanted_K, 1e-12)) - np.log(counts_K / counts_K.sum())
    return None if np.ptp(shift_K) < 1e-9 else torch.from_numpy(shift_K - shift_K.mean())


def class_weights(emphasis: tuple[float, float], ranking: Ranking, context: Context) -> Tensor:
    """Weight of each class: the focused classes, the easy third, and 1 for the others."""
    focus, easy = emphasis
    weight_K = np.ones(context.num_classes)
    weight_K[ranking.members["easy"]] = easy
    weight_K[ranking.members["worst" if context.goal == "worst" else "hard"]] = focus
    if context.priors_K is not None:
        weight_K *= context.priors_K * context.num_classes
    return torch.from_numpy(weight_K)


def _emphases(context: Context) -> tuple[tuple[float, float], ...]:
    return EMPHASES if context.goal in ("hard", "worst") else EMPHASES[:1]


def _offsets(context: Context, data: Calibrated, ranking: Ranking) -> list[Candidate]:
    found = []
    for emphasis in _emphases(context):
        offset_K = fit_class_offsets(data.scores, class_weights(emphasis, ranking, context))
        found += [
            Candidate(
                {"emphasis": emphasis[0], "strength": strength},
                _affine(torch.full_like(offset_K, data.scale), strength * offset_K),
            )
            for strength in STRENGTHS
        ]
    return found


def _scales(context: Context, data: Calibrated, ranking: Ranking) -> list[Candidate]:
    found = []
    for emphasis in _emphases(context)[:3:2]:
        scale_K = fit_class_scales(data.scores, class_weights(emphasis, ranking, context))
        found += [
            Candidate(
                {"emphasis": emphasis[0], "strength": strength},
                _affine(data.scale * scale_K**strength, torch.zeros_like(scale_K)),
            )
            for strength in (0.5, 1.0)
        ]
    return found


def _scaled(shift_K: Tensor, strengths: tuple[float, ...]) -> list[Candidate]:
    """Add multiples of a known shift to the scores."""
    return [
        Candidate({"strength": strength}, _affine(torch.ones_like(shift_K), strength * shift_K))
        for strength in strengths
    ]


def _expected_cost(cost_KK: Tensor, prior_K: Tensor | None, scale: float) -> list[Candidate]:
    zero_K = torch.zeros(len(cost_KK), dtype=torch.float64)
    shifts = {0.0: zero_K} if prior_K is None else {0.0: zero_K, 0.5: 0.5 * prior_K, 1.0: prior_K}
    return [
        Candidate(
            {"prior_strength": strength},
            nn.Sequential(_affine(torch.full_like(shift_K, scale), shift_K), ExpectedCost(cost_KK)),
        )
        for strength, shift_K in shifts.items()
    ]


def _affine(scale_K: Tensor, offset_K: Tensor) -> ClassAffine:
    return ClassAffine(scale_K.float(), offset_K.float())
