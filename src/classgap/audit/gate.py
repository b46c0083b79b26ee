"""``gate``: check a new model against a baseline by rules on classes, groups and the gap."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from classgap.audit._types import Floats, Integers
from classgap.audit.audit import Audit, Source
from classgap.audit.diff_build import first_groups
from classgap.audit.gate_results import ClassPower, GateResult, GroupDrop, RuleResult, Violation
from classgap.audit.gate_rules import OVERALL, GateRules
from classgap.audit.settings import AuditSettings
from classgap.audit.stats.gate_tests import NO_DROP, GateTests, PairedTests, UnpairedTests
from classgap.audit.stats.group_drops import GroupNull, group_nulls
from classgap.audit.stats.unpaired import UnpairedCounts


def gate(
    before: Source,
    after: Source,
    *,
    rules: GateRules | str | os.PathLike[str] | None = None,
    max_class_drop: float | None = None,
    max_group_drop: Mapping[str, float] | None = None,
    min_class_accuracy: float | None = None,
    max_gap: float | None = None,
    confidence_level: float | None = None,
    key: str | None = None,
    rename: Mapping[str, str] | None = None,
    seed: int = 0,
    unpaired: bool = False,
) -> GateResult:
    """Check a new model against a baseline, on the test samples that both have, or on two test sets.

    A rule is broken if the test samples show, with statistical significance, that its limit is exceeded. If no limit is
    exceeded, any rule is broken with a probability of at most 1 - ``confidence_level``.

    Args:
        before: baseline: an `Audit`, or the path of a saved audit, prediction file or run directory.
        after: the new model.
        rules: rules, or the path of a YAML file with them.
        max_class_drop: largest drop of a class, in percentage points; replaces that of ``rules``, as do the following.
        max_group_drop: group → largest drop of its mean accuracy.
        min_class_accuracy: lowest accuracy of a class.
        max_gap: largest gap between the easy and the hard third.
        confidence_level: confidence level of the whole gate.
        key: array or column of prediction files with sample ids, to match samples by.
        rename: class names of the baseline → names of the same classes in the new model.
        seed: seed of the permutation tests.
        unpaired: treat the two test sets as independent, for test sets without common samples.

    Raises:
        ValueError: if a source or the rules cannot be read, no rule is given, a group is unknown, or the samples do not
            match.

    >>> targets = [0] * 40 + [1] * 40
    >>> good = Audit.from_predictions(predictions=targets, targets=targets, name="v1")
    >>> bad = Audit.from_predictions(predictions=[0] * 60 + [1] * 20, targets=targets, name="v2")
    >>> result = gate(good, bad, max_class_drop=3)
    >>> result.passed, result.rules[0].worst, result.rules[0].value
    (False, '1', 50.0)
    """
    from classgap.audit.io.sources import read_audits

    known = rules if isinstance(rules, GateRules) else GateRules() if rules is None else GateRules.load(rules)
    known = known.updated(
        max_class_drop=max_class_drop,
        max_group_drop=max_group_drop,
        min_class_accuracy=min_class_accuracy,
        max_gap=max_gap,
        confidence_level=confidence_level,
    )
    if not known.n_rules:
        raise ValueError("a gate needs at least one rule, for example max_class_drop (--max-class-drop 3).")
    AuditSettings(seed=seed)  # checks it
    first, second = read_audits([before, after], key=key)
    return GateChecks.from_audits(first, second, known, rename, seed, unpaired=unpaired).result()


@dataclass(frozen=True)
class GateChecks:
    """Tests of two audits, and the rules to check by them."""

    before: Audit
    after: Audit
    rules: GateRules
    tests: GateTests
    groups: Mapping[str, Integers]
    thirds: Mapping[str, Integers]
    seed: int

    @classmethod
    def from_audits(
        cls,
        before: Audit,
        after: Audit,
        rules: GateRules,
        rename: Mapping[str, str] | None,
        seed: int,
        *,
        unpaired: bool = False,
    ) -> GateChecks:
        """Match the samples of two audits, or only their classes.

        Raises:
            ValueError: if they do not match, or a rule cannot be checked on them.
        """
        kind: type[GateTests] = UnpairedTests if unpaired else PairedTests
        tests = kind.from_audits(before, after, rename)
        found = first_groups(before, tests.counts, tests.classes.renamed, rank_again=tests.left_out[0] > 0)
        thirds = {name: part for name, kind, part in found if kind == "thirds"}
        groups = {name: part for name, kind, part in found if kind != "thirds"}
        known = (OVERALL, *thirds, *groups)
        for name in rules.max_group_drop:
            if name not in known:
                raise ValueError(f"max_group_drop: {name!r} is not a group of the baseline; it has {', '.join(known)}.")
        if rules.max_gap is not None and not {"easy", "hard"} <= set(thirds):
            raise ValueError("max_gap needs at least two classes with test samples on both sides.")
        return cls(before, after, rules, tests, groups, thirds, seed)

    def rule_results(self, nulls: Mapping[str, GroupNull] | None = None) -> list[RuleResult]:
        """Check all rules; ``nulls`` if the group drops are already known."""
        rules, alpha = self.rules, self.rules.alpha
        nulls = self.group_drops() if nulls is None and rules.max_group_drop else nulls or {}
        found: list[RuleResult] = []
        if rules.max_class_drop is not None:
            found.append(self._class_drops(rules.max_class_drop))
        for name, limit in rules.max_group_drop.items():
            null = nulls[name]
            bound = null.bound(alpha)
            found.append(
                RuleResult(
                    "max_group_drop",
                    name,
                    limit,
                    passed=bound < limit / 100,
                    value=100 * null.drop,
                    bound=100 * bound,
                    expected_by_chance=100 * null.expected_by_chance,
                )
            )
        if rules.min_class_accuracy is not None:
            found.append(self._accuracies(rules.min_class_accuracy))
        if rules.max_gap is not None:
            gap, bound = self._gap(alpha)
            found.append(
                RuleResult("max_gap", None, rules.max_gap, bound <= rules.max_gap / 100, 100 * gap, 100 * bound)
            )
        return found

    def result(self) -> GateResult:
        """Check all rules, and measure groups and power."""
        nulls, classes, counts = self.group_drops(), self.tests.classes, self.tests.counts
        after_support_U = counts.after_support_U if isinstance(counts, UnpairedCounts) else None
        found = self.rule_results(nulls)
        return GateResult(
            before_name=self.before.name,
            after_name=self.after.name,
            passed=all(rule.passed for rule in found),
            rules=tuple(found),
            groups={name: self._group_drop(name, null) for name, null in nulls.items()},
            power=self._power(),
            n_samples=int(counts.support_U.sum()),
            only_before=self.tests.left_out[0],
            only_after=self.tests.left_out[1],
            added=classes.added,
            removed=classes.removed,
            confidence_level=self.rules.confidence_level,
            seed=self.seed,
            renamed=classes.renamed,
            paired=after_support_U is None,
            n_samples_after=None if after_support_U is None else int(after_support_U.sum()),
        )

    def group_drops(self) -> dict[str, GroupNull]:
        """Measure the drop of each group, and of random swaps of the two sides."""
        counts = self.tests.counts
        support_U = counts.support_U
        weights: dict[str, Floats] = {OVERALL: support_U / support_U.sum()}
        for name, members in self.groups.items():
            weights[name] = np.bincount(members, minlength=len(support_U)) / len(members)
        crossfit = None
        if self.before.rank_by == "own":
            known = self.tests.crossfit_drops(np.random.default_rng(self.seed))
            crossfit = {name: known.get(name, NO_DROP) for name in self.thirds}
        found = group_nulls(
            counts.before_SU[0] - counts.after_SU[0],
            self.tests.swaps(np.random.default_rng(self.seed)),
            weights,
            self.thirds,
            crossfit=crossfit,
        )
        return {name: found[name] for name in (OVERALL, *self.thirds, *self.groups)}

    def _class_drops(self, limit: float) -> RuleResult:
        counts = self.tests.counts
        alpha = sidak(self.rules.alpha, len(counts.names))
        drop_U = counts.before_SU[0] - counts.after_SU[0]
        bound_U = self.tests.bounds(alpha)
        broken_U = np.zeros(len(drop_U), dtype=bool)
        over = np.flatnonzero(drop_U > limit / 100)
        if len(over):
            broken_U[over] = self.tests.p_values(over, limit / 100) <= alpha
        worst = int(drop_U.argmax())
        order = [int(i) for i in np.lexsort((-drop_U, -bound_U)) if broken_U[i]]
        return RuleResult(
            rule="max_class_drop",
            group=None,
            limit=limit,
            passed=not order,
            value=100 * float(drop_U[worst]),
            bound=100 * float(bound_U.max()),
            worst=counts.names[worst],
            n_tested=len(drop_U),
            violations=tuple(
                Violation(
                    name=counts.names[i],
                    before=100 * float(counts.before_SU[0, i]),
                    after=100 * float(counts.after_SU[0, i]),
                    value=100 * float(drop_U[i]),
                    bound=100 * float(bound_U[i]),
                    support=int(counts.support_U[i]),
                )
                for i in order
            ),
        )

    def _accuracies(self, limit: float) -> RuleResult:
        """Test the accuracy of each class on all samples of the new model, by exact (Clopper-Pearson) bounds."""
        seen = [entry for entry in self.after.classes if entry.accuracy is not None]
        support_U = np.array([entry.support for entry in seen])
        accuracy_U = np.array([entry.accuracy for entry in seen])
        bound_U = accuracy_bounds(np.round(accuracy_U * support_U), support_U, sidak(self.rules.alpha, len(seen)))
        counts = self.tests.counts
        earlier = dict(zip(counts.names, counts.before_SU[0].tolist(), strict=True))
        order = [int(i) for i in np.argsort(bound_U, kind="stable") if bound_U[i] < limit / 100]
        worst = int(accuracy_U.argmin())
        return RuleResult(
            rule="min_class_accuracy",
            group=None,
            limit=limit,
            passed=not order,
            value=100 * float(accuracy_U[worst]),
            bound=100 * float(bound_U.min()),
            worst=seen[worst].name,
            n_tested=len(seen),
            violations=tuple(
                Violation(
                    name=seen[i].name,
                    before=100 * earlier[seen[i].name] if seen[i].name in earlier else None,
                    after=100 * float(accuracy_U[i]),
                    value=100 * float(accuracy_U[i]),
                    bound=100 * float(bound_U[i]),
                    support=int(support_U[i]),
                )
                for i in order
            ),
        )

    def _gap(self, alpha: float) -> tuple[float, float]:
        if self.before.rank_by != "own":
            return self.tests.fixed_gap(self.thirds, alpha)
        return self.tests.ranked_gap(self.thirds, alpha, np.random.default_rng(self.seed))

    def _group_drop(self, name: str, null: GroupNull) -> GroupDrop:
        counts, alpha = self.tests.counts, self.rules.alpha
        members = self.thirds.get(name, self.groups.get(name))
        weights = counts.support_U if members is None else None
        members = np.arange(len(counts.names)) if members is None else members
        before, after = (
            100 * float(np.average(side[0][members], weights=weights)) for side in (counts.before_SU, counts.after_SU)
        )
        detectable = 100 * null.detectable(self.rules.max_group_drop.get(name, 0.0) / 100, alpha)
        return GroupDrop(
            name=name,
            n_classes=len(members),
            before=before,
            after=after,
            drop=100 * null.drop,
            expected_by_chance=100 * null.expected_by_chance,
            bound=100 * null.bound(alpha),
            detectable=detectable if detectable <= before else None,
        )

    def _power(self) -> ClassPower:
        counts = self.tests.counts
        alpha = sidak(self.rules.alpha, len(counts.names))
        drops_U = self.tests.detectable((self.rules.max_class_drop or 0.0) / 100, alpha)
        possible_U = drops_U <= counts.before_SU[0]  # a class cannot fall below 0
        classes = {
            name: 100 * float(drop) if possible else None
            for name, drop, possible in zip(counts.names, drops_U, possible_U, strict=True)
        }
        known = 100 * drops_U[possible_U]
        missing = len(drops_U) - len(known)
        if not len(known):
            return ClassPower(classes, None, None, None, missing)
        return ClassPower(classes, float(np.median(known)), float(known.min()), float(known.max()), missing)


def sidak(alpha: float, tests: int) -> float:
    """Level of each of several independent tests, so that any is significant with probability ``alpha`` at most.

    >>> round(sidak(0.05, 10), 5)
    0.00512
    """
    return float(-np.expm1(np.log1p(-alpha) / tests))


def accuracy_bounds(right_U: Floats, support_U: Integers, alpha: float) -> Floats:
    """Upper Clopper-Pearson bound of each accuracy, one-sided.

    >>> accuracy_bounds(np.array([5.0, 10.0]), np.array([10, 10]), 0.05).round(3).tolist()
    [0.778, 1.0]
    """
    from scipy.special import betaincinv

    wrong_U = support_U - right_U
    return np.where(wrong_U > 0, betaincinv(right_U + 1, np.maximum(wrong_U, 1), 1 - alpha), 1.0)
