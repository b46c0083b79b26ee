"""Audits and comparisons in a notebook: small HTML fragments with inline styles and no scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from classgap.audit.audit import Audit
from classgap.audit.diff import AuditDiff
from classgap.report.diff_charts import largest
from classgap.report.diff_page import comparison_name, key_changes
from classgap.report.diff_summary import diff_summary
from classgap.report.formatting import (
    GROUP_ORDER,
    count,
    format_level,
    hardest_first,
    percent,
    percent_range,
    points,
    points_range,
    third_name,
)
from classgap.report.notices import notice_text
from classgap.report.summary import diff_headline, headline

WORST = 10


def audit_fragment(audit: Audit) -> str:
    """Headline, thirds and worst classes of an audit."""
    interval = f"{format_level(audit.confidence_level)} interval"
    overall = audit.overall
    rows = [
        ("All samples", percent(overall.accuracy), percent_range(overall.interval)),
        ("Mean over classes", percent(overall.balanced_accuracy), percent_range(overall.balanced_interval)),
    ]
    for name in GROUP_ORDER[:3]:
        if name in audit.groups:
            group = audit.groups[name]
            rows.append((third_name(name, audit.rank_by), percent(group.accuracy), percent_range(group.interval)))
    worst = [
        (
            entry.name,
            percent(entry.accuracy),
            percent_range(entry.interval),
            count(entry.support),
            entry.top_confusion.name if entry.top_confusion else "",
        )
        for entry in hardest_first(audit.classes)[:WORST]
    ]
    return _fragment(
        audit.name,
        headline(audit),
        _table(("", "Accuracy, %", interval), rows),
        _table(("Worst classes", "Accuracy, %", interval, "Samples", "Most confused with"), worst),
        *(Markup("<p>{}</p>").format(notice_text(notice)) for notice in audit.notices),
    )


def diff_fragment(diff: AuditDiff) -> str:
    """Headline, key metrics and the classes that changed significantly."""
    interval = f"{format_level(diff.confidence_level)} interval"
    rows = [
        (label, percent(c.before), percent(c.after), points(c.change), points_range(c.interval))
        for label, c, _ in key_changes(diff)
    ]
    changed = [
        (entry.name, percent(entry.before), percent(entry.after), points(entry.change), points_range(entry.interval))
        for verdict in ("regressed", "gained")
        for entry in largest(diff, verdict, WORST)
    ]
    headers = ("Before, %", "After, %", "Change", interval)
    return _fragment(
        comparison_name(diff),
        diff_headline(diff),
        Markup("<p>{}</p>").format(diff_summary(diff)),
        _table(("", *headers), rows),
        *([_table(("Significant changes", *headers), changed)] if changed else []),
    )


def _fragment(name: str, line: str, *parts: Markup) -> str:
    title = Markup("<p>{}</p><p><strong>{}</strong></p>").format(name, line)
    return str(Markup("<div>{}{}</div>").format(title, Markup("").join(parts)))


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """A table whose first column is text; every cell is escaped."""
    head = Markup("").join(Markup("<th>{}</th>").format(header) for header in headers)
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup('<th style="text-align:left">{}</th>').format(row[0])
            + Markup("").join(Markup('<td style="text-align:right">{}</td>').format(cell) for cell in row[1:])
        )
        for row in rows
    )
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body)
