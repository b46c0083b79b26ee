"""The order of classes and groups in charts and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from classgap.audit.diff import AuditDiff
from classgap.audit.diff_results import ClassChange, GroupChange
from classgap.audit.figures import ClassResult
from classgap.audit.results import GroupResult

THIRDS = ("easy", "medium", "hard")
GROUP_ORDER = (*THIRDS, "head", "torso", "tail")

Group = TypeVar("Group", GroupResult, GroupChange)


def order_groups(groups: Mapping[str, Group]) -> list[Group]:
    """Sort groups: thirds, head to tail, then user-defined groups in the given order.

    If only one of head, torso and tail has test samples, it repeats all classes and is left out.
    """
    alone = sum(bool(group.members) for group in groups.values() if group.kind == "frequency") == 1
    known = [
        groups[name] for name in GROUP_ORDER if name in groups and not (alone and groups[name].kind == "frequency")
    ]
    return known + [group for name, group in groups.items() if name not in GROUP_ORDER]


def sort_by_accuracy(classes: Iterable[ClassResult]) -> list[ClassResult]:
    """Sort the classes with test samples by accuracy, lowest first; ties by class index."""
    seen = [entry for entry in classes if entry.accuracy is not None]
    return sorted(seen, key=lambda entry: (entry.accuracy or 0.0, entry.index))


def failing_classes(classes: Iterable[ClassResult]) -> list[ClassResult]:
    """Return the classes with a diagnosis: significantly failing ones first, each part by accuracy."""
    diagnosed = [entry for entry in sort_by_accuracy(classes) if entry.diagnosis]
    return sorted(diagnosed, key=lambda entry: entry.diagnosis[0].name == "too-few-test-samples")


def largest_changes(diff: AuditDiff, verdict: str, limit: int) -> list[ClassChange]:
    """Return up to ``limit`` classes that ``verdict`` ("gained" or "regressed") applies to, largest change first."""
    by_name = {entry.name: entry for entry in diff.classes}
    return [by_name[name] for name in (diff.gained if verdict == "gained" else diff.regressed)[:limit]]


def insignificant_changes(diff: AuditDiff, up: bool, limit: int) -> list[ClassChange]:
    """Return up to ``limit`` classes whose gain (``up``) or loss is not significant, largest change first."""
    sign = 1 if up else -1
    moved = [entry for entry in diff.classes if entry.verdict == "unclear" and sign * (entry.change or 0.0) > 0]
    return sorted(moved, key=lambda entry: (-sign * (entry.change or 0.0), entry.index))[:limit]
