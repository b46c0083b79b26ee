"""The chart of releases: the values at its right end."""

import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np

from classgap.audit import Audit, History
from classgap.report.charts.history_chart import BOTTOM, HEIGHT, SERIES, history_chart


def test_values_near_zero_are_written_above_the_axis_without_overlaps():
    targets = np.arange(3000) % 3
    wrong = Audit.from_predictions(predictions=(targets + 1) % 3, targets=targets)
    both = ElementTree.fromstring(f"<both>{history_chart(History.from_audits([wrong, wrong]))}</both>")
    for drawing in both:
        ends = [each for each in drawing.iter("text") if each.attrib["class"].startswith("end ")]
        assert {each.text.split(" 0.0 ")[0] for each in ends} == {label for _, _, label, _ in SERIES}
        heights = [float(each.attrib["y"]) - 4 for each in ends]
        assert max(heights) <= HEIGHT - BOTTOM
        assert all(below - above >= 15 for above, below in pairwise(heights))
