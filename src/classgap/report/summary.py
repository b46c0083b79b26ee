"""An audit or a comparison in plain words: a headline and a few sentences, made of its figures alone."""

from __future__ import annotations

import numpy as np

from classgap.audit.audit import Audit
from classgap.audit.diff import AuditDiff
from classgap.audit.figures import ClassResult
from classgap.audit.metrics.gaps import easy_hard
from classgap.audit.results import ConfusionPair
from classgap.report.causes import cause_evidence
from classgap.report.formatting import (
    cause_name,
    count,
    format_level,
    hardest_first,
    number,
    percent,
    percent_range,
    plural,
)


def headline(audit: Audit) -> str:
    """The one thing to know."""
    gap = audit.gap.easy_hard
    if gap is None:
        return f"{percent(audit.overall.accuracy)} % of the samples are predicted right."
    own, size = audit.rank_by == "own", percent(abs(gap))
    if not gap_is_clear(audit):
        which = "the easy and hard thirds" if own else "the classes that were easy and hard for the baseline"
        return f"No clear gap: {which} differ by {size} points, which chance can explain."
    if own:
        return f"The hardest third of the classes is {size} points behind the easiest."
    course = "behind" if gap > 0 else "ahead of"
    return f"The classes that were hard for the baseline are {size} points {course} those that were easy for it."


def gap_is_clear(audit: Audit) -> bool:
    """Whether the whole interval of the gap between thirds lies beyond what equally good classes would show.

    By the model's own ranking that is a gap above 0. By another model's ranking it is 0, and a gap may be negative.
    """
    interval = audit.gap.intervals.get("easy_hard")
    expected_by_chance = audit.gap.expected_by_chance.get("easy_hard", 0.0)
    return interval is not None and (
        interval.low > max(0.0, expected_by_chance) or interval.high < min(0.0, expected_by_chance)
    )


def sentences(audit: Audit) -> list[str]:
    """What is behind the headline, most important first."""
    found = [_overall(audit), _thirds(audit), _worst(audit)]
    if audit.pairs:
        found.append(pair_sentence(audit.pairs[0]))
    found.append(_spread(audit))
    return [sentence for sentence in found if sentence]


def pair_sentence(pair: ConfusionPair) -> str:
    """Two classes that are taken for each other."""
    first = f"{percent(pair.first_rate)} % of {pair.first} ({count(pair.first_as_second)})"
    text = f"The most confused pair is {pair.first} and {pair.second}: {first} are taken for {pair.second}"
    if not pair.second_as_first:
        return text + ", never the other way round."
    return text + f", and {percent(pair.second_rate)} % ({count(pair.second_as_first)}) the other way round."


def cause_line(entry: ClassResult) -> str | None:
    """The strongest cause of a failing class with its figure, or nothing for a class that does not fail."""
    if not entry.diagnosis:
        return None
    cause = entry.diagnosis[0]
    return f"{cause_name(cause.name)}: {cause_evidence(cause)}"


def _overall(audit: Audit) -> str:
    overall = audit.overall
    text = (
        f"{percent(overall.accuracy)} % of {count(overall.n_samples)} samples in "
        f"{plural(overall.seen_classes, 'class', 'classes')} are predicted right"
    )
    if percent(overall.balanced_accuracy) != percent(overall.accuracy):
        text += f"; the mean over classes is {percent(overall.balanced_accuracy)} %"
    return text + "."


def _thirds(audit: Audit) -> str:
    gap = audit.gap
    if gap.easy_hard is None or not {"easy", "hard"} <= set(audit.groups):
        return ""
    easy, hard = percent(audit.groups["easy"].accuracy), percent(audit.groups["hard"].accuracy)
    if audit.rank_by == "own":
        text = f"The easiest third of the classes reaches {easy} %, the hardest {hard} %"
    else:
        text = f"The classes that were easy for the baseline reach {easy} % here, those that were hard for it {hard} %"
    text += f": a gap of {percent(gap.easy_hard)} points"
    if "easy_hard" in gap.intervals:
        text += f" ({format_level(audit.confidence_level)} interval {percent_range(gap.intervals['easy_hard'])})"
    if gap.expected_by_chance.get("easy_hard"):
        text += (
            f". With equally good classes, chance alone would show about {percent(gap.expected_by_chance['easy_hard'])}"
        )
    if audit.rank_by != "own":
        text += f". By this model's own ranking its thirds are {percent(_own_gap(audit))} points apart"
    return text + "."


def _own_gap(audit: Audit) -> float:
    """The gap between the model's own thirds, which an audit by another ranking does not hold itself."""
    return float(easy_hard(np.array([entry.accuracy for entry in audit.classes if entry.accuracy is not None])))


def _worst(audit: Audit) -> str:
    order = hardest_first(audit.classes)
    if len(order) < 2:
        return ""
    worst = order[0]
    text = (
        f"The worst class is {worst.name} with {percent(worst.accuracy)} % ({percent_range(worst.interval)}, "
        f"{plural(worst.support, 'sample', 'samples')})"
    )
    line = cause_line(worst)
    return f"{text}. {line[0].upper()}{line[1:]}" if line else text + "."


def _spread(audit: Audit) -> str:
    found = audit.features.spread_accuracy if audit.features is not None else None
    if found is None or found.p_value >= 1 - audit.confidence_level:
        return ""
    how = "wider" if found.rho < 0 else "narrower"
    return f"Classes whose features are spread {how} have lower accuracy (rank correlation {number(found.rho)})."


def diff_headline(diff: AuditDiff) -> str:
    """The one thing to know of a comparison."""
    who = f"{plural(len(diff.gained), 'class', 'classes')} gained for certain, {len(diff.regressed)} paid"
    gap = diff.gap.get("easy_hard")
    if gap is None or not gap.significant:
        return f"No clear change of the gap: {who}."
    if round(gap.before, 3) > 0 > round(gap.after, 3):  # what was hard is ahead now: no gap narrows by more than it was
        course = f"turned round, from {percent(gap.before)} to {percent(gap.after)} points"
    else:
        course = f"{'narrowed' if gap.change < 0 else 'widened'} by {percent(abs(gap.change))} points"
    own = diff.gap.get("own_easy_hard")
    if own is not None and own.significant and own.change * gap.change < 0:  # other classes are hard now
        course += f", but between each side's own thirds it {'narrowed' if own.change < 0 else 'widened'} by "
        course += f"{percent(abs(own.change))}"
    return f"The gap between easy and hard classes {course}: {who}."
