"""Headlines and summary sentences of audits and comparisons."""

from __future__ import annotations

import numpy as np

from classgap.audit.audit import Audit
from classgap.audit.diff import AuditDiff
from classgap.audit.figures import ClassResult
from classgap.audit.metrics.gaps import easy_hard
from classgap.audit.results import ConfusionPair
from classgap.report.causes import cause_evidence
from classgap.report.display_names import cause_name
from classgap.report.formatting import (
    format_count,
    format_level,
    format_number,
    format_percent,
    format_percent_interval,
    format_points,
    format_points_interval,
    pluralize,
)
from classgap.report.ordering import sort_by_accuracy
from classgap.report.valid_section import gap_sentence


def headline(audit: Audit) -> str:
    """Return the gap between easy and hard classes in one sentence."""
    gap = audit.gap.easy_hard
    if gap is None:
        return f"Accuracy {format_percent(audit.overall.accuracy)} %."
    own, size = audit.rank_by == "own", format_percent(abs(gap))
    if not gap_is_significant(audit):
        which = "the easy and hard thirds" if own else "classes that were easy and hard for the baseline"
        return f"No significant gap: {which} differ by {size} points."
    easy, hard = (format_percent(audit.groups[name].accuracy) for name in ("easy", "hard"))
    if own:
        return f"Hard third {hard} %, easy third {easy} %: a gap of {size} points."
    course = "below" if gap > 0 else "above"
    return (
        f"Classes that were hard for the baseline have a mean accuracy of {hard} %, {size} points {course} those that "
        f"were easy for it ({easy} %)."
    )


def gap_is_significant(audit: Audit) -> bool:
    """Return whether the interval of the easy-hard gap excludes both 0 and the gap expected by chance.

    If the model ranks its own classes, some gap is expected by chance. If another model ranks them, the expected gap is
    about 0, and the gap may be negative.
    """
    interval = audit.gap.intervals.get("easy_hard")
    expected = audit.gap.expected_by_chance.get("easy_hard", 0.0)
    return interval is not None and (interval.low > max(0.0, expected) or interval.high < min(0.0, expected))


def summarize_audit(audit: Audit) -> list[str]:
    """Return the sentences below the headline, most important first."""
    found = [_overall(audit), _gap(audit), gap_sentence(audit), _worst_class(audit), _confused_pair(audit.pairs)]
    found.append(_spread(audit))
    return [sentence for sentence in found if sentence]


def offset_sentence(audit: Audit) -> str:
    """Return the change that class offsets would make, or an empty string if it is unknown or 0."""
    found = audit.offset_change
    if found is None or not any(round(value, 3) for value in (found.hard, found.easy, found.overall)):
        return ""
    level, interval = format_level(audit.confidence_level), format_points_interval(found.hard_interval)
    return (
        f"Class offsets would change the hard third by {format_points(found.hard)} points ({level} CI {interval}), the "
        f"easy third by {format_points(found.easy)} and overall accuracy by {format_points(found.overall)}."
    )


def cause_sentence(entry: ClassResult) -> str | None:
    """Return the strongest cause of a failing class with its evidence, or ``None`` if the class does not fail."""
    if not entry.diagnosis:
        return None
    cause = entry.diagnosis[0]
    return f"{cause_name(cause.name)}: {cause_evidence(cause)}"


def comparison_name(diff: AuditDiff) -> str:
    """Return the names of both sides, with the number of runs if there are several."""
    runs = "" if diff.n_runs == 1 else f" ({diff.n_runs} runs each)"
    return f"{diff.before_name} → {diff.after_name}{runs}"


def diff_headline(diff: AuditDiff) -> str:
    """Return the change of the hard and easy thirds and the number of classes that changed significantly."""
    return f"{_thirds_change(diff)} {_class_counts(len(diff.gained), len(diff.regressed))}"


def _thirds_change(diff: AuditDiff) -> str:
    if not {"easy", "hard"} <= set(diff.groups):
        change = diff.overall
        prefix = "Accuracy" if change.significant else "No significant change: accuracy"
        return f"{prefix} {_before_after(change.before, change.after)} ({format_points(change.change)} points)."
    hard, easy = diff.groups["hard"].change, diff.groups["easy"].change
    sides = _before_after(hard.before, hard.after)
    easy_text = f"easy third {format_points(easy.change)} points"
    if hard.significant:
        unclear = "" if easy.significant else " (not significant)"
        return f"Hard third {sides} ({format_points(hard.change)} points); {easy_text}{unclear}."
    if easy.significant:
        return f"No significant change in the hard third ({sides}); {easy_text}."
    return f"No significant change in the hard third ({sides}) or the easy third ({format_points(easy.change)} points)."


def _before_after(before: float, after: float) -> str:
    return f"{format_percent(before)} % → {format_percent(after)} %"


def _class_counts(gained: int, regressed: int) -> str:
    if not gained and not regressed:
        return "No class changed significantly."
    if not regressed:
        return f"{pluralize(gained, 'class', 'classes')} got significantly better, none significantly worse."
    if not gained:
        return f"{pluralize(regressed, 'class', 'classes')} got significantly worse, none significantly better."
    return f"{pluralize(gained, 'class', 'classes')} got significantly better, {regressed:,} significantly worse."


def _overall(audit: Audit) -> str:
    overall = audit.overall
    classes = pluralize(overall.seen_classes, "class", "classes")
    return (
        f"Accuracy {format_percent(overall.accuracy)} %, balanced accuracy {format_percent(overall.balanced_accuracy)} "
        f"% on {format_count(overall.n_samples)} samples of {classes}."
    )


def _gap(audit: Audit) -> str:
    gap = audit.gap
    if gap.easy_hard is None or not {"easy", "hard"} <= set(audit.groups):
        return ""
    own = audit.rank_by == "own"
    facts = []
    if "easy_hard" in gap.intervals:
        interval = format_percent_interval(gap.intervals["easy_hard"])
        facts.append(f"{format_level(audit.confidence_level)} CI {interval}")
    if gap.expected_by_chance.get("easy_hard"):
        expected = format_percent(gap.expected_by_chance["easy_hard"])
        facts.append(f"equally good classes would show about {expected} by chance")
    which = "the easy and the hard third" if own else "classes that were easy and hard for the baseline"
    detail = f" ({'; '.join(facts)})" if facts else ""
    text = f"The gap between {which} is {format_percent(gap.easy_hard)} points{detail}."
    return text if own else f"{text} The model's own thirds are {format_percent(_own_gap(audit))} points apart."


def _own_gap(audit: Audit) -> float:
    """Gap between the model's own thirds, which an audit ranked by a baseline does not contain."""
    return float(easy_hard(np.array([entry.accuracy for entry in audit.classes if entry.accuracy is not None])))


def _worst_class(audit: Audit) -> str:
    order = sort_by_accuracy(audit.classes)
    if len(order) < 2:
        return ""
    worst = order[0]
    text = (
        f"The worst class is {worst.name} with {format_percent(worst.accuracy)} % "
        f"({format_level(audit.confidence_level)} CI {format_percent_interval(worst.interval)}, "
        f"{pluralize(worst.support, 'sample', 'samples')})."
    )
    cause = cause_sentence(worst)
    return f"{text} {cause[0].upper()}{cause[1:]}" if cause else text


def _confused_pair(pairs: tuple[ConfusionPair, ...]) -> str:
    if not pairs:
        return ""
    pair = pairs[0]
    first = f"{format_percent(pair.first_rate)} % of {pair.first} ({format_count(pair.first_as_second)})"
    text = f"The most confused pair is {pair.first} and {pair.second}: {first} is predicted as {pair.second}"
    if not pair.second_as_first:
        return f"{text}, never vice versa."
    return f"{text}, {format_percent(pair.second_rate)} % ({format_count(pair.second_as_first)}) vice versa."


def _spread(audit: Audit) -> str:
    found = audit.features.spread_accuracy if audit.features is not None else None
    if found is None or found.p_value >= 1 - audit.confidence_level:
        return ""
    direction = "lower" if found.rho < 0 else "higher"
    return (
        f"Classes with a larger feature spread have {direction} accuracy (rank correlation {format_number(found.rho)})."
    )
