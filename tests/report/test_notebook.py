"""Audits in notebooks and ``print``."""

import re

from synthetic_audits import SCRIPT

from classgap.audit import Audit, AuditDiff
from classgap.report import audit_fragment
from classgap.report.formatting import format_percent
from classgap.report.ordering import sort_by_accuracy
from classgap.report.summary import diff_headline, headline


def test_a_fragment_shows_headline_thirds_and_worst_classes(audit: Audit):
    html = audit._repr_html_()
    assert headline(audit) in html
    for name in ("easy", "medium", "hard"):
        assert format_percent(audit.groups[name].accuracy) in html
    worst = sort_by_accuracy(audit.classes)[0]
    assert f">{format_percent(worst.accuracy)}<" in html


def test_names_are_escaped_and_nothing_is_loaded(audit: Audit, diff: AuditDiff):
    for html in (audit._repr_html_(), diff._repr_html_()):
        assert SCRIPT not in html
        assert not re.search(r"<(script|link|img|iframe|style)|http|src=|on\w+=", html)
    assert "&lt;script&gt;" in audit._repr_html_()
    assert "before &lt;b&gt;" in diff._repr_html_()


def test_a_fragment_is_well_formed_and_small(many_audit: Audit, labels_audit: Audit):
    for audit in (many_audit, labels_audit):
        html = audit_fragment(audit)
        assert html.count("<table>") == 2
        for tag in ("div", "p", "table", "thead", "tbody", "tr", "th", "td"):
            assert len(re.findall(rf"<{tag}[ >]", html)) == html.count(f"</{tag}>")
        assert len(html) < 20_000


def test_a_comparison_shows_its_headline_and_changes(diff: AuditDiff):
    html = diff._repr_html_()
    assert diff_headline(diff) in html
    assert format_percent(diff.overall.after) in html


def test_printing_shows_the_terminal_page(audit: Audit, diff: AuditDiff, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    for shown, title in ((str(audit), "classgap audit: before <b>"), (str(diff), "classgap compare: ")):
        assert title in shown.splitlines()[0]
        assert "\x1b" not in shown
        assert all(line == line.rstrip() for line in shown.splitlines())
    assert "Worst classes" in str(audit)
    assert "\n" not in repr(audit)
    assert "\n" not in repr(diff)
