"""Summary of a comparison in a few sentences."""

from __future__ import annotations

from collections.abc import Sequence

from classgap.audit.diff import AuditDiff
from classgap.audit.diff_results import Change, ClassChange
from classgap.report.formatting import format_count, format_percent, format_points, pluralize

NAMED = 3


def diff_summary(diff: AuditDiff) -> str:
    """Summarize the facts below the headline: accuracy, the easy-hard gap, and the classes that changed most.

    >>> from classgap.audit import Audit, compare
    >>> targets = [0] * 20 + [1] * 20
    >>> sides = ([0] * 30 + [1] * 10, targets)
    >>> diff = compare(*(Audit.from_predictions(predictions=side, targets=targets) for side in sides))
    >>> print(diff_summary(diff).split(". ")[0])
    Accuracy rose from 75.0 % to 100.0 %
    """
    over = f" (mean of {diff.n_runs} runs)" if diff.n_runs > 1 else ""
    sentences = []
    gap = diff.gap.get("easy_hard")
    if "hard" in diff.groups and "easy" in diff.groups and gap is not None:  # otherwise accuracy is the headline
        sentences.append(f"Accuracy{over} {_accuracy_change(diff.overall)}.")
        if diff.macro_f1 is not None:
            sentences.append(f"Macro F1{over} {_accuracy_change(diff.macro_f1)}.")
        sentences.append(f"The gap between the easy and the hard third {_gap_change(gap)}.")
        own = diff.gap.get("own_easy_hard")
        if own is not None and own.significant and own.change * gap.change < 0:  # other classes are hard
            sentences.append(f"Between each model's own thirds, the gap {_gap_change(own)}.")
    sentences += _largest_changes(diff.classes)
    return " ".join(sentences)


def _accuracy_change(change: Change) -> str:
    before, after = format_percent(change.before), format_percent(change.after)
    if not change.significant:
        return f"did not change significantly ({before} % → {after} %)"
    return f"{'rose' if change.change > 0 else 'fell'} from {before} % to {after} %"


def _gap_change(change: Change) -> str:
    before, after = format_percent(change.before), format_percent(change.after)
    if not change.significant:
        return f"did not change significantly ({before} → {after} points)"
    if round(change.before, 3) > 0 > round(change.after, 3):
        verb = "reversed"
    else:
        verb = "narrowed" if change.change < 0 else "widened"
    return f"{verb} from {before} to {after} points"


def _largest_changes(classes: Sequence[ClassChange]) -> list[str]:
    """The classes with the largest significant gains and losses, in points."""
    found = (("gain", _by_verdict(classes, "gained")), ("loss", _by_verdict(classes, "regressed")))
    plurals = {"gain": "gains", "loss": "losses"}
    return [
        f"Largest significant {what if len(some) == 1 else plurals[what]}: {_name_largest(some)}."
        for what, some in found
        if some
    ]


def class_changes(classes: Sequence[ClassChange]) -> str:
    """Return how many classes changed significantly, with the largest changes."""
    seen = [entry for entry in classes if entry.status == "ok"]
    gained, regressed = _by_verdict(seen, "gained"), _by_verdict(seen, "regressed")
    if not gained and not regressed:
        return "No class changed significantly."
    total = pluralize(len(seen), "class", "classes")
    sentences = [
        f"{format_count(len(some))} of {total} got significantly {direction} ({_name_largest(some)})."
        if some
        else f"No class got significantly {direction}."
        for some, direction in ((gained, "better"), (regressed, "worse"))
    ]
    return " ".join(sentences)


def _by_verdict(classes: Sequence[ClassChange], verdict: str) -> list[ClassChange]:
    return sorted((entry for entry in classes if entry.verdict == verdict), key=lambda entry: -abs(entry.change or 0.0))


def _name_largest(classes: Sequence[ClassChange]) -> str:
    named = ", ".join(f"{entry.name} {format_points(entry.change)}" for entry in classes[:NAMED])
    return f"{named} points"
