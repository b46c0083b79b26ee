"""Error budgets on the page, in a class's drawer and in the terminal."""

import itertools
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from html_reader import Page
from synthetic_audits import make_budget, with_budgets

from classgap.audit import Audit
from classgap.report import audit_text, render_html
from classgap.report.budget import CHANGES, budget_legend, budget_line, class_budgets, segments, untried_changes
from classgap.report.charts.budget_chart import Bar, budget_chart, pattern_definitions
from classgap.report.details import audit_details


def parts_of(svg: str) -> list[tuple[str, float, float]]:
    """Fill, start and width in percent of each part of a chart."""
    found = ElementTree.fromstring(svg).iter("rect")
    return [
        (rect.attrib["fill"], float(rect.attrib["x"][:-1]), float(rect.attrib["width"][:-1]))
        for rect in found
        if rect.attrib["class"].startswith("part")
    ]


def test_parts_add_up_to_the_errors():
    budget = make_budget((12, 5, 0, 6), unexplained=2)
    assert sum(segment.count for segment in segments(budget)) == budget.errors == 25
    assert sum(segment.fraction for segment in segments(budget)) == pytest.approx(1)


def test_line_names_every_change_that_was_tried():
    line = budget_line(make_budget((12, 5, 0, 6), added=(0, 2, 0, 0), elsewhere=(0, 1, 0, 0)))
    assert line == "23 errors: 12 labels · 5 decision (3 new errors) · 0 head · 6 representation"
    some = make_budget((None, 5, None, None), unexplained=1)
    assert budget_line(some) == "6 errors: 5 decision · 1 unexplained"
    assert untried_changes(some) == ("labels", "head", "representation")


def test_lower_bound_is_named():
    bound = make_budget((1, 2, 3, 4), lower_bound=True)
    assert "at least 3 head" in budget_line(bound)
    assert "at least" in dict(budget_legend([bound]))["head"]
    assert "≥ 3" in budget_chart([Bar("all", bound)], 0.95)
    exact = replace(bound, lower_bound=False)
    assert "at least" not in budget_line(exact) + dict(budget_legend([exact]))["head"]


def test_errors_are_not_blamed_on_missing_inputs_if_there_are_none():
    some, all_tried = make_budget((None, 5, None, None), unexplained=1), make_budget((1, 2, 3, 4), unexplained=1)
    assert "more inputs" in dict(budget_legend([some]))["unexplained"]
    assert "more inputs" not in dict(budget_legend([all_tried]))["unexplained"]


def test_bar_is_filled_without_gaps():
    budget = make_budget((12, 5, 0, 6), unexplained=2)
    parts = parts_of(budget_chart([Bar("all", budget)], 0.95))
    assert [fill for fill, _, _ in parts] == [
        f"url(#fill-{part})" for part in ("labels", "decision", "representation", "unexplained")
    ]
    assert parts[0][1] == 0
    for (_, start, width), (_, following, _) in itertools.pairwise(parts):
        assert start + width == pytest.approx(following, abs=0.02)
    assert parts[-1][1] + parts[-1][2] == pytest.approx(100, abs=0.02)


def test_every_part_has_its_own_pattern():
    patterns = list(ElementTree.fromstring(pattern_definitions()).iter("pattern"))
    shapes = {tuple((mark.tag, mark.attrib.get("d"), mark.attrib["class"]) for mark in each) for each in patterns}
    assert {each.attrib["id"] for each in patterns} == {f"fill-{part}" for part in (*CHANGES, "unexplained")}
    assert len(shapes) == len(patterns)


def test_added_errors_are_beside_the_bar():
    budget = make_budget((0, 5, 5, 0), added=(0, 2, 0, 0), elsewhere=(0, 1, 0, 0))
    texts = [text.text for text in ElementTree.fromstring(budget_chart([Bar("a", budget)], 0.95)).iter("text")]
    assert "decision: 2 + 1 new errors" in texts
    assert not any("head:" in (text or "") for text in texts)


def test_page_has_a_bar_per_failing_class(budget_audit: Audit):
    page = Page(render_html(budget_audit))
    failing = class_budgets(budget_audit)
    assert failing
    bars = [attributes for attributes in page.of("g") if attributes.get("class", "").startswith("stack")]
    assert [bar.get("data-class") for bar in bars] == [None, *(str(entry.index) for entry, _ in failing)]
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    fills = {attributes["fill"] for _, attributes in page.elements if "fill" in attributes}
    assert {fill.removeprefix("url(#").removesuffix(")") for fill in fills} <= ids
    texts = [text.replace("\N{NO-BREAK SPACE}", " ") for _, text in page.texts]
    for _, budget in failing:
        assert f"{budget.head.removed} ({100 * budget.head.fraction:.1f} %)" in texts


def test_page_names_the_classes_it_leaves_out(many_audit: Audit):
    many = with_budgets(many_audit)
    more = len(class_budgets(many)) - 15
    assert more > 0
    texts = [text for _, text in Page(render_html(many)).texts]
    assert any(text.startswith(f"And {more} more failing classes") for text in texts)


def test_page_names_changes_that_were_not_tried(labels_audit: Audit):
    budget = make_budget((None, 5, None, None), unexplained=20)
    texts = [text for _, text in Page(render_html(replace(labels_audit, error_budget=budget))).texts]
    assert any("Not tried" in text and "labels, head, representation" in text for text in texts)
    assert any("no error budget" in text for _, text in Page(render_html(labels_audit)).texts)


def test_drawer_has_the_numbers_of_the_budget(budget_audit: Audit):
    data = audit_details(budget_audit)
    for entry in budget_audit.classes:
        budget = entry.error_budget
        if budget is None:
            assert str(entry.index) not in data["budgets"]
            continue
        errors, unexplained, bound, *shares = data["budgets"][str(entry.index)]
        assert (errors, unexplained, bound) == (budget.errors, 0, 0)
        assert [share[0] for share in shares] == [getattr(budget, change).removed for change in CHANGES]
        assert [share[-2:] for share in shares] == [
            [getattr(budget, change).added, getattr(budget, change).added_elsewhere] for change in CHANGES
        ]
        total, first = data["doubted"][str(entry.index)]
        assert total == len(entry.doubted_samples)
        assert first == list(entry.doubted_samples[:30])


def test_drawers_of_many_classes_list_fewer_samples(many_audit: Audit):
    numbers = tuple(range(1000, 1050))
    classes = tuple(replace(entry, confident_errors=numbers, index=i) for i, entry in enumerate(many_audit.classes * 5))
    for some, limit in ((classes[:100], 30), (classes, 6)):
        found = audit_details(replace(many_audit, classes=some))["confident"]
        assert len(found) == len(some)
        assert all(entry == [50, list(numbers[:limit])] for entry in found.values())


def test_terminal_has_a_line_per_failing_class(budget_audit: Audit):
    text = re.sub(r"\s+", " ", audit_text(budget_audit).split("Why classes fail")[1])
    for _, budget in class_budgets(budget_audit)[:5]:
        assert budget_line(budget) in text
    assert f"All classes, {budget_line(budget_audit.error_budget)}" in text
