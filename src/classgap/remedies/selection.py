"""Choose a remedy and its strength by cross-fitting: every estimate comes from samples that fitted nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from classgap.audit._types import Integers
from classgap.audit.diagnosis.counterfactuals import TopScores, stratified_folds
from classgap.audit.io.rows import row_chunks
from classgap.remedies.adjustments import Adjustment, Calibrated, Candidate, Context
from classgap.remedies.evaluation import Measured, Ranking, average, group_weights, measure
from classgap.remedies.sources import Source

N_FOLDS = 5
N_REPEATS = 3  # different folds; averages out the luck of one partition


@dataclass(frozen=True)
class Limits:
    """Losses of accuracy that a remedy may cost, as fractions.

    Attributes:
        easy: mean accuracy of the easy third.
        overall: accuracy over all samples.
        medium: mean accuracy of the medium third. Without a limit, the medium classes would pay for the hard ones.
    """

    easy: float = 0.003
    overall: float = 0.001
    medium: float = 0.01

    @property
    def by_measure(self) -> dict[str, float]:
        """Limit of each measure."""
        return {"easy": self.easy, "medium": self.medium, "overall": self.overall}

    def excess(self, estimate: Mapping[str, Measured], n_errors: float = 0.0) -> float:
        """Return by how much an estimate exceeds the limits, 0 if it does not.

        Args:
            estimate: measure → change.
            n_errors: multiple of its standard error by which a loss may exceed its limit.

        >>> same, worse = Measured(0.9, 0.9, 0.0), Measured(0.9, 0.89, 0.0)
        >>> round(Limits(easy=0.003).excess({"easy": worse, "medium": same, "overall": same}), 4)
        0.007
        """
        losses = {name: -estimate[name].change - n_errors * estimate[name].error for name in self.by_measure}
        return sum(max(0.0, losses[name] - limit) for name, limit in self.by_measure.items())


@dataclass(frozen=True)
class Option:
    """One strength of one remedy, with its cross-fitted estimate.

    Attributes:
        source: scores that it starts from.
        adjustment: adjustment of the scores, or ``None``.
        position: position among the adjustment's candidates.
        settings: its strength and other settings.
        estimate: measure → change on samples that fitted nothing.
    """

    source: Source
    adjustment: Adjustment | None
    position: int
    settings: Mapping[str, float]
    estimate: Mapping[str, Measured]

    @property
    def name(self) -> str:
        """Name of the remedy: source, adjustment, or both."""
        names = [] if self.source.is_baseline else [self.source.name]
        return "+".join(names if self.adjustment is None else [*names, self.adjustment.name])

    @property
    def is_average(self) -> bool:
        """Whether it only averages models or views.

        An average favors no class over another, so a loss within a standard error of a limit is probably noise.
        """
        return self.source.is_average and self.adjustment is None

    def fit(self, labels_N: Integers, ranking: Ranking) -> nn.Module:
        """Fit the adjustment to all samples of the source."""
        if self.adjustment is None:
            return nn.Identity()
        scores = TopScores.from_logits(self.source.logits_NK, labels_N)
        return self.adjustment.fit(Calibrated.from_scores(scores), ranking)[self.position].module


def predict(module: nn.Module, logits_NK: Tensor) -> Integers:
    """Predicted classes of adjusted scores, in chunks so that memory is bounded."""
    parts = [
        module(logits_NK[rows].to(torch.promote_types(logits_NK.dtype, torch.float32))).argmax(dim=1)
        for rows in row_chunks(*logits_NK.shape)
    ]
    return torch.cat(parts).numpy()


def cross_fit(
    sources: Sequence[Source],
    labels_N: Integers,
    adjustments: Sequence[Adjustment],
    context: Context,
    *,
    n_repeats: int = N_REPEATS,
    seed: int = 0,
) -> list[Option]:
    """Estimate the change that each option makes to the baseline, the first source.

    In each fold, the other folds rank the classes and fit the adjustments, and the fold measures the change. Estimates
    are means over folds and repeats.
    """
    rng = np.random.default_rng(seed)
    found: dict[tuple[int, int, int], list[dict[str, Measured]]] = {}
    settings: dict[tuple[int, int, int], Mapping[str, float]] = {}
    before_N, families = sources[0].predictions_N, [None, *adjustments]
    scores = [TopScores.from_logits(source.logits_NK, labels_N) for source in sources]
    for _ in range(n_repeats):
        folds_N = stratified_folds(labels_N, rng.random(len(labels_N)), N_FOLDS)
        for fold in range(N_FOLDS):
            held, rest = np.flatnonzero(folds_N == fold), np.flatnonzero(folds_N != fold)
            if not len(held) or not len(rest):
                continue
            ranking = Ranking.from_predictions(before_N[rest], labels_N[rest], context.num_classes)
            weights = group_weights(labels_N[held], ranking, context.num_classes, context.priors_K)
            for i, source in enumerate(sources):
                data = Calibrated.from_scores(scores[i].take(rest)) if source.adjustable else None
                held_logits = source.logits_NK[torch.from_numpy(held)]
                for j, family in enumerate(families):
                    for k, candidate in enumerate(_candidates(source, family, data, ranking)):
                        after_N = predict(candidate.module, held_logits)
                        change = measure(before_N[held], after_N, labels_N[held], weights, context.costs_KK)
                        found.setdefault((i, j, k), []).append(change)
                        settings[i, j, k] = candidate.settings
    return [
        Option(sources[i], families[j], k, settings[i, j, k], average(parts, n_repeats))
        for (i, j, k), parts in found.items()
    ]


def _candidates(
    source: Source, family: Adjustment | None, data: Calibrated | None, ranking: Ranking
) -> list[Candidate]:
    if family is None:
        return [] if source.is_baseline else [Candidate({}, nn.Identity())]
    return [] if data is None else family.fit(data, ranking)


def choose(options: Sequence[Option], goal: str, limits: Limits) -> Option | None:
    """Return the option with the best estimate among those within the limits that gain more than a standard error.

    If the easy third has no limit, a small gain could cost it a lot. Then options within a standard error of the best
    count as equal, and the one with the highest balanced accuracy is chosen.
    """
    eligible = [option for option in options if _gain(option, goal) > 0 and is_within(option, goal, limits)]
    best = max(eligible, key=lambda option: option.estimate[goal].change, default=None)
    if best is None or not prefers_balance(goal, limits.easy):
        return best
    equal = [option for option in eligible if option.estimate[goal].change >= _gain(best, goal)]
    return max(equal, key=lambda option: option.estimate["balanced"].change)


def prefers_balance(goal: str, easy_limit: float) -> bool:
    """Return whether :func:`choose` takes the highest balanced accuracy among options of about the same gain."""
    return goal != "cost" and easy_limit >= 1


def best_strengths(options: Sequence[Option], goal: str, limits: Limits) -> list[Option]:
    """Return the best option of each remedy: within the limits if one is, otherwise the one that exceeds them least."""
    best: dict[str, Option] = {}

    def quality(option: Option) -> tuple[float, float]:
        return -_excess(option, goal, limits), option.estimate[goal].change

    for option in options:
        if option.name not in best or quality(option) > quality(best[option.name]):
            best[option.name] = option
    return list(best.values())


def best_excluded(options: Sequence[Option], goal: str, limits: Limits) -> Option | None:
    """Return the best option beyond the limits, if it gains more than the chosen one even after the excess is deducted.

    The deduction leaves out options that cost more than they gain.
    """
    chosen = choose(options, goal, limits)
    least = 0.0 if chosen is None else chosen.estimate[goal].change

    def net(option: Option) -> float:
        return option.estimate[goal].change - _excess(option, goal, limits)

    beyond = [o for o in options if _gain(o, goal) > 0 and not is_within(o, goal, limits) and net(o) > least]
    return max(beyond, key=net, default=None)


def _gain(option: Option, goal: str) -> float:
    estimate = option.estimate[goal]
    return estimate.change - estimate.error


def _excess(option: Option, goal: str, limits: Limits) -> float:
    if goal == "cost":
        return 0.0
    return limits.excess(option.estimate, n_errors=1.0 if option.is_average else 0.0)


def is_within(option: Option, goal: str, limits: Limits) -> bool:
    """Return whether an option respects the limits."""
    return _excess(option, goal, limits) == 0
