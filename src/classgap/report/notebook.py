"""HTML fragments of audits, comparisons and fixes for notebooks, with inline styles and without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from classgap.audit.audit import Audit
from classgap.audit.diff import AuditDiff
from classgap.remedies.results import FixResult
from classgap.report.diff_summary import diff_summary
from classgap.report.display_names import third_name
from classgap.report.fix_summary import (
    NAMES,
    evidence_sentence,
    fix_headline,
    fix_sentences,
    remedy_cost,
    remedy_mark,
    shown_measures,
)
from classgap.report.formatting import (
    format_count,
    format_level,
    format_percent,
    format_percent_interval,
    format_points,
    format_points_interval,
)
from classgap.report.html.diff_page import key_changes
from classgap.report.notices import notice_text
from classgap.report.ordering import THIRDS, largest_changes, sort_by_accuracy
from classgap.report.summary import comparison_name, diff_headline, headline

WORST = 10


def audit_fragment(audit: Audit) -> str:
    """Return the headline, thirds, worst classes and notices of an audit.

    >>> from classgap.audit import Audit
    >>> audit = Audit.from_predictions(predictions=[0, 0, 1, 0], targets=[0, 0, 1, 1], class_names=["cat", "dog"])
    >>> "Balanced accuracy" in audit_fragment(audit)
    True
    """
    interval = f"{format_level(audit.confidence_level)} CI"
    overall = audit.overall
    rows = [
        ("Accuracy", format_percent(overall.accuracy), format_percent_interval(overall.interval)),
        (
            "Balanced accuracy",
            format_percent(overall.balanced_accuracy),
            format_percent_interval(overall.balanced_interval),
        ),
    ]
    for name in THIRDS:
        if name in audit.groups:
            group = audit.groups[name]
            rows.append(
                (
                    third_name(name, audit.rank_by),
                    format_percent(group.accuracy),
                    format_percent_interval(group.interval),
                )
            )
    worst = [
        (
            entry.name,
            format_percent(entry.accuracy),
            format_percent_interval(entry.interval),
            format_count(entry.support),
            entry.top_confusion.name if entry.top_confusion else "",
        )
        for entry in sort_by_accuracy(audit.classes)[:WORST]
    ]
    return _fragment(
        audit.name,
        headline(audit),
        _table(("", "Accuracy, %", interval), rows),
        _table(("Worst classes", "Accuracy, %", interval, "Support", "Most confused with"), worst),
        *(Markup("<p>{}</p>").format(notice_text(notice)) for notice in audit.notices),
    )


def diff_fragment(diff: AuditDiff) -> str:
    """Return the headline, key metrics and significant changes of a comparison.

    >>> from classgap.audit import Audit, compare
    >>> targets = [0] * 20 + [1] * 20
    >>> sides = ([0] * 30 + [1] * 10, targets)
    >>> diff = compare(*(Audit.from_predictions(predictions=side, targets=targets) for side in sides))
    >>> "<table" in diff_fragment(diff)
    True
    """
    interval = f"{format_level(diff.confidence_level)} CI"
    rows = [
        (
            label,
            format_percent(c.before),
            format_percent(c.after),
            format_points(c.change),
            format_points_interval(c.interval),
        )
        for label, c, _ in key_changes(diff)
    ]
    changed = [
        (
            entry.name,
            format_percent(entry.before),
            format_percent(entry.after),
            format_points(entry.change),
            format_points_interval(entry.interval),
        )
        for verdict in ("regressed", "gained")
        for entry in largest_changes(diff, verdict, WORST)
    ]
    headers = ("Before, %", "After, %", "Change", interval)
    return _fragment(
        comparison_name(diff),
        diff_headline(diff),
        Markup("<p>{}</p>").format(diff_summary(diff)),
        _table(("", *headers), rows),
        *([_table(("Significant changes", *headers), changed)] if changed else []),
    )


def fix_fragment(result: FixResult) -> str:
    """Return the headline, remedies and sentences of a fix.

    >>> from classgap.remedies import FixResult
    >>> limits = {"easy": 0.003, "medium": 0.01, "overall": 0.001}
    >>> result = FixResult("photos", "hard", limits, 600, 0, True, (), None, None, None, 0.95, (), None, None)
    >>> "photos" in fix_fragment(result)
    True
    """
    measures = shown_measures(result)
    rows = [
        (
            remedy.name,
            *(format_points(remedy.change.get(name)) for name in measures),
            format_points_interval(remedy.interval.get("hard")),
            remedy_cost(remedy),
            remedy_mark(result, remedy),
        )
        for remedy in result.remedies
    ]
    interval = f"{NAMES['hard']}, {format_level(result.confidence_level)} CI"
    headers = ("Change in points", *(NAMES[name] for name in measures), interval, "per prediction", "")
    return _fragment(
        result.model_name,
        fix_headline(result),
        Markup("<p>{}</p>").format(evidence_sentence(result)),
        *([_table(headers, rows)] if rows else []),
        *(Markup("<p>{}</p>").format(sentence) for sentence in fix_sentences(result)),
    )


def _fragment(name: str, line: str, *parts: Markup) -> str:
    title = Markup("<p>{}</p><p><strong>{}</strong></p>").format(name, line)
    return str(Markup("<div>{}{}</div>").format(title, Markup("").join(parts)))


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """Return a table whose first column is text; every cell is escaped."""
    head = Markup("").join(Markup("<th>{}</th>").format(header) for header in headers)
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup('<th style="text-align:left">{}</th>').format(row[0])
            + Markup("").join(Markup('<td style="text-align:right">{}</td>').format(cell) for cell in row[1:])
        )
        for row in rows
    )
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body)
