"""Error budgets as text: the errors of a class, or of all classes, by the change that would remove them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from classgap.audit.audit import Audit
from classgap.audit.figures import ClassResult
from classgap.audit.results import BudgetShare, ErrorBudget
from classgap.report.formatting import format_count, format_level, format_percent, format_percent_interval, pluralize
from classgap.report.ordering import failing_classes

CHANGES = ("labels", "decision", "head", "representation")
PARTS = (*CHANGES, "unexplained")

MEANINGS = {
    "labels": "the label is in doubt: check it before you change the model.",
    "decision": "offsets of the class scores, fitted on other samples, remove these errors.",
    "head": "a refitted linear head on the same features removes these errors.",
    "representation": "neither a refitted head nor nearest neighbors on these features remove these errors.",
    "unexplained": "more inputs are needed to examine these errors.",
}
LEFT = "no change removes these errors, but their nearest neighbors have the correct label or were not searched."
VALID = "the prediction is one of the sample's valid labels, or the label is in doubt."
LOWER_BOUND = "at least this many, because the head was refitted on test features only."


@dataclass(frozen=True)
class Segment:
    """One part of a budget.

    Attributes:
        part: one of ``PARTS``.
        count: number of errors.
        fraction: ``count`` divided by all errors of the budget.
        share: the numbers of the change; ``None`` for "unexplained".
        at_least: whether ``count`` is a lower bound.
    """

    part: str
    count: int
    fraction: float
    share: BudgetShare | None
    at_least: bool = False

    @property
    def text(self) -> str:
        """Number of errors."""
        return f"at least {format_count(self.count)}" if self.at_least else format_count(self.count)

    @property
    def added(self) -> int:
        """Number of correct predictions that the change breaks."""
        return 0 if self.share is None else self.share.added + self.share.added_elsewhere

    @property
    def new_errors(self) -> str:
        """Correct predictions that the change breaks: of the class, then of other classes; "" if none."""
        if self.share is None or not self.added:
            return ""
        elsewhere = f" + {format_count(self.share.added_elsewhere)}" if self.share.added_elsewhere else ""
        return f"{format_count(self.share.added)}{elsewhere} new error{'' if self.added == 1 else 's'}"


def segments(budget: ErrorBudget) -> list[Segment]:
    """Return the parts of a budget in order, without changes that could not be tried."""
    found = []
    for change in CHANGES:
        share = getattr(budget, change)
        if share is not None:
            found.append(Segment(change, share.removed, share.fraction, share, change == "head" and budget.lower_bound))
    if budget.unexplained:
        found.append(Segment("unexplained", budget.unexplained, budget.unexplained / budget.errors, None))
    return found


def budget_line(budget: ErrorBudget) -> str:
    """Return the budget in one line.

    >>> from classgap.audit.results import Interval
    >>> share = BudgetShare(3, 0.75, Interval(0.3, 0.95), added=2, added_elsewhere=1)
    >>> budget_line(ErrorBudget(4, None, share, None, None, unexplained=1, lower_bound=False))
    '4 errors: 3 decision (3 new errors) · 1 unexplained'
    """
    parts = []
    for segment in segments(budget):
        new = f" ({pluralize(segment.added, 'new error', 'new errors')})" if segment.added else ""
        parts.append(f"{segment.text} {segment.part}{new}")
    return f"{pluralize(budget.errors, 'error', 'errors')}: {' · '.join(parts)}"


def segment_sentence(segment: Segment, confidence_level: float) -> str:
    """Return the numbers of a part as one phrase, for tooltips and screen readers."""
    interval = segment.share.interval if segment.share is not None else None
    level = "" if interval is None else f", {format_level(confidence_level)} CI {format_percent_interval(interval)}"
    new = f", {segment.new_errors}" if segment.added else ""
    return f"{segment.part} {segment.text} ({format_percent(segment.fraction)} %{level}){new}"


def class_budgets(audit: Audit) -> list[tuple[ClassResult, ErrorBudget]]:
    """Return the failing classes that have a budget, worst first."""
    return [(e, e.error_budget) for e in failing_classes(audit.classes) if e.error_budget and e.error_budget.errors]


def untried_changes(budget: ErrorBudget) -> tuple[str, ...]:
    """Return the changes that could not be tried with the given inputs."""
    return tuple(change for change in CHANGES if getattr(budget, change) is None)


def budget_legend(budgets: Iterable[ErrorBudget], *, valid: bool = False) -> list[tuple[str, str]]:
    """Return the parts that occur in the budgets, each with a sentence that explains it.

    Args:
        budgets: budgets that are shown.
        valid: whether valid labels were given.
    """
    budgets = list(budgets)
    shown = [segment for budget in budgets for segment in segments(budget)]
    untried = [untried_changes(budget) for budget in budgets]
    bounded = any(segment.at_least for segment in shown)
    entries = []
    for part in PARTS:
        if any(segment.part == part for segment in shown):
            meaning = VALID if valid and part == "labels" else MEANINGS[part]
            if part == "unexplained" and not any(untried):
                meaning = LEFT
            if part == "head" and bounded:
                meaning = f"{meaning.removesuffix('.')}; {LOWER_BOUND}"
            entries.append((part, meaning))
    return entries
