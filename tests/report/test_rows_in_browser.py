"""Rows of the tables in a real browser: click, keyboard, hover, line breaks of names."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from browser import Browser
from classgap.audit import Audit
from classgap.report import write_html

OPENED = "document.querySelector('dialog[open] h2')?.textContent ?? ''"
NAMES = [
    "talk_politics_mideast_and_more_of_it",
    "comp.os.ms-windows.misc.and.other.parts",
    "GreatWhiteSharkOfTheSea",
    "cat",
]


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory, page: Browser) -> Browser:
    targets = np.repeat(np.arange(4), 25)
    logits = 2 * np.eye(4)[targets] + np.random.default_rng(0).normal(size=(100, 4)) * (1 + targets[:, None])
    audit = Audit.from_predictions(logits, targets, class_names=NAMES)
    path: Path = tmp_path_factory.mktemp("rows") / "page.html"
    write_html(audit, path)
    page.media("", "light")
    page.resize(1200, 900)
    page.open(path)
    return page


def middle(page: Browser, script: str) -> list[float]:
    """Scroll an element into view and return its center."""
    return page.run(
        f"(e => {{ e.scrollIntoView({{block: 'center', behavior: 'instant'}}); const r = e.getBoundingClientRect();"
        f" return [r.x + r.width / 2, r.y + r.height / 2] }})({script})"
    )


@pytest.mark.parametrize("section", ["classes", "causes", "pairs"])
def test_a_click_anywhere_in_a_row_opens_its_class(named: Browser, section: str):
    row = f"document.querySelector('#{section} tbody tr')"
    name = named.run(f"{row}?.querySelector('th').textContent")
    for cell in (1, 2):
        named.click_at(*middle(named, f"{row}.cells[{cell}]"))
        if section == "pairs" and cell == 1:  # on the name of the second class, if the cell's center is
            assert named.run(OPENED)
        else:
            assert named.run(OPENED) == name
        named.press("Escape")
        assert named.run(OPENED) == ""
    assert named.run("document.activeElement.textContent") == name  # the keyboard continues from the row
    named.press("Enter")
    assert named.run(OPENED) == name
    named.press("Escape")


def test_selecting_text_opens_nothing(named: Browser):
    x, y = middle(named, "document.querySelector('#classes tbody tr').cells[2]")
    named.send("Input.dispatchMouseEvent", type="mousePressed", x=x - 40, y=y, button="left", clickCount=1)
    named.send("Input.dispatchMouseEvent", type="mouseMoved", x=x + 40, y=y, button="left", buttons=1)
    named.send("Input.dispatchMouseEvent", type="mouseReleased", x=x + 40, y=y, button="left", clickCount=1)
    assert named.run("getSelection().toString()") != ""
    assert named.run(OPENED) == ""
    named.run("getSelection().removeAllRanges()")


def test_hovering_keeps_the_bar(named: Browser):
    cell = "document.querySelector('#classes td.share')"
    style = f"(s => [s.backgroundImage, s.backgroundColor])(getComputedStyle({cell}))"
    named.send("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    image, color = named.run(style)
    x, y = middle(named, cell)
    named.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert named.run(style)[0] == image != "none"
    assert named.run(style)[1] != color


def test_long_names_wrap_at_word_parts(named: Browser):
    lines = named.run(
        "[...document.querySelectorAll('#classes tbody th button')].map(button => {"
        " const range = document.createRange(), lines = [];"
        " const walk = document.createTreeWalker(button, NodeFilter.SHOW_TEXT);"
        " for (let node = walk.nextNode(); node; node = walk.nextNode()) for (let i = 0; i < node.length; i++) {"
        "  range.setStart(node, i); range.setEnd(node, i + 1);"
        "  const top = Math.round(range.getBoundingClientRect().top);"
        "  if (!lines.length || lines.at(-1)[0] !== top) lines.push([top, '']);"
        "  lines.at(-1)[1] += node.data[i]; }"
        " return lines.map(line => line[1]) })"
    )
    assert sorted("".join(parts) for parts in lines) == sorted(NAMES)
    ends = [part for parts in lines for part in parts[:-1]]
    assert len(ends) >= 2
    for parts in lines:
        for first, second in itertools.pairwise(parts):
            assert re.search(r"[_.\-]$", first) or second[0].isupper()
