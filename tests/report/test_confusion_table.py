"""The confusion matrix on the page: the numbers of scikit-learn, for up to twenty classes."""

import numpy as np
import pytest
from html_reader import Page
from sklearn.metrics import confusion_matrix
from synthetic_audits import make_audit

from browser import Browser
from classgap.audit import Audit
from classgap.report import render_html, write_html
from classgap.report.confusion_table import confusion_table


def test_rows_are_those_of_scikit_learn(audit: Audit):
    samples, labels = audit.samples, np.arange(len(audit.classes))
    counts = confusion_matrix(samples.targets, samples.predictions, labels=labels)
    rows = confusion_table(audit)
    assert [[count for _, _, count in row.cells] for row in rows] == counts.tolist()
    for row, expected in zip(rows, counts, strict=True):
        total = expected.sum()
        for (text, fraction, count), other in zip(row.cells, expected, strict=True):
            assert fraction == (other / total if total else 0)
            number = text.removeprefix("<").removeprefix(">")
            assert text == "–" if not total else abs(float(number) - 100 * count / total) <= 1
    assert {text for text, _, _ in rows[-1].cells} == {"–"}  # no test samples


@pytest.mark.parametrize(("classes", "shown"), [(20, True), (21, False)])
def test_only_for_few_classes(classes: int, shown: bool):
    page = Page(render_html(make_audit(classes, 600, skill=1.0, name="some", features=False)))
    matrices = [table for table in page.of("table") if table.get("class") == "matrix"]
    assert len(matrices) == shown


def test_one_class_has_no_matrix():
    assert confusion_table(Audit.from_predictions(predictions=[0, 0], targets=[0, 0])) is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_readable_in_a_browser(page: Browser, tmp_path, scheme: str):
    audit = make_audit(20, 2000, skill=1.0, name="twenty", features=False)
    write_html(audit, tmp_path / "page.html")
    page.media("", scheme)
    page.resize(1200, 900)
    page.open(tmp_path / "page.html")
    assert page.run("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.matrix').parentElement)") <= 0
    heads = page.run("[...document.querySelectorAll('.matrix thead th')].map(e => [e.scope, e.textContent])")
    assert heads == [["col", "True class"], *(["col", name] for name in audit.class_names)]
    frames = page.run(
        "[...document.querySelectorAll('.matrix tbody tr')].map(row => [...row.querySelectorAll('td')]"
        ".map(cell => getComputedStyle(cell).boxShadow !== 'none'))"
    )
    assert frames == np.eye(20, dtype=bool).tolist()
    # Even the darkest shade leaves a contrast of 4.5 to the text (WCAG AA), measured on a canvas.
    lowest = page.run(
        "(() => { const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});"
        " const rgb = (...colors) => { canvas.clearRect(0, 0, 1, 1); for (const c of colors) { canvas.fillStyle = c;"
        "  canvas.fillRect(0, 0, 1, 1); } return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3); };"
        " const light = (c) => c.map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)"
        "  .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);"
        " const paper = getComputedStyle(document.body).backgroundColor;"
        " return Math.min(...[...document.querySelectorAll('.matrix td')].map(cell => {"
        "  const style = getComputedStyle(cell),"
        "   a = light(rgb(paper, style.backgroundColor)), b = light(rgb(style.color));"
        "  return (Math.max(a, b) + .05) / (Math.min(a, b) + .05); })) })()"
    )
    assert lowest >= 4.5
    page.media("", "light")
