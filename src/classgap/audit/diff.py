"""``AuditDiff``: what a change did to each class, on the same test samples."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from classgap.audit.audit import Audit
from classgap.audit.diff_build import (
    Sides,
    chance_changes,
    class_changes,
    first_groups,
    gap_changes,
    group_change,
    mean_of,
    run_changes,
)
from classgap.audit.diff_results import Change, ClassChange, GroupChange, RunsChange
from classgap.audit.metrics.groups import thirds
from classgap.audit.serialization import from_plain, naming, read_json, to_plain, write_json
from classgap.audit.settings import format_level
from classgap.audit.stats.pairing import pair_audits
from classgap.audit.summary import summary


@dataclass(frozen=True)
class AuditDiff:
    """Two sides, each of one audit or of several seeds, on the same test samples.

    Attributes:
        before_name: the first side's name.
        after_name: the second side's name.
        seeds: how many pairs of runs were compared.
        n_samples: test samples.
        overall: accuracy over all samples.
        balanced: mean class accuracy.
        classes: one entry a class, in the order of the class indices.
        groups: by name, with the members that the first side's audit gives them ("hard" is what was hard before).
        own_groups: "easy", "medium", "hard", each side ranked by its own accuracies.
        gap: measure → its change: ``easy_hard`` with the first side's thirds, ``own_easy_hard`` with each own,
            ``best_worst``, ``worst_class``, ``worst_tenth``, ``std``, ``gini``.
        gained: classes that gained for certain (McNemar, Holm), largest gain first.
        paid: classes that paid for certain, largest loss first.
        over_seeds: figure → mean, standard deviation and paired test over seeds ("accuracy", "balanced_accuracy",
            the groups' names, and the gap measures); empty for one pair.
        level: of all intervals; the tests' level is 1 - level.
        summary: the outcome in plain words.
        notes: figure → how it was computed.
    """

    SCHEMA: ClassVar[int] = 1

    before_name: str
    after_name: str
    runs_per_side: int
    n_samples: int
    overall: Change
    balanced: Change
    classes: tuple[ClassChange, ...]
    groups: Mapping[str, GroupChange]
    own_groups: Mapping[str, GroupChange]
    gap: Mapping[str, Change]
    gained: tuple[str, ...]
    regressed: tuple[str, ...]
    over_runs: Mapping[str, RunsChange]
    confidence_level: float
    summary: str
    notes: Mapping[str, str]

    @classmethod
    def from_audits(
        cls,
        before: Audit | Sequence[Audit],
        after: Audit | Sequence[Audit],
        *,
        n_resamples: int = 1000,
        seed: int = 0,
    ) -> AuditDiff:
        """Compare two audits, or the audits of several seeds, the i-th before with the i-th after.

        Args:
            before: the first side.
            after: the second side, on the same test samples.
            n_resamples: of the paired bootstrap.
            seed: of the paired bootstrap.

        Raises:
            ValueError: with the reason, if the audits are not of the same classes and test samples.

        >>> targets = [0] * 20 + [1] * 20
        >>> a = Audit.from_predictions(predictions=[0] * 30 + [1] * 10, targets=targets, name="a")
        >>> b = Audit.from_predictions(predictions=targets, targets=targets, name="b")
        >>> diff = AuditDiff.from_audits(a, b)
        >>> diff.gained, diff.classes[1].fixed, round(diff.classes[1].p_value, 4)
        (('1',), 10, 0.002)
        """
        befores = [before] if isinstance(before, Audit) else list(before)
        afters = [after] if isinstance(after, Audit) else list(after)
        counts = pair_audits(befores, afters)
        sides = Sides.from_counts(counts, n_resamples, seed, befores[0].confidence_level)
        everyone = np.ones(len(counts.names), dtype=bool)
        own = {"before": thirds(sides.before_U, everyone), "after": thirds(sides.after_U, everyone)}
        groups = first_groups(befores, counts)
        members = {name: part for name, _, part in groups}
        hardness = {counts.names[i]: name for name, kind, part in groups if kind == "thirds" for i in part}
        classes = class_changes(befores[0], counts, sides, hardness)
        group_changes = {name: group_change(name, kind, part, sides, counts.names) for name, kind, part in groups}
        overall = sides.change(mean_of(np.arange(len(counts.names)), counts.support_U))
        gaps = gap_changes(sides, members, own)
        if befores[0].rank_by == "own":
            for name, chance in chance_changes(counts, np.random.default_rng(seed)).items():
                if name in gaps:
                    gaps[name] = replace(gaps[name], expected_by_chance=chance)
                else:
                    known = group_changes[name]
                    group_changes[name] = replace(known, change=replace(known.change, expected_by_chance=chance))
        return cls(
            before_name=befores[0].name,
            after_name=afters[0].name,
            runs_per_side=counts.runs_per_side,
            n_samples=len(befores[0].samples.targets),
            overall=overall,
            balanced=sides.change(mean_of(np.arange(len(counts.names)))),
            classes=classes,
            groups=group_changes,
            own_groups={
                name: group_change(name, "thirds", part, sides, counts.names, own["after"][name])
                for name, part in own["before"].items()
                if len(part)
            },
            gap=gaps,
            gained=_names(classes, "gained"),
            regressed=_names(classes, "regressed"),
            over_runs=run_changes(counts, members) if counts.runs_per_side > 1 else {},
            confidence_level=sides.confidence_level,
            summary=summary(overall, group_changes, gaps, classes, runs_per_side=counts.runs_per_side),
            notes=_notes(n_resamples, seed, sides.confidence_level),
        )

    def __repr__(self) -> str:
        figures = {"accuracy": self.overall}
        if "hard" in self.groups:
            figures["hard third"] = self.groups["hard"].change
        moves = [f"{name} {figure.before:.3f} to {figure.after:.3f}" for name, figure in figures.items()]
        runs_per_side = f"{self.runs_per_side} seeds, " if self.runs_per_side > 1 else ""
        return (
            f"<AuditDiff {self.before_name!r} to {self.after_name!r}: {len(self.classes)} classes, {self.n_samples} "
            f"samples, {runs_per_side}{', '.join(moves)}, {len(self.gained)} gained, {len(self.regressed)} paid>"
        )

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON holds it."""
        return {"schema": self.SCHEMA, **to_plain(self)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the comparison as JSON; the file is replaced whole or not at all."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AuditDiff:
        """Read what :meth:`save` wrote.

        Raises:
            ValueError: if the file is missing, damaged or not a comparison.
        """
        data = read_json(path)
        if not isinstance(data, dict) or data.get("schema") != cls.SCHEMA or "before_name" not in data:
            raise ValueError(f"{path} is not a comparison that this version reads.")
        with naming(path):
            diff = from_plain(cls, data)
            for verdict in ("gained", "regressed"):
                if getattr(diff, verdict) != _names(diff.classes, verdict):
                    raise ValueError(f"the file was edited or cut: {verdict} is not what its classes say.")
        return diff

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the comparison as one self-contained HTML page."""
        from classgap import report  # an upper room, so only here

        report.write_html(self, path)


def _names(classes: Sequence[ClassChange], verdict: str) -> tuple[str, ...]:
    found = [entry for entry in classes if entry.verdict == verdict]
    return tuple(entry.name for entry in sorted(found, key=lambda entry: -abs(entry.change or 0.0)))


def _notes(n_resamples: int, seed: int, confidence_level: float) -> dict[str, str]:
    return {
        "interval": (
            f"{n_resamples} paired bootstrap resamples of the test samples within each class, deviations scaled by "
            f"√(n/(n-1)), seed {seed}, {format_level(confidence_level)} percentile interval of the difference. "
            "Intervals of the standard deviation and the Gini coefficient are centered on the change. Single classes: "
            "Agresti-Min interval."
        ),
        "p_value": (
            "Exact McNemar test: two-sided binomial test of the samples fixed against the samples broken. With several "
            "runs, the larger of two p-values: a sign-flip test of the changes summed over runs for each sample, and a "
            "t-test of the mean change over runs with variances pooled over classes in proportion to p(1 - p)/n."
        ),
        "p_adjusted": "Holm correction over all classes with test samples.",
        "verdict": (
            f"Gained or regressed if the adjusted p-value is below {1 - confidence_level:g}; otherwise unclear."
        ),
        "groups": "Mean accuracy of the classes in the group. Both sides use the groups of the first side.",
        "expected_by_chance": (
            "Mean change of the thirds over random swaps of the two sides of each sample. Classes that rank as hard by "
            "bad luck improve without any real change (regression to the mean). A change is significant only if its "
            "interval also excludes this value."
        ),
        "own_groups": "Thirds of each side by its own accuracies; the two sides may contain different classes.",
        "gap": "The easy-hard gap uses the thirds of the first side; other measures use each side's own ranking.",
        "over_runs": (
            "Mean and sample standard deviation over runs, with a two-sided paired t-test. With several runs, a change "
            "is significant only if this test is significant as well: bootstrap intervals reflect the choice of test "
            "samples, not the variation between runs."
        ),
    }


def compare(
    before: Audit | Sequence[Audit], after: Audit | Sequence[Audit], *, n_resamples: int = 1000, seed: int = 0
) -> AuditDiff:
    """Compare two audits, or several runs on each side; see :meth:`AuditDiff.from_audits`."""
    return AuditDiff.from_audits(before, after, n_resamples=n_resamples, seed=seed)
