"""The outcome of a comparison in a few sentences."""

from __future__ import annotations

from collections.abc import Sequence

from classgap.audit.diff import AuditDiff
from classgap.audit.diff_results import Change, ClassChange
from classgap.report.formatting import percent, points

NAMED = 3


def diff_summary(diff: AuditDiff) -> str:
    """Accuracy, hard and easy thirds, their gap, and the classes that changed significantly."""
    over = f" (mean of {diff.runs_per_side} runs)" if diff.runs_per_side > 1 else ""
    sentences = [f"Accuracy{over} {_move(diff.overall)}."]
    if "hard" in diff.groups and "easy" in diff.groups and "easy_hard" in diff.gap:
        hard, easy = diff.groups["hard"].change, diff.groups["easy"].change
        gap = diff.gap["easy_hard"]
        sentences.append(f"Hard third {_move(hard)}; easy third {_move(easy)}.")
        sentences.append(f"The gap between them: {percent(gap.before)} → {percent(gap.after)} points ({_change(gap)}).")
    sentences.append(_classes(diff.classes))
    return " ".join(sentences)


def _move(change: Change) -> str:
    return f"{percent(change.before)} % → {percent(change.after)} % ({_change(change)})"


def _change(change: Change) -> str:
    return f"{points(change.change)} points{'' if change.significant else ', not significant'}"


def _classes(classes: Sequence[ClassChange]) -> str:
    known = [entry for entry in classes if entry.status == "ok"]
    gained, regressed = _ranked(known, "gained"), _ranked(known, "regressed")
    if not gained and not regressed:
        return f"None of the {len(known)} classes changed significantly."
    parts = f"{_list(gained, 'gained')} and {_list(regressed, 'regressed')}"
    return f"Of {len(known)} classes, {parts} significantly."


def _ranked(classes: Sequence[ClassChange], verdict: str) -> list[ClassChange]:
    return sorted((entry for entry in classes if entry.verdict == verdict), key=lambda entry: -abs(entry.change or 0.0))


def _list(classes: Sequence[ClassChange], verb: str) -> str:
    if not classes:
        return f"none {verb}"
    named = ", ".join(f"{entry.name} {points(entry.change)}" for entry in classes[:NAMED])
    more = " …" if len(classes) > NAMED else ""
    return f"{len(classes)} {verb} ({named}{more})"
