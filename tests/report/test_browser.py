"""The report in a real browser: sort, search, open a class, make no requests."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_audits import SCRIPT

from browser import Browser
from classgap.audit import Audit, AuditDiff, History
from classgap.audit.results import AuditSource
from classgap.report import write_html

NAMES = "[...document.querySelectorAll('.tool tbody tr:not([hidden]) th')].map(cell => cell.textContent)"
OPENED = "document.querySelector('dialog[open] h2')?.textContent ?? ''"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for name in ("audit", "budget_audit", "labels_audit", "many_audit", "diff", "runs_diff"):
        write_html(request.getfixturevalue(name), folder / f"{name}.html")
    write_html([request.getfixturevalue("diff"), request.getfixturevalue("runs_diff")], folder / "several.html")
    return folder


@pytest.fixture
def audit_page(page: Browser, files: Path) -> Browser:
    page.media("", "light")
    page.resize(1200, 900)
    page.open(files / "audit.html")
    return page


def column(page: Browser, number: int) -> list[str]:
    return page.run(f"[...document.querySelectorAll('.tool tbody tr')].map(row => row.cells[{number}].textContent)")


def press_header(page: Browser, number: int) -> str:
    page.click(f".tool thead th:nth-child({number + 1}) button")
    return page.run(f"document.querySelector('.tool thead th:nth-child({number + 1})').getAttribute('aria-sort')")


@pytest.mark.parametrize(
    "name", ["audit", "budget_audit", "labels_audit", "many_audit", "diff", "runs_diff", "several"]
)
def test_no_errors_and_no_requests(name: str, page: Browser, files: Path):
    page.open(files / f"{name}.html")
    page.click(".tool tbody tr:nth-child(2) button")
    assert page.run(OPENED)
    page.press("Escape")
    page.run("new Promise(done => setTimeout(done, 100))")  # time for requests
    assert page.errors() == []
    assert page.requests() == [(files / f"{name}.html").resolve().as_uri()]


def test_policy_blocks_requests_and_other_scripts(audit_page: Browser):
    assert audit_page.run("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'blocked')") == "blocked"
    audit_page.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hacked = 1\">')")
    audit_page.run("new Promise(done => setTimeout(done, 50))")
    assert audit_page.run("window.hacked") is None
    assert any("Content Security Policy" in text for text in audit_page.errors())


def test_sorting_puts_missing_values_last(audit_page: Browser, audit: Audit):
    known = [100 * entry.accuracy for entry in audit.classes if entry.accuracy is not None]
    assert [float(text) for text in column(audit_page, 2)[:-1]] == pytest.approx(sorted(known), abs=0.051)
    assert press_header(audit_page, 2) == "descending"
    assert [float(text) for text in column(audit_page, 2)[:-1]] == pytest.approx(sorted(known)[::-1], abs=0.051)
    assert column(audit_page, 2)[-1] == "–"
    assert press_header(audit_page, 1) == "ascending"  # thirds from easy to hard
    order = ["easy", "medium", "hard", "unseen"]
    assert column(audit_page, 1) == sorted(column(audit_page, 1), key=order.index)
    assert audit_page.run("document.querySelectorAll('.tool [aria-sort]').length") == 1


def test_sorting_by_keyboard(audit_page: Browser):
    audit_page.run("document.querySelector('.tool thead th button').focus()")
    audit_page.press("Enter")
    names = [text.lower() for text in column(audit_page, 0)]
    assert names.index("cat") < names.index("dog") < names.index("ship")
    audit_page.press(" ")
    names = [text.lower() for text in column(audit_page, 0)]
    assert names.index("cat") > names.index("dog") > names.index("ship")


def test_search_filters_and_counts(audit_page: Browser):
    audit_page.click(".tool input")
    audit_page.type("SCRIPT")
    assert audit_page.run(NAMES) == [SCRIPT]
    assert audit_page.run("document.querySelector('.tool output').textContent") == "1 of 9 classes"
    audit_page.run("document.querySelector('.tool input').select()")
    audit_page.type("no such class")
    assert audit_page.run(NAMES) == []
    assert audit_page.run("document.querySelector('.tool output').textContent") == "0 of 9 classes"


def test_class_opens_by_click(audit_page: Browser, audit: Audit):
    entry = audit.classes[3]
    audit_page.click(".tool button[data-class='3']")
    assert audit_page.run(OPENED) == SCRIPT == entry.name
    text = audit_page.run("document.querySelector('dialog').innerText")
    assert f"{100 * entry.accuracy:.1f}" in text
    assert "Logit margins" in text
    assert all(confusion.name in text for confusion in entry.confusions if confusion.name.isalpha())
    assert audit_page.run("document.querySelectorAll('dialog script, dialog img').length") == 0
    assert audit_page.run("document.querySelector('dialog svg.strip').clientHeight") == 34
    assert audit_page.run("(each => each.scrollWidth - each.clientWidth)(document.querySelector('dialog'))") <= 0
    audit_page.click("dialog .close")
    assert audit_page.run(OPENED) == ""
    assert audit_page.run("document.activeElement.dataset.class") == "3"  # the focus returns


def test_class_opens_by_keyboard(audit_page: Browser, audit: Audit):
    audit_page.run("document.querySelector('.tool input').focus()")
    for _ in range(30):  # past the headers to the first class
        audit_page.press("Tab")
        if audit_page.run("document.activeElement.closest('tbody') !== null"):
            break
    first = audit_page.run("document.activeElement.textContent")
    audit_page.press("Enter")
    assert audit_page.run(OPENED) == first
    entry = next(entry for entry in audit.classes if entry.name == first)
    audit_page.click("dialog .bars button")
    assert audit_page.run(OPENED) == entry.confusions[0].name
    assert audit_page.run("document.activeElement.tagName") == "H2"
    audit_page.press("Escape")
    assert audit_page.run(OPENED) == ""


def test_class_opens_from_charts(audit_page: Browser, files: Path, many_audit: Audit):
    audit_page.click("#classes g.row .hit")
    assert audit_page.run(OPENED) == audit_page.run("document.querySelector('.tool tbody th').textContent")
    audit_page.open(files / "many_audit.html")
    place = audit_page.run(
        "(() => { const svg = document.querySelector('#classes svg'); svg.scrollIntoView({behavior: 'instant'});"
        " const path = svg.querySelector('path[data-classes]');"
        " const [x, y] = path.getAttribute('d').match(/[\\d.]+/g);"
        " const at = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());"
        " return [at.x, at.y, path.dataset.classes.split(',')[0]] })()"
    )
    audit_page.click_at(place[0], place[1])
    assert audit_page.run(OPENED) == many_audit.class_names[int(place[2])]


def test_dark_mode_contrast(audit_page: Browser, tmp_path: Path):
    colors = "(s => [s.backgroundColor, s.color].map(c => c.match(/\\d+/g).slice(0, 3).map(Number)))"
    colors += "(getComputedStyle(document.body))"
    for scheme in ("light", "dark"):
        audit_page.media("", scheme)
        paper, ink = (luminance(color) for color in audit_page.run(colors))
        assert (paper < 0.05) == (scheme == "dark")
        assert (max(paper, ink) + 0.05) / (min(paper, ink) + 0.05) > 10  # WCAG contrast
        audit_page.screenshot(tmp_path / f"{scheme}.png")
    assert (tmp_path / "light.png").read_bytes() != (tmp_path / "dark.png").read_bytes()


def luminance(color: list[int]) -> float:
    """WCAG's relative luminance."""
    linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in color]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", ["audit", "budget_audit", "many_audit", "diff", "runs_diff", "several"])
def test_tables_fit_1200_pixels(name: str, page: Browser, files: Path):
    page.resize(1200, 900)
    page.open(files / f"{name}.html")
    assert page.run("[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).length") == 0
    cut = "[...document.querySelectorAll('td.t')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)"
    assert page.run(cut) == []


@pytest.mark.parametrize("name", ["audit", "many_audit"])
def test_map_labels_do_not_overlap(name: str, page: Browser, files: Path):
    page.open(files / f"{name}.html")
    boxes = page.run(
        "[...document.querySelectorAll('text.place')].map(e => e.getBBox()).map(b => [b.x, b.y, b.width, b.height])"
    )
    assert len(boxes) >= 3
    for (x, y, width, height), (x2, y2, width2, height2) in itertools.combinations(boxes, 2):
        assert x + width <= x2 or x2 + width2 <= x or y + height <= y2 + 1 or y2 + height2 <= y + 1


def test_narrow_window_does_not_scroll_horizontally(page: Browser, files: Path):
    for name in ("audit", "several"):
        page.resize(360, 800)
        page.open(files / f"{name}.html")
        assert page.run("document.documentElement.scrollWidth") <= 360
    page.resize(1200, 900)


def test_long_paths_and_ids_wrap(page: Browser, budget_audit: Audit, tmp_path: Path):
    path = f"/data/{'long-folder-name/' * 6}predictions.npz"
    classes = tuple(
        replace(entry, doubted_samples=(path, 3), confident_errors=(path.replace("/", "_"),))
        for entry in budget_audit.classes
    )
    write_html(
        replace(budget_audit, source=AuditSource(path, has_scores=True), classes=classes),
        tmp_path / "long.html",
        command=f"classgap audit {path}",
    )
    page.resize(400, 800)
    page.open(tmp_path / "long.html")
    assert page.run("[...document.querySelectorAll('code')].some(e => e.innerText.includes('long-folder-name'))")
    assert page.run("document.documentElement.scrollWidth") <= 400
    index = next(entry.index for entry in classes if entry.error_budget and entry.diagnosis)
    page.run(f"document.querySelector('#budget g[data-class=\"{index}\"] .hit').scrollIntoView()")
    page.click(f"#budget g[data-class='{index}'] .hit")
    assert path in page.run("document.querySelector('dialog').innerText")
    assert page.run("(e => e.scrollWidth - e.clientWidth)(document.querySelector('dialog'))") <= 0
    page.press("Escape")
    page.resize(1200, 900)


@pytest.mark.parametrize("width", [400, 700, 900])
@pytest.mark.parametrize("name", ["audit", "many_audit", "several", "tested_fix", "history"])
def test_charts_fit_the_window(page: Browser, files: Path, request: pytest.FixtureRequest, name: str, width: int):
    path = files / f"{name}.html"
    if not path.exists():
        write_html(request.getfixturevalue(name), path)
    page.media("", "light")
    page.resize(width, 800)
    page.open(path)
    assert page.run("document.documentElement.scrollWidth") <= width
    shown = "[...document.querySelectorAll('figure svg')].filter(e => e.getClientRects().length)"
    charts = page.run(f"{shown}.map(e => [e.getBoundingClientRect().width, e.parentElement.clientWidth])")
    assert charts
    assert all(300 < drawn <= room <= width for drawn, room in charts)
    assert len(charts) == page.run("document.querySelectorAll('figure').length")  # one drawing of each
    # Texts are readable, and inside their chart.
    texts = page.run(
        f"{shown}.flatMap(svg => [...svg.querySelectorAll('text')].filter(e => e.getClientRects().length).map(e => {{"
        " const box = svg.getBoundingClientRect(), own = e.getBoundingClientRect();"
        " const size = Number.parseFloat(getComputedStyle(e).fontSize) * (e.getScreenCTM().b ? 1 : e.getScreenCTM().a);"
        " return [e.textContent, size, own.left - box.left, box.right - own.right] }))"
    )
    assert len(texts) > 10
    assert min(size for _, size, _, _ in texts) >= (11 if width == 400 else 8.5)
    assert [text for text, _, left, right in texts if left < -1 or right < -1] == []
    page.resize(1200, 900)


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("names", [["v1", "v2", "v3"], [f"a release with a long name, {i}" for i in range(12)]])
def test_names_of_releases_do_not_overlap(page: Browser, audit: Audit, tmp_path: Path, names: list[str], width: int):
    write_html(History.from_audits([audit] * len(names), names), tmp_path / "history.html")
    page.resize(width, 800)
    page.open(tmp_path / "history.html")
    boxes = page.run(
        "[...document.querySelectorAll('figure text.tick')].filter(e => e.getClientRects().length)"
        ".filter(e => !e.textContent.endsWith('%')).map(e => e.getBoundingClientRect()).map(b => [b.left, b.right])"
    )
    assert len(boxes) >= 2
    assert len(boxes) == 3 or len(names) > 3
    assert all(right < left for (_, right), (left, _) in itertools.pairwise(boxes))
    page.resize(1200, 900)


def test_class_opens_from_the_narrow_drawing(page: Browser, files: Path, many_audit: Audit):
    page.resize(400, 800)
    page.open(files / "many_audit.html")
    x, y, index = page.run(
        "(() => { const [wide, svg] = document.querySelectorAll('#classes figure svg');"
        " svg.scrollIntoView({block: 'center', behavior: 'instant'});"
        " const path = svg.querySelectorAll('path.dots')[1];"
        " const [x, y] = path.getAttribute('d').match(/[\\d.]+/g);"
        " const at = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());"
        " return [at.x, at.y, wide.querySelectorAll('path.dots')[1].dataset.classes.split(',')[0]] })()"
    )
    page.click_at(x, y)
    assert page.run(OPENED) == many_audit.class_names[int(index)]
    page.press("Escape")
    page.resize(1200, 900)


@pytest.mark.parametrize("width", [400, 1200])
def test_budget_fits_the_window(page: Browser, files: Path, width: int):
    page.media("", "light")
    page.resize(width, 800)
    page.open(files / "budget_audit.html")
    assert page.run("(e => e.scrollWidth - e.clientWidth)(document.querySelector('#budget figure'))") <= 0
    # Texts neither leave the chart nor overlap each other.
    boxes = page.run(
        "[...document.querySelectorAll('#budget figure svg, #budget figure text')]"
        ".filter(e => e.getClientRects().length).map(e => e.getBoundingClientRect())"
        ".map(b => [b.left, b.top, b.right, b.bottom])"
    )
    left, _, right, _ = boxes[0]
    assert len(boxes) > 10
    assert all(box[0] >= left - 1 and box[2] <= right + 1 for box in boxes[1:])
    for a, b in itertools.combinations(boxes[1:], 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] + 4 or b[3] <= a[1] + 4
    page.resize(1200, 900)


@pytest.mark.parametrize("width", [400, 1200])
def test_drawer_has_the_budget_and_the_samples(page: Browser, files: Path, budget_audit: Audit, width: int):
    entry = next(entry for entry in budget_audit.classes if entry.error_budget and entry.diagnosis)
    page.resize(width, 800)
    page.open(files / "budget_audit.html")
    page.run(f"document.querySelector('#budget g[data-class=\"{entry.index}\"] .hit').scrollIntoView()")
    page.click(f"#budget g[data-class='{entry.index}'] .hit")
    assert page.run(OPENED) == entry.name
    rows = page.run("[...document.querySelectorAll('dialog tbody tr')].map(row => row.innerText.split('\\t'))")
    assert [row[0] for row in rows] == ["Labels", "Decision", "Head", "Representation"]
    head = entry.error_budget.head
    assert rows[2][1] == str(head.removed)
    assert f"+ {head.added_elsewhere} elsewhere" in rows[2][3].replace("\n", " ")
    text = page.run("document.querySelector('dialog').innerText")
    assert ", ".join(map(str, entry.doubted_samples[:30])) in text
    assert ", ".join(map(str, entry.confident_errors)) in text
    assert page.run("(e => e.scrollWidth - e.clientWidth)(document.querySelector('dialog'))") <= 0
    page.press("Escape")
    page.resize(1200, 900)


def test_print_style(audit_page: Browser):
    audit_page.media("print", "dark")
    shown = "(s => s === null ? null : getComputedStyle(s))(document.querySelector(SELECTOR))"
    assert audit_page.run(shown.replace("SELECTOR", "'.scroll'") + ".maxHeight") == "none"
    assert audit_page.run(shown.replace("SELECTOR", "'nav'") + ".display") == "none"
    assert audit_page.run(shown.replace("SELECTOR", "'body'") + ".backgroundColor") == "rgb(255, 255, 255)"
    audit_page.media("", "light")


def test_printed_pages_keep_headers_and_legends(page: Browser, files: Path):
    page.open(files / "many_audit.html")
    page.media("print", "light")
    style = (
        "(s => [s.breakAfter, s.breakInside, s.printColorAdjust])(getComputedStyle(document.querySelector('SELECTOR')))"
    )
    page.run("document.querySelector('.legend').insertAdjacentHTML('afterend', '<p class=\"note\">A note.</p>')")
    for selector in (".legend", ".legend + .note", "h2", "section > p.soft", "thead"):
        after, inside, color = page.run(style.replace("SELECTOR", selector))
        assert (selector, after, inside, color) == (selector, "avoid", "avoid", "exact")
    assert page.run("getComputedStyle(document.querySelector('thead')).display") == "table-header-group"
    assert page.run("getComputedStyle(document.querySelector('svg.for-narrow')).display") == "none"
    cells = "[...document.querySelectorAll('th')].map(cell => getComputedStyle(cell).position)"
    assert set(page.run(cells)) == {"static"}  # Chromium prints a sticky header at the end of its table
    page.media("", "light")
    # A header that is repeated on each page of paper is longer text: compare with the same page, not repeated.
    count = "Page.printToPDF"
    whole = len(page.send(count)["data"])
    page.run("document.querySelectorAll('.tool thead').forEach(head => head.style.display = 'table-row-group')")
    assert len(page.send(count)["data"]) < whole


def test_several_comparisons_open_their_own_classes(page: Browser, files: Path, diff: AuditDiff):
    page.open(files / "several.html")
    assert page.run("document.querySelectorAll('.tool').length") == 2
    page.run("[...document.querySelectorAll('.tool')][1].querySelector('tbody button').click()")
    facts = page.run("document.querySelector('dialog').innerText")
    second = json.loads(page.run("document.getElementById('data').textContent"))[1]
    index = int(page.run("[...document.querySelectorAll('.tool')][1].querySelector('tbody button').dataset.class"))
    assert second["facts"][0][1][0][1][index] in facts
