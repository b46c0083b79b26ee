"""Terminal output, HTML page and notebook fragment of a fix."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from html_reader import Page

import classgap as cg
from browser import Browser
from classgap.audit.results import Interval
from classgap.remedies.results import Excluded, FixResult, Proof
from classgap.report import fix_fragment, fix_text, render_html
from classgap.report.charts.fix_chart import remedy_scatter
from classgap.report.fix_summary import (
    excluded_sentence,
    fix_headline,
    fix_sentences,
    remedy_cost,
    remedy_mark,
    rule_sentence,
)
from classgap.report.formatting import format_percent, format_points, format_points_interval
from classgap.report.terminal.scatter import scatter

FIXES = ["tested_fix", "nested_fix", "no_fix"]


@pytest.fixture(params=FIXES)
def result(request: pytest.FixtureRequest) -> FixResult:
    return request.getfixturevalue(request.param)


def test_fixtures_show_the_three_outcomes(tested_fix: FixResult, nested_fix: FixResult, no_fix: FixResult):
    assert tested_fix.chosen is not None
    assert tested_fix.diff is not None
    assert nested_fix.chosen is not None
    assert nested_fix.diff is None
    assert no_fix.chosen is None
    assert no_fix.remedies


def test_headline_has_the_proof(tested_fix: FixResult):
    line, proof = fix_headline(tested_fix), tested_fix.proof
    assert proof is not None
    assert line.startswith(f"{tested_fix.chosen}:")
    for value in (format_percent(proof["hard"].before), format_percent(proof["hard"].after)):
        assert f"{value} %" in line
    assert f"easy third {format_points(proof['easy'].change)}" in line
    assert f"overall {format_points(proof['overall'].change)}" in line
    assert format_points(proof["hard"].interval.low) in line
    assert format_points(proof["hard"].interval.low) not in fix_headline(tested_fix, interval=False)


def test_headline_without_a_choice(no_fix: FixResult):
    assert fix_headline(no_fix).startswith("Nothing helped")
    assert "no remedy applies" in fix_headline(replace(no_fix, remedies=()))


@pytest.mark.parametrize(
    ("low", "high", "fact"), [(0.01, 0.2, ""), (-0.01, 0.2, "cannot confirm"), (-0.2, -0.1, "not")]
)
def test_proof_that_includes_zero_confirms_nothing(low: float, high: float, fact: str, tested_fix: FixResult):
    assert tested_fix.proof is not None
    hard = replace(tested_fix.proof["hard"], interval=Interval(low, high))
    changed = replace(tested_fix, proof={**tested_fix.proof, "hard": hard}, diff=None, excluded=None)
    text = " ".join(fix_sentences(changed))
    assert fact in text
    assert bool(text) == bool(fact)


@pytest.mark.parametrize(("high", "is_named"), [(-0.02, True), (-0.002, False)])
def test_losses_beyond_a_limit_are_named(high: float, is_named: bool, tested_fix: FixResult):
    assert tested_fix.proof is not None
    lost = replace(tested_fix.proof["easy"], change=-0.221, interval=Interval(-0.3, high))
    changed = replace(tested_fix, proof={**tested_fix.proof, "easy": lost}, limits={**tested_fix.limits, "easy": 0.01})
    text = " ".join(fix_sentences(changed))
    assert ("easy third lost 22.1 points (allowed: 1.0)" in text) == is_named


def test_a_cost_of_zero_has_no_sign(tested_fix: FixResult):
    assert tested_fix.proof is not None
    cost = Proof(-0.9, -0.0, 0.9, Interval(0.8, 1.0))
    text = fix_headline(replace(tested_fix, goal="cost", proof={**tested_fix.proof, "cost": cost}))
    assert "0.900 → 0.00 (" in text


@pytest.mark.parametrize("goal", ["hard", "worst"])
def test_terminal_has_intervals_if_no_remedy_costs_passes(goal: str, tested_fix: FixResult):
    single = tuple(replace(each, name=f"remedy {i}", passes=1.0) for i, each in enumerate(tested_fix.remedies))
    text = fix_text(replace(tested_fix, goal=goal, remedies=single))
    assert max(map(len, text.splitlines())) <= 80
    assert f"{goal}, 95 % CI" in text
    assert "Every remedy needs one pass per prediction." in " ".join(text.split())
    for remedy in single:
        (line,) = [line for line in text.splitlines() if f" {remedy.name} " in line]
        assert format_points_interval(remedy.interval[goal]) in line


def test_terminal_lists_each_remedy(result: FixResult):
    text = fix_text(result)
    assert max(map(len, text.splitlines())) <= 80
    for remedy in result.remedies:
        (line,) = [
            line
            for line in text.splitlines()
            if f" {remedy.name} " in line and format_points(remedy.change["hard"]) in line
        ]
        assert (remedy_cost(remedy) in line) == any(each.passes > 1 for each in result.remedies)
        assert format_points(remedy.change["easy"]) in line
        assert format_points(remedy.change["hard"]) in line
        assert line.startswith("●") == remedy.chosen
    source = "nested" if result.nested else f"{result.n_test:,} test samples"
    assert source in " ".join(text.split())


def test_terminal_has_a_hint_only_for_an_excluded_remedy(no_fix: FixResult):
    limits = {"easy": 0.02, "medium": 0.03}
    excluded = Excluded("class-offsets", {"strength": 0.5}, {"hard": 0.0421, "easy": -0.02}, limits)
    hinted = replace(no_fix, excluded=excluded)
    text = " ".join(fix_text(hinted).split())
    assert excluded_sentence(hinted) in text
    for name in ("easy", "medium", "overall"):
        assert (f"--max-{name}-loss" in text) == (name in limits)
    assert "4.2" not in excluded_sentence(hinted)  # no gain is shown from samples that chose it
    assert "--max" not in fix_text(replace(no_fix, excluded=None))


def test_str_and_fragment(result: FixResult):
    assert str(result) == fix_text(result)
    fragment = fix_fragment(result)
    assert fragment == result._repr_html_()
    assert "<b>" not in fragment
    assert "<script" not in fragment
    assert all(remedy.name in fragment for remedy in result.remedies)


def test_goal_is_in_rule_and_headline(tested_fix: FixResult):
    for goal, name in (("worst", "worst tenth"), ("balanced", "balanced accuracy"), ("hard", "hard third")):
        changed = replace(tested_fix, goal=goal)
        assert name in rule_sentence(changed)
        assert name in fix_headline(changed)
    assert "easy third 0.3" in rule_sentence(tested_fix)
    assert "highest balanced accuracy" not in rule_sentence(tested_fix)
    unlimited = rule_sentence(replace(tested_fix, limits={"easy": 1.0, "medium": 0.02, "overall": 0.001}))
    assert "highest balanced accuracy" in unlimited  # the rule of choose() without a limit of the easy third
    assert "medium third 2.0, overall 0.1. No limit: easy third." in unlimited


def test_headline_names_significant_losses(tested_fix: FixResult):
    assert tested_fix.proof is not None
    assert tested_fix.diff is not None
    classes = [replace(each, verdict="unclear") for each in tested_fix.diff.classes]
    calm = replace(tested_fix, diff=replace(tested_fix.diff, classes=tuple(classes)))
    assert calm.proof is not None
    for high, is_named in ((-0.01, True), (0.01, False)):
        medium = replace(calm.proof["medium"], change=-0.098, interval=Interval(-0.2, high))
        line = fix_headline(replace(calm, proof={**calm.proof, "medium": medium}))
        assert ("medium third −9.8" in line) == is_named
        assert "class:" not in line
    classes[:2] = [
        replace(each, verdict="regressed", change=loss) for each, loss in zip(classes[:2], (-0.1, -0.367), strict=True)
    ]
    line = fix_headline(replace(calm, diff=replace(tested_fix.diff, classes=tuple(classes))))
    assert f"largest significant loss of a class: {classes[1].name} −36.7 points" in line


def test_marks_name_the_exceeded_limits(tested_fix: FixResult):
    remedy = replace(tested_fix.remedies[0], chosen=False)
    for easy, overall, mark in ((0, 0, ""), (-0.1, 0, "easy"), (-0.1, -0.1, "easy and overall")):
        estimate = {**remedy.estimate, "easy": easy, "medium": 0, "overall": overall}
        changed = replace(remedy, estimate=estimate, within_limits=not mark)
        shown = remedy_mark(tested_fix, changed)
        assert mark in shown
        assert bool(mark) == bool(shown)


def test_cost_at_prediction_time(tested_fix: FixResult):
    remedy = tested_fix.remedies[0]
    costs = {
        ("class-offsets", 1.0): "1 pass",
        ("ensemble", 2.0): "2 models",
        ("ensemble+class-offsets", 3.0): "3 models",
        ("ten-views", 10.0): "10 views",
        ("mirror+class-offsets", 2.0): "2 views",
        ("ensemble+ten-views", 40.0): "40 passes",
    }
    for (name, passes), text in costs.items():
        assert remedy_cost(replace(remedy, name=name, passes=passes)) == text


def test_picture_puts_letters_where_the_values_are():
    lines = scatter([(-0.02, 0.1, "a"), (0.02, 0.0, "b"), (0.02, -0.05, "c")], "easy", "hard", -0.003, 60)
    at = {
        letter: (row, line.index(letter)) for row, line in enumerate(lines[1:-1]) for letter in "abc" if letter in line
    }
    assert at["a"][0] < at["b"][0] < at["c"][0]
    assert at["a"][1] < at["b"][1] == at["c"][1]
    assert all(len(line) <= 60 for line in lines[:-1])
    zero = next(line for line in lines if line.lstrip().startswith("0.0"))
    assert "┼" in zero
    assert at["a"][1] < zero.index("┼") < at["b"][1]  # the limit is the first line from the left
    assert "−2.0" in lines[-1]
    assert "+2.0" in lines[-1]


def test_page_has_every_remedy_and_the_proof(result: FixResult):
    texts = [text for _, text in Page(render_html(result)).texts]
    joined = " ".join(texts)
    for remedy in result.remedies:
        assert format_points(remedy.change["hard"]) in texts
        assert format_points(remedy.change["easy"]) in texts
    for name in ("easy", "hard", "overall") if result.proof else ():
        assert format_percent(result.proof[name].after) in texts  # type: ignore[index]
    assert ("Proof" in texts) == (result.proof is not None)
    assert ("Classes" in texts) == (result.diff is not None)
    assert fix_headline(result, interval=False).replace("\N{NO-BREAK SPACE}", " ") in joined.replace(
        "\N{NO-BREAK SPACE}", " "
    )


def test_chart_tells_marks_apart_without_color(tested_fix: FixResult):
    exceeding = sum("exceeds" in remedy_mark(tested_fix, remedy) for remedy in tested_fix.remedies)
    drawings = str(remedy_scatter(tested_fix)).split("</svg>")[:-1]  # for wide and for narrow windows
    assert len(drawings) == 2
    for drawn in drawings:
        assert drawn.count('class="ring"') == 1
        assert drawn.count('class="cross"') == exceeding
        assert drawn.count('class="limit"') == 1
    loose = replace(tested_fix, limits={"easy": 1.0, "overall": 0.001})
    assert 'class="limit"' not in str(remedy_scatter(loose))
    assert ("dashed" in render_html(tested_fix), "dashed line" in render_html(loose)) == (True, False)


def test_to_html_and_save(tested_fix: FixResult, tmp_path: Path):
    tested_fix.to_html(tmp_path / "fix.html")
    assert (tmp_path / "fix.html").read_text(encoding="utf-8") == render_html(tested_fix)
    tested_fix.save(tmp_path / "fix.json")
    saved = json.loads((tmp_path / "fix.json").read_text(encoding="utf-8"))
    assert saved["excluded"] is None or saved["excluded"]["limits"]
    assert isinstance(tested_fix, cg.FixResult)


@pytest.mark.parametrize("name", FIXES)
@pytest.mark.parametrize("width", [1200, 390])
def test_browser_shows_the_page_without_errors(
    name: str, width: int, page: Browser, request: pytest.FixtureRequest, tmp_path: Path
):
    path = tmp_path / "fix.html"
    request.getfixturevalue(name).to_html(path)
    page.resize(width, 900)
    page.open(path)
    assert page.errors() == []
    assert page.requests() == [path.resolve().as_uri()]
    assert page.run("document.documentElement.scrollWidth <= window.innerWidth")


def test_labels_of_the_chart_do_not_overlap(tested_fix: FixResult, page: Browser, tmp_path: Path):
    tested_fix.to_html(tmp_path / "fix.html")
    page.resize(1200, 900)
    page.open(tmp_path / "fix.html")
    boxes = page.run(
        "[...document.querySelectorAll('#remedies .near')].map(text => text.getBoundingClientRect())"
        ".map(box => [box.left, box.top, box.right, box.bottom])"
    )
    assert len(boxes) >= 2
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_a_class_opens(tested_fix: FixResult, page: Browser, tmp_path: Path):
    tested_fix.to_html(tmp_path / "fix.html")
    page.resize(1200, 900)
    page.open(tmp_path / "fix.html")
    page.click(".tool tbody tr:nth-child(2) button")
    assert page.run("document.querySelector('dialog[open] h2')?.textContent ?? ''")
