"""``AuditDiff``: per-class comparison of two classifiers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from classgap.audit.audit import Audit, Source
from classgap.audit.diff_build import (
    Counts,
    Sides,
    chance_changes,
    class_changes,
    first_groups,
    gap_changes,
    group_change,
    mean_of,
    run_changes,
    third_sign_tests,
)
from classgap.audit.diff_results import CLASS_CHANGES, Change, ChangedClasses, ClassChange, GroupChange, RunsChange
from classgap.audit.figures import column_names, column_values
from classgap.audit.io.frames import to_frame
from classgap.audit.metrics.groups import thirds
from classgap.audit.results import STRICT
from classgap.audit.serialization import from_plain, name_file_in_errors, read_json, to_plain, write_json
from classgap.audit.settings import AuditSettings
from classgap.audit.stats.f1_scores import F1Sides
from classgap.audit.stats.matching import ClassMatch, match_classes, match_samples
from classgap.audit.stats.multiple_tests import Correction
from classgap.audit.stats.pairing import check_number_of_runs, check_runs, count_pairs
from classgap.audit.stats.unpaired import UnpairedCounts, count_unpaired

UNPAIRED_HINT = "; compare them with unpaired=True (--unpaired)"
UNPAIRED_ADVICE = ", or compare with unpaired=True (--unpaired)"


@dataclass(frozen=True)
class AuditDiff:
    """Comparison of two sides, before and after a change, on the test samples that both have.

    A side is one run, or several runs that differ in their seed.

    Attributes:
        before_name: name of the first side.
        after_name: name of the second side.
        n_runs: number of runs on each side.
        n_samples: number of test samples compared; of the first side if samples are not paired.
        overall: accuracy over all samples.
        balanced: mean class accuracy.
        macro_f1: mean F1 score of the classes; ``None`` if samples are not paired and an audit has none.
        classes: one entry per class, in the order of the class indices.
        groups: name → group, with the members of the first side ("hard" classes were hard before).
        own_groups: "easy", "medium", "hard", each side ranked by its own accuracies.
        gap: measure → change: ``easy_hard`` with the first side's thirds, ``own_easy_hard`` with each side's own,
            ``best_worst``, ``worst_class``, ``worst_tenth``, ``std``, ``gini``.
        gained: names of classes that improved significantly after ``correction``, largest gain first.
        regressed: names of classes that got significantly worse, largest loss first.
        over_runs: metric → mean, standard deviation and paired test over runs ("accuracy", "balanced_accuracy", names
            of groups, gap measures); empty with one run per side.
        confidence_level: level of all intervals; tests are at 1 - level.
        n_resamples: number of resamples of the paired bootstrap.
        seed: seed of the paired bootstrap.
        paired: whether both sides are compared on the same samples.
        correction: correction of p-values over classes, "holm" or "fdr_bh" (Benjamini and Hochberg).
        changed: estimated number of classes that changed; ``None`` with several runs per side.
        n_samples_after: number of samples of the second side if samples are not paired.
        only_before: number of samples of the first side that were left out.
        only_after: number of samples of the second side that were left out.
        added: classes that only the second side has, or has test samples of.
        removed: classes that only the first side has, or has test samples of.
        renamed: class name before → class name after.

    >>> targets = [0] * 20 + [1] * 20
    >>> before = Audit.from_predictions(predictions=[0] * 30 + [1] * 10, targets=targets, name="before")
    >>> after = Audit.from_predictions(predictions=targets, targets=targets, name="after")
    >>> diff = AuditDiff.from_audits(before, after)
    >>> diff.overall.change, diff.gained, diff.regressed
    (0.25, ('1',), ())
    """

    SCHEMA: ClassVar[int] = 3
    __pydantic_config__ = STRICT

    before_name: str
    after_name: str
    n_runs: int
    n_samples: int
    overall: Change
    balanced: Change
    macro_f1: Change | None
    classes: tuple[ClassChange, ...]
    groups: Mapping[str, GroupChange]
    own_groups: Mapping[str, GroupChange]
    gap: Mapping[str, Change]
    gained: tuple[str, ...]
    regressed: tuple[str, ...]
    over_runs: Mapping[str, RunsChange]
    confidence_level: float
    n_resamples: int
    seed: int
    paired: bool = True
    correction: str = "holm"
    changed: ChangedClasses | None = None
    n_samples_after: int | None = None
    only_before: int = 0
    only_after: int = 0
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_audits(
        cls,
        before: Audit | Sequence[Audit],
        after: Audit | Sequence[Audit],
        *,
        confidence_level: float | None = None,
        n_resamples: int = 1000,
        seed: int = 0,
        rename: Mapping[str, str] | None = None,
        unpaired: bool = False,
        correction: Correction = "auto",
    ) -> AuditDiff:
        """Compare two audits, or several runs on each side, the i-th before with the i-th after.

        Samples are matched by ``index`` if all audits have it, otherwise by position. Samples that not all audits have,
        and samples of classes that only one side has, are left out.

        Args:
            before: first side.
            after: second side.
            confidence_level: level of intervals and tests; by default that of the first audit.
            n_resamples: number of resamples of the paired bootstrap.
            seed: seed of the paired bootstrap.
            rename: class names of the first side → names of the same classes on the second.
            unpaired: treat the two sides as independent samples, for test sets without common samples.
            correction: correction over classes: "holm", "fdr", or "auto", which is "fdr" for more than 50 classes.

        Raises:
            ValueError: if the audits have no classes or test samples in common, or matched samples have different
                labels.

        >>> targets = [0] * 20 + [1] * 20
        >>> a = Audit.from_predictions(predictions=[0] * 30 + [1] * 10, targets=targets, name="a")
        >>> b = Audit.from_predictions(predictions=targets, targets=targets, name="b")
        >>> diff = AuditDiff.from_audits(a, b)
        >>> diff.gained, diff.classes[1].fixed, round(diff.classes[1].p_value, 4)
        (('1',), 10, 0.002)
        """
        befores = [before] if isinstance(before, Audit) else list(before)
        afters = [after] if isinstance(after, Audit) else list(after)
        counts, match, left_out, f1 = _count(befores, afters, rename, unpaired)
        settings = AuditSettings(
            confidence_level=befores[0].confidence_level if confidence_level is None else confidence_level,
            n_resamples=n_resamples,
            seed=seed,
        )
        sides = Sides.from_counts(counts, n_resamples, seed, settings.confidence_level)
        everyone = np.ones(len(counts.names), dtype=bool)
        own = {"before": thirds(sides.before_U, everyone), "after": thirds(sides.after_U, everyone)}
        rank_again = len(befores) > 1 or left_out[0] > 0
        groups = first_groups(befores[0], counts, match.renamed, rank_again=rank_again)
        members = {name: part for name, _, part in groups}
        hardness = {counts.names[i]: name for name, kind, part in groups if kind == "thirds" for i in part}
        classes, method, changed = class_changes(match.names, counts, sides, hardness, correction, f1)
        group_changes = {name: group_change(name, kind, part, sides, counts.names) for name, kind, part in groups}
        weights = [mean_of(np.arange(len(counts.names)), counts.support_U)]
        if isinstance(counts, UnpairedCounts):
            weights.append(mean_of(np.arange(len(counts.names)), counts.after_support_U))
        gaps = gap_changes(sides, members, own)
        if befores[0].rank_by == "own":
            _account_for_ranking(counts, group_changes, gaps, seed)
        return cls(
            before_name=befores[0].name,
            after_name=afters[0].name,
            n_runs=counts.n_runs,
            n_samples=int(counts.support_U.sum()),
            overall=sides.change(*weights),
            balanced=sides.change(mean_of(np.arange(len(counts.names)))),
            macro_f1=None if f1 is None else f1.macro_change(sides.confidence_level),
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
            over_runs=run_changes(counts, members, f1) if counts.n_runs > 1 else {},
            confidence_level=sides.confidence_level,
            n_resamples=settings.n_resamples,
            seed=settings.seed,
            paired=not unpaired,
            correction=method,
            changed=changed,
            n_samples_after=int(counts.after_support_U.sum()) if isinstance(counts, UnpairedCounts) else None,
            only_before=left_out[0],
            only_after=left_out[1],
            added=match.added,
            removed=match.removed,
            renamed=match.renamed,
        )

    def __repr__(self) -> str:
        changes = {"accuracy": self.overall}
        if "hard" in self.groups:
            changes["hard third"] = self.groups["hard"].change
        moves = [f"{name} {change.before:.3f} to {change.after:.3f}" for name, change in changes.items()]
        n_runs = f"{self.n_runs} runs per side, " if self.n_runs > 1 else ""
        return (
            f"<AuditDiff {self.before_name!r} to {self.after_name!r}: {len(self.classes)} classes, {self.n_samples} "
            f"samples, {n_runs}{', '.join(moves)}, {len(self.gained)} gained, {len(self.regressed)} regressed>"
        )

    def __str__(self) -> str:
        from classgap import report

        return report.diff_text(self)

    def _repr_html_(self) -> str:
        from classgap import report

        return report.diff_fragment(self)

    def to_pandas(self) -> Any:
        """Return a DataFrame with one row per class, indexed by class name.

        Raises:
            ImportError: if pandas is not installed.
        """
        rows = [column_values(CLASS_CHANGES, entry) for entry in self.classes]
        return to_frame(column_names(CLASS_CHANGES), rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON file."""
        return {"schema": self.SCHEMA, **to_plain(self)}

    @classmethod
    def from_dict(cls, data: Any) -> AuditDiff:
        """Read the output of :meth:`to_dict`.

        Raises:
            ValueError: if ``data`` is not a comparison of this schema, or its parts are inconsistent.
        """
        if not isinstance(data, dict) or "before_name" not in data:
            raise ValueError("not a saved comparison: the key before_name is missing.")
        if data.get("schema") != cls.SCHEMA:
            raise ValueError(f"schema must be {cls.SCHEMA}, got {data.get('schema')!r}: compare again.")
        diff = from_plain(cls, {key: value for key, value in data.items() if key != "schema"})
        for verdict in ("gained", "regressed"):
            if getattr(diff, verdict) != _names(diff.classes, verdict):
                raise ValueError(f"{verdict} does not match the verdicts in classes; compare again.")
        return diff

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the comparison as JSON, atomically."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AuditDiff:
        """Read a comparison written by :meth:`save`.

        Raises:
            ValueError: if the file does not exist, is damaged or is not a comparison.
        """
        with name_file_in_errors(path):
            return cls.from_dict(read_json(path))

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the comparison as a self-contained HTML page."""
        from classgap import report

        report.write_html(self, path)


def compare(
    before: Source | Sequence[Source],
    after: Source | Sequence[Source],
    *,
    confidence_level: float | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
    key: str | None = None,
    rename: Mapping[str, str] | None = None,
    unpaired: bool = False,
    correction: Correction = "auto",
) -> AuditDiff:
    """Compare two classifiers on the test samples that both have.

    Args:
        before: an `Audit`, the path of a prediction file, run directory or saved audit, or a sequence of these: runs
            that differ in their seed.
        after: the same for the second classifier, with as many runs.
        confidence_level: level of intervals and tests; by default that of the first audit.
        n_resamples: number of resamples of the paired bootstrap.
        seed: seed of the paired bootstrap.
        key: array or column of the prediction files with sample ids, strings or integers, to match samples by.
        rename: class names of the first side → names of the same classes on the second.
        unpaired: treat the two sides as independent samples, for test sets without common samples.
        correction: correction over classes: "holm", "fdr", or "auto", which is "fdr" for more than 50 classes.

    Raises:
        ValueError: if a source cannot be read, or the sides have no classes or test samples in common.

    >>> targets = [0] * 20 + [1] * 20
    >>> before = Audit.from_predictions(predictions=[0] * 30 + [1] * 10, targets=targets, name="before")
    >>> after = Audit.from_predictions(predictions=targets, targets=targets, name="after")
    >>> compare(before, after).gained
    ('1',)
    """
    from classgap.audit.io.sources import ACCURACIES_ONLY, read_audits

    befores, afters = _as_list(before), _as_list(after)
    audits = read_audits([*befores, *afters], settings=replace(ACCURACIES_ONLY, seed=seed), key=key)
    return AuditDiff.from_audits(
        audits[: len(befores)],
        audits[len(befores) :],
        confidence_level=confidence_level,
        n_resamples=n_resamples,
        seed=seed,
        rename=rename,
        unpaired=unpaired,
        correction=correction,
    )


def _count(
    befores: Sequence[Audit], afters: Sequence[Audit], rename: Mapping[str, str] | None, unpaired: bool
) -> tuple[Counts, ClassMatch, tuple[int, int], F1Sides | None]:
    """Count outcomes; also return matched classes, the number of samples left out on each side, and F1 scores."""
    if not unpaired:
        check_runs(befores, afters, hint=UNPAIRED_ADVICE)
        matched = match_samples(befores, afters, rename, hint=UNPAIRED_HINT)
        left_out = matched.only_before, matched.only_after
        return count_pairs(matched), matched.classes, left_out, F1Sides.from_samples(matched)
    check_number_of_runs(befores, afters)
    if len(befores) > 1:
        raise ValueError(f"unpaired compares one run per side, got {len(befores)} runs (--n-runs).")
    match = match_classes(befores[0], afters[0], rename)
    counts = count_unpaired(befores[0], afters[0], match)
    used = int(counts.before_support_U.sum()), int(counts.after_support_U.sum())
    left_out = befores[0].overall.n_samples - used[0], afters[0].overall.n_samples - used[1]
    return counts, match, left_out, F1Sides.from_audits(befores[0], afters[0], match, counts.names)


def _account_for_ranking(counts: Counts, groups: dict[str, GroupChange], gaps: dict[str, Change], seed: int) -> None:
    """Add the change expected by chance and the sign test of thirds that were ranked on the compared samples."""
    for name, chance in chance_changes(counts, np.random.default_rng(seed)).items():
        if name in gaps:
            gaps[name] = replace(gaps[name], expected_by_chance=chance)
        else:
            known = groups[name]
            groups[name] = replace(known, change=replace(known.change, expected_by_chance=chance))
    ranked = {name: group for name, group in groups.items() if group.kind == "thirds"}
    for name, p_value in third_sign_tests(counts, ranked, np.random.default_rng(seed)).items():
        groups[name] = replace(groups[name], sign_p_value=p_value)


def _as_list(side: Source | Sequence[Source]) -> list[Source]:
    return [side] if isinstance(side, Audit | str | os.PathLike) else list(side)


def _names(classes: Sequence[ClassChange], verdict: str) -> tuple[str, ...]:
    found = [entry for entry in classes if entry.verdict == verdict]
    return tuple(entry.name for entry in sorted(found, key=lambda entry: -abs(entry.change or 0.0)))
