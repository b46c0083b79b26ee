import itertools
import xml.etree.ElementTree as ElementTree

from hypothesis import given
from hypothesis import strategies as st

from classgap.report.charts.svg import draw_dots, draw_lines, linear_scale, nice_ticks, svg_chart, tag


def test_text_and_attributes_are_escaped():
    element = ElementTree.fromstring(tag("text", "a < b & c", class_='"><script>'))
    assert element.text == "a < b & c"
    assert element.attrib["class"] == '"><script>'


def test_chart_is_labeled_by_title_and_description():
    drawn = ElementTree.fromstring(svg_chart("key", "Title <1>", "What & why", 100, draw_dots([(1, 2)], "easy", [7])))
    named = {element.attrib["id"]: element.text for element in drawn if "id" in element.attrib}
    assert [named[key] for key in drawn.attrib["aria-labelledby"].split()] == ["Title <1>", "What & why"]
    assert drawn.attrib["role"] == "img"


@given(st.floats(-1e4, 1e4), st.floats(1e-3, 1e6))
def test_ticks_are_round_evenly_spaced_and_in_range(start: float, width: float):
    low = start * width  # farther out, the difference of two ticks would be rounding error
    ticks = nice_ticks(low, low + width)
    assert 2 <= len(ticks) <= 11
    step = ticks[1] - ticks[0]
    slack = 1e-6 * (abs(low) + width)
    assert low - slack <= ticks[0] <= low + step + slack
    assert low + width - step - slack <= ticks[-1] <= low + width + slack
    assert all(abs(b - a - step) <= slack for a, b in itertools.pairwise(ticks))
    digits = f"{step:.6e}".split("e")[0].strip("0").replace(".", "")
    assert digits in ("1", "2", "5")


def test_dots_and_lines_are_drawn_as_one_path():
    path = ElementTree.fromstring(draw_dots([(1.04, 2), (3, 4.5)], "hard", [8, 9]))
    assert path.attrib["d"] == "M1 2h0M3 4.5h0"
    assert path.attrib["data-classes"] == "8,9"
    assert draw_dots([], "hard") == draw_lines([], "grid") == ""
    assert ElementTree.fromstring(draw_lines([((0, 0), (1, 2))], "grid")).attrib["d"] == "M0 0L1 2"


def test_scale_of_an_empty_domain():
    assert linear_scale((3, 3), (10, 20))(3) == 10
