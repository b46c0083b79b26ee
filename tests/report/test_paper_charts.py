"""Charts of plain arrays: what is drawn where, names escaped, and lines and marks that differ without color."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from synthetic_audits import SCRIPT

from classgap.report.charts.line_chart import Line, line_chart
from classgap.report.charts.paper_charts import (
    class_stats_chart,
    class_value_chart,
    distribution_chart,
    farthest_distance_chart,
    margin_distribution_chart,
    weight_norm_chart,
)
from classgap.report.charts.plane_chart import plane_chart
from classgap.report.charts.standalone import standalone_svg


def drawings(chart: str) -> list[ElementTree.Element]:
    """Parse the wide and the narrow drawing; fails if anything is not escaped."""
    return list(ElementTree.fromstring(f"<both>{chart}</both>"))


def paths(drawing: ElementTree.Element, kind: str) -> list[str]:
    return [e.attrib["d"] for e in drawing.iter("path") if e.attrib.get("class", "").split()[:1] == [kind]]


def classes(drawing: ElementTree.Element, kind: str) -> list[str]:
    found = [e.attrib["class"] for e in drawing.iter("path") if e.attrib.get("class", "").split()[:1] == [kind]]
    return list(dict.fromkeys(found))


def simple_lines(*lines: Line, **settings) -> ElementTree.Element:
    return drawings(line_chart("k", "T", "D", lines, x_label="x", y_label="y", **settings))[0]


def test_values_are_drawn_to_scale_and_unknown_ones_break_the_line():
    line = Line("a", [0, 1, 2, 3, 4], [0.0, 1.0, None, float("nan"), 2.0])
    drawing = simple_lines(line, x_domain=(0, 4), y_domain=(0, 2))
    _, drawn = paths(drawing, "line")  # the legend's sample comes first
    assert drawn.count("M") == 2
    numbers = [float(n) for n in re.findall(r"-?[\d.]+", drawn.replace("h0", ""))]
    (x0, y0, x1, y1, x4, y4) = numbers
    assert (x1 - x0) / (x4 - x0) == pytest.approx(1 / 4, abs=0.01)
    assert (y0 - y1) / (y0 - y4) == pytest.approx(1 / 2, abs=0.01)
    assert y4 < y0  # upward


def test_every_line_has_its_own_dashes_and_names_are_escaped():
    lines = [Line(f"{SCRIPT} {i}", [0, 1], [i, i + 1]) for i in range(6)]
    wide, narrow = drawings(line_chart("k", SCRIPT, SCRIPT, lines, x_label=SCRIPT, y_label=SCRIPT))
    for drawing in (wide, narrow):
        assert len({name.split()[2] for name in classes(drawing, "line")}) == 6
        assert not list(drawing.iter("script"))
    assert wide.find("title").text == SCRIPT
    assert narrow.find("title") is None  # announced once


def test_steps_are_horizontal_then_vertical():
    drawing = simple_lines(Line("a", [0, 1], [0, 1], step=True))
    assert re.search(r"H[\d.]+V[\d.]+$", paths(drawing, "line")[1])


def test_lines_of_unequal_length_are_rejected():
    with pytest.raises(ValueError, match="same length, got"):
        simple_lines(Line("a", [0, 1], [0]))


def test_a_chart_without_values_has_a_frame():
    assert paths(simple_lines(Line("a", [], [])), "grid")


def test_class_statistics_have_a_line_per_run_and_group_with_their_means():
    spreads = {"ERM": [[1.0, 3.0, 8.0], [1.0, 5.0, None]], "<MR²>": [[1.0, 3.0, 8.0], [1.0, 1.0, 2.0]]}
    chart = class_stats_chart(spreads, {"easy": [0, 1], "hard": [2], "own": [0]})
    wide, _ = drawings(chart)
    assert len(classes(wide, "line")) == 6
    assert {name.split()[2] for name in classes(wide, "line")} == {"dash0", "dash1"}  # one per run
    marks = {(name.split()[0], name.split()[1]) for e in ("dots", "mark") for name in classes(wide, e)}
    assert ("dots", "small") in marks  # the first group
    assert ("mark", "hard") in marks
    assert "ERM, easy 3.00; ERM, hard" in wide.find("desc").text
    assert "<MR²>, hard 2.00" in wide.find("desc").text


def test_distributions_are_densities_or_fractions():
    samples = {"ERM": np.arange(101.0), SCRIPT: [50.0, 50.0, 51.0]}
    chart = margin_distribution_chart(samples, name=SCRIPT, cumulative=True)
    wide, _ = drawings(chart)
    assert wide.find("desc").text == f"Medians: ERM 50.0; {SCRIPT} 50.0."
    first = paths(wide, "line")[2]  # after two samples of the legend
    numbers = [float(n) for n in re.findall(r"[\d.]+", first.replace("h0", ""))]
    top, bottom = min(numbers[1], numbers[-1]), max(numbers[1], numbers[-1])
    heights = [float(v) for v in re.findall(r"V([\d.]+)", first)]
    assert heights[50] == pytest.approx((top + bottom) / 2, abs=3)  # half of the samples at the median
    assert "%" in distribution_chart(samples, key="k", title="t", x_label="x", cumulative=True)
    for drawn in (farthest_distance_chart({"a": [0.1, 0.4]}, name="b"), margin_distribution_chart(samples, name="b")):
        assert "density" in drawn


def test_many_classes_are_dots_and_few_are_rows():
    few = weight_norm_chart([1.0, 2.0], ["a", SCRIPT], kinds=["easy", "hard"], indices=[4, 7])
    rows = [e for e in drawings(few)[0].iter("g") if "row" in e.attrib.get("class", "")]
    assert [row.attrib["data-class"] for row in rows] == ["4", "7"]
    bars = [float(e.attrib["width"]) for e in drawings(few)[0].iter("rect") if e.attrib["class"] == "bar"]
    assert bars[1] == pytest.approx(2 * bars[0], rel=0.01)
    many = weight_norm_chart(list(np.linspace(1, 2, 60)), [f"c{i}" for i in range(60)])
    (dots,) = (e for e in drawings(many)[0].iter("path") if "dots" in e.attrib.get("class", ""))
    assert dots.attrib["d"].count("M") == 60


@pytest.mark.parametrize("values", [[], [1.0]])
def test_values_without_names_are_rejected(values):
    with pytest.raises(ValueError, match="one number per name"):
        class_value_chart(values, ["a", "b"], key="k", title="t", label="l")


def test_classes_in_the_plane_differ_in_shape():
    rng = np.random.default_rng(0)
    points, targets = rng.normal(size=(60, 2)), np.arange(60) % 6
    wide, narrow = drawings(plane_chart(points, targets, [SCRIPT, *"bcdef"], boundary=[((0, 0), (1, 1))]))
    for drawing in (wide, narrow):
        shapes = {re.sub(r"M-?[\d.]+ -?[\d.]+", "", path)[:20] for path in paths(drawing, "mark")}
        assert len(shapes) == 5  # and dots
        dots = paths(drawing, "dots")
        assert [path.count("M") for path in dots] == [1, 10]
        assert len(paths(drawing, "boundary")) == 2
    assert [path.count("M") for path in paths(wide, "mark")] == [1] * 5 + [10] * 5  # the legend, then the points


@pytest.mark.parametrize(
    ("points", "targets"), [([[0.0, 1.0]], [2]), ([[0.0, 1.0]], [0, 1]), ([[0.0]], [0]), (np.zeros((0, 2)), [])]
)
def test_invalid_points_are_rejected(points, targets):
    with pytest.raises(ValueError, match=r"points_N2 must be|targets_N must be"):
        plane_chart(points, targets, ["a", "b"])


def test_the_audit_page_shows_norms_and_distances_where_they_are_known(audit, labels_audit, tmp_path):
    audit.to_html(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert page.count("<details>") == 2
    assert "weight norm ‖w_k‖" in page
    assert "mean farthest distance" in page
    labels_audit.to_html(tmp_path / "l.html")
    assert "<details>" not in (tmp_path / "l.html").read_text()


def test_a_chart_of_its_own_has_one_drawing_and_the_styles_of_the_pages(audit, tmp_path):
    chart = weight_norm_chart([1.0, 2.0], ["a", SCRIPT])
    document = ElementTree.fromstring(standalone_svg(chart))
    assert document.tag == "{http://www.w3.org/2000/svg}svg"
    style = document.find("{http://www.w3.org/2000/svg}style").text
    audit.to_html(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    for rule in (".chart .line {", ".chart .bar {", "prefers-color-scheme: dark"):
        assert rule in style
        assert rule in page
    texts = [e.text for e in document.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("a") == 1  # the wide drawing alone
    with pytest.raises(ValueError, match="markup of a chart"):
        standalone_svg("text")
