"""Build a comparison from paired counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from classgap.audit._types import Floats, Integers
from classgap.audit.audit import Audit
from classgap.audit.diff_results import Change, ChangedClasses, ClassChange, GroupChange, RunsChange
from classgap.audit.metrics.gaps import CHANCE_RESAMPLES, MEASURES, mean_by_third, sums_by_third, tenth_size
from classgap.audit.metrics.groups import thirds
from classgap.audit.results import Interval
from classgap.audit.stats.f1_scores import F1Sides
from classgap.audit.stats.intervals import centered_interval, percentile_interval
from classgap.audit.stats.multiple_tests import THRESHOLD, adjust, changed_classes, sign_test
from classgap.audit.stats.paired_tests import ROUNDING, paired_t_test
from classgap.audit.stats.pairing import PairedCounts
from classgap.audit.stats.unpaired import UnpairedCounts

Counts = PairedCounts | UnpairedCounts

SIGN_RESAMPLES = 1000
WIDEST_GAP = 2.0  # largest possible change of a gap, from 1 to -1


@dataclass(frozen=True)
class Sides:
    """Class accuracies on both sides, observed and resampled.

    Attributes:
        before_RU: mean over runs before, in each bootstrap resample.
        after_RU: mean over runs after, in the same resamples.
        before_SU: each run before.
        after_SU: each run after.
        confidence_level: level of intervals.
    """

    before_RU: Floats
    after_RU: Floats
    before_SU: Floats
    after_SU: Floats
    confidence_level: float

    @classmethod
    def from_counts(cls, counts: Counts, n_resamples: int, seed: int, confidence_level: float) -> Sides:
        """Resample once; all intervals use the same resamples."""
        before_RU, after_RU = counts.resample(n_resamples, np.random.default_rng(seed))
        return cls(before_RU, after_RU, counts.before_SU, counts.after_SU, confidence_level)

    @property
    def before_U(self) -> Floats:
        """Mean over runs before."""
        return self.before_SU.mean(axis=0)

    @property
    def after_U(self) -> Floats:
        """Mean over runs after."""
        return self.after_SU.mean(axis=0)

    def change(
        self,
        before: Callable[[Floats], Floats],
        after: Callable[[Floats], Floats] | None = None,
        *,
        widest: float = 1.0,
    ) -> Change:
        """Change of a metric of the class accuracies, clipped to ±``widest``; ``after`` may be another metric."""
        after = after or before
        start, end = float(before(self.before_U)), float(after(self.after_U))
        differences_R = after(self.after_RU) - before(self.before_RU)
        interval = percentile_interval(differences_R, self.confidence_level, within=(-widest, widest))
        return Change(start, end, end - start, interval, runs_agree=self._agree(before, after))

    def centered_change(self, measure: Callable[[Floats], Floats]) -> Change:
        """Change of a measure of inequality, which noise inflates: its interval is centered on the change."""
        start, end = float(measure(self.before_U)), float(measure(self.after_U))
        differences_R = measure(self.after_RU) - measure(self.before_RU)
        interval = centered_interval(differences_R, end - start, self.confidence_level, lowest=-np.inf)
        return Change(start, end, end - start, interval, runs_agree=self._agree(measure, measure))

    def _agree(self, before: Callable[[Floats], Floats], after: Callable[[Floats], Floats]) -> bool:
        changes_S = after(self.after_SU) - before(self.before_SU)
        p = paired_t_test(changes_S)
        return p is None or p < 1 - self.confidence_level


def mean_of(members: Integers, weights: Integers | None = None) -> Callable[[Floats], Floats]:
    """Return a function of all class accuracies: the mean over some classes.

    >>> float(mean_of(np.array([0, 2]))(np.array([1.0, 9.0, 3.0])))
    2.0
    """
    weight = np.ones(len(members)) if weights is None else weights[members].astype(np.float64)
    weight /= weight.sum()
    return lambda accuracy_U: accuracy_U[..., members] @ weight


def class_changes(
    names: Sequence[str],
    counts: Counts,
    sides: Sides,
    hardness: Mapping[str, str],
    correction: str,
    f1: F1Sides | None,
) -> tuple[tuple[ClassChange, ...], str, ChangedClasses | None]:
    """Compare every class.

    Args:
        names: classes of both sides, including those without samples.
        counts: outcomes of the classes with samples.
        sides: accuracies of both sides.
        hardness: third of each class.
        correction: "auto", "holm" or "fdr".
        f1: F1 scores of the classes with samples.

    Returns:
        The changes, the name of the correction, and the number of changed classes if it can be estimated.
    """
    p_U, attainable_U = counts.class_tests(THRESHOLD)
    method, adjusted_U = adjust(p_U, correction)
    low_U, high_U = counts.change_bounds(sides.confidence_level)
    position = {name: i for i, name in enumerate(counts.names)}
    changes = []
    for index, name in enumerate(names):
        i = position.get(name)
        if i is None:
            changes.append(_unseen(index, name))
            continue
        change = float(sides.after_U[i] - sides.before_U[i])
        fixed = broken = support_after = None
        if isinstance(counts, PairedCounts):
            fixed, broken = int(counts.fixed_U[i]), int(counts.broken_U[i])
        else:
            support_after = int(counts.after_support_U[i])
        moved = change != 0 if fixed is None or broken is None else fixed + broken > 0
        changes.append(
            ClassChange(
                index=index,
                name=name,
                status="ok",
                support=int(counts.support_U[i]),
                before=float(sides.before_U[i]),
                after=float(sides.after_U[i]),
                change=change,
                interval=Interval(float(low_U[i]), float(high_U[i])),
                fixed=fixed,
                broken=broken,
                p_value=float(p_U[i]),
                p_adjusted=float(adjusted_U[i]),
                verdict=_verdict(change, moved, adjusted_U[i] < 1 - sides.confidence_level),
                group=hardness.get(name),
                support_after=support_after,
                f1_before=None if f1 is None else float(f1.before.f1_U[i]),
                f1_after=None if f1 is None else float(f1.after.f1_U[i]),
            )
        )
    changed = None if attainable_U is None else changed_classes(p_U, attainable_U, sides.confidence_level)
    return tuple(changes), method, changed


def first_groups(
    first: Audit, counts: Counts, renamed: Mapping[str, str], *, rank_again: bool
) -> list[tuple[str, str, Integers]]:
    """Name, kind and members of the first side's groups; ``rank_again`` ranks thirds by the compared samples."""
    position = {name: i for i, name in enumerate(counts.names)}
    found = []
    reranked = {}
    if rank_again and first.rank_by == "own":
        reranked = thirds(counts.before_SU.mean(axis=0), np.ones(len(counts.names), dtype=bool))
    for group in first.groups.values():
        current = [renamed.get(name, name) for name in group.members]
        members = np.array([position[name] for name in current if name in position], dtype=np.int64)
        members = reranked.get(group.name, members) if group.kind == "thirds" else members
        if len(members):
            found.append((group.name, group.kind, members))
    return found


def group_change(
    name: str, kind: str, members: Integers, sides: Sides, names: Sequence[str], after_members: Integers | None = None
) -> GroupChange:
    """Compare one group; ``after_members`` if each side has its own members."""
    differences_U = (sides.after_U - sides.before_U)[members]
    up, down = int((differences_U > 0).sum()), int((differences_U < 0).sum())
    return GroupChange(
        name=name,
        kind=kind,
        change=sides.change(mean_of(members), None if after_members is None else mean_of(after_members)),
        gained=up,
        regressed=down,
        members=tuple(names[i] for i in members.tolist()),
        sign_p_value=sign_test(up, down) if after_members is None else None,
    )


def chance_changes(counts: Counts, rng: np.random.Generator) -> dict[str, float]:
    """Mean change of the thirds and of their gap when sides are swapped at random and thirds are ranked again.

    Thirds are ranked by the accuracies before. A class with a low accuracy by bad luck is ranked hard, and the bad luck
    does not repeat after: the hard third improves even if nothing changed (regression to the mean).
    """
    before_RU, after_RU = counts.swap_sides(CHANCE_RESAMPLES, rng)
    found = mean_by_third(before_RU, after_RU - before_RU)
    if "easy" in found and "hard" in found:
        found["easy_hard"] = found["easy"] - found["hard"]
    return found


def third_sign_tests(
    counts: Counts, thirds: Mapping[str, GroupChange], rng: np.random.Generator
) -> dict[str, float | None]:
    """P-values of the sign tests of thirds that the first side ranks on these samples.

    The binomial test alone does not hold for them: most classes that rank hard by bad luck rise. A second test swaps
    the sides of classes at random, ranks the thirds again, and compares classes up minus classes down. It alone does
    not test whether classes rise and fall equally often: if the only class that changed belongs to another third after
    swaps, its own third never changes in the null distribution. The larger p-value of both is valid and free of this.

    Args:
        counts: outcomes of both sides.
        thirds: changes of the thirds, with their classes up and down.
        rng: draws the swaps.
    """
    before_RU, after_RU = counts.swap_classes(SIGN_RESAMPLES, rng)
    null = sums_by_third(before_RU, np.sign(after_RU - before_RU))
    found: dict[str, float | None] = {}
    for name, third in thirds.items():
        binomial = sign_test(third.gained, third.regressed)
        mean = null[name].mean()
        distance = abs(third.gained - third.regressed - mean)
        beyond = int((np.abs(null[name] - mean) >= distance - ROUNDING).sum())
        found[name] = None if binomial is None else max(binomial, (1 + beyond) / (1 + SIGN_RESAMPLES))
    return found


def gap_changes(
    sides: Sides, groups: Mapping[str, Integers], own: Mapping[str, Mapping[str, Integers]]
) -> dict[str, Change]:
    """Compare every gap measure; each side's own best and worst classes are fixed over resamples."""
    before, after = sides.before_U, sides.after_U

    def fixed(pick: Callable[[Floats], Integers]) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
        return mean_of(pick(before)), mean_of(pick(after))

    def minus(a: Callable[[Floats], Floats], b: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
        return lambda values: a(values) - b(values)

    worst = fixed(lambda values: np.array([values.argmin()]))
    best = fixed(lambda values: np.array([values.argmax()]))
    low = fixed(lambda values: np.argsort(values, kind="stable")[: tenth_size(len(values))])
    found: dict[str, Change] = {}
    if "easy" in groups and "hard" in groups:
        found["easy_hard"] = sides.change(minus(mean_of(groups["easy"]), mean_of(groups["hard"])), widest=WIDEST_GAP)
    if len(before) > 1:
        found["own_easy_hard"] = sides.change(
            minus(mean_of(own["before"]["easy"]), mean_of(own["before"]["hard"])),
            minus(mean_of(own["after"]["easy"]), mean_of(own["after"]["hard"])),
            widest=WIDEST_GAP,
        )
    found["best_worst"] = sides.change(minus(best[0], worst[0]), minus(best[1], worst[1]), widest=WIDEST_GAP)
    found["worst_class"] = sides.change(*worst)
    found["worst_tenth"] = sides.change(*low)
    found["std"] = sides.centered_change(MEASURES["std"])
    found["gini"] = sides.centered_change(MEASURES["gini"])
    return found


def run_changes(counts: Counts, groups: Mapping[str, Integers], f1: F1Sides | None) -> dict[str, RunsChange]:
    """Mean, standard deviation and paired test over runs of every metric; gaps use each run's own ranking."""
    everything = np.arange(len(counts.names))
    metrics: dict[str, Callable[[Floats], Floats]] = {
        "accuracy": mean_of(everything, counts.support_U),
        "balanced_accuracy": mean_of(everything),
        **{name: mean_of(members) for name, members in groups.items()},
        **(MEASURES if len(everything) > 1 else {}),
    }
    runs = {name: (metric(counts.before_SU), metric(counts.after_SU)) for name, metric in metrics.items()}
    if f1 is not None:
        runs["macro_f1"] = f1.before.f1_SU.mean(axis=1), f1.after.f1_SU.mean(axis=1)
    found = {}
    for name, (before_S, after_S) in runs.items():
        changes_S = after_S - before_S
        found[name] = RunsChange(
            before_mean=float(before_S.mean()),
            before_std=float(before_S.std(ddof=1)),
            after_mean=float(after_S.mean()),
            after_std=float(after_S.std(ddof=1)),
            change_mean=float(changes_S.mean()),
            change_std=float(changes_S.std(ddof=1)),
            p_value=paired_t_test(changes_S),
            n_runs=len(changes_S),
        )
    return found


def _verdict(change: float, moved: bool, significant: bool) -> str:
    if not moved:
        return "unchanged"
    if not significant:
        return "unclear"
    return "gained" if change > 0 else "regressed"


def _unseen(index: int, name: str) -> ClassChange:
    return ClassChange(
        index=index,
        name=name,
        status="unseen",
        support=0,
        before=None,
        after=None,
        change=None,
        interval=None,
        fixed=0,
        broken=0,
        p_value=None,
        p_adjusted=None,
        verdict="unchanged",
        group=None,
    )
