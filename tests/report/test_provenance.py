"""Date, sources and command of a page; notices about missing inputs."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pytest
from html_reader import Page

from browser import Browser
from classgap.audit import Audit
from classgap.report import render_html, write_html

TARGETS = np.arange(40) % 4
LABELS = np.where(np.arange(40) % 5 == 0, 0, TARGETS)


def page_facts(source: str) -> list[str]:
    return [text for _, text in Page(source).texts]


def test_date_sources_and_command():
    audit = Audit.from_predictions(predictions=LABELS, targets=TARGETS)
    source = render_html(
        audit,
        date=datetime.date(2026, 3, 1),
        sources=[Path("a<b>.npz"), "second.npz"],
        command="classgap audit '<script>'",
    )
    facts = page_facts(source)
    assert facts[facts.index("Date") + 1] == "2026-03-01"
    assert "".join(facts[facts.index("Sources") + 1 : facts.index("Command")]).split(", ") == ["a<b>.npz", "second.npz"]
    assert facts[facts.index("Command") + 1] == "classgap audit '<script>'"
    assert len(Page(source).of("script")) == 2


@pytest.mark.parametrize(("value", "day"), [("0", "1970-01-01"), ("1700000000", "2023-11-14")])
def test_source_date_epoch(monkeypatch, value: str, day: str):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", value)
    assert f'datetime="{day}"' in render_html(Audit.from_predictions(predictions=LABELS, targets=TARGETS))


@pytest.mark.parametrize("value", [None, "", "soon", "1" * 30])
def test_other_pages_are_of_today(monkeypatch, value: str | None):
    if value is None:
        monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    else:
        monkeypatch.setenv("SOURCE_DATE_EPOCH", value)
    before = datetime.datetime.now(tz=datetime.UTC).date()
    facts = page_facts(render_html(Audit.from_predictions(predictions=LABELS, targets=TARGETS)))
    after = datetime.datetime.now(tz=datetime.UTC).date()
    assert before <= datetime.date.fromisoformat(facts[facts.index("Date") + 1]) <= after
    assert "Command" not in facts
    assert not {"Source", "Sources"} & set(facts)


@pytest.mark.parametrize(
    ("inputs", "alone"),
    [
        ({}, True),
        ({"features": np.random.default_rng(0).normal(size=(40, 3))}, False),
        ({"train_counts": [5, 6, 7, 8]}, False),
        ({"train_targets": TARGETS, "train_predictions": LABELS}, False),
    ],
    ids=["alone", "features", "counts", "training"],
)
def test_only_predicted_labels_is_said_only_if_true(inputs: dict, alone: bool):
    audit = Audit.from_predictions(predictions=LABELS, targets=TARGETS, **inputs)
    codes = [notice.code for notice in audit.notices]
    assert ("only-predicted-labels" in codes, "no-scores" in codes) == (alone, not alone)
    assert ("only predicted labels" in render_html(audit).lower()) == alone


def test_thumbnails_load_in_a_browser(page: Browser, tmp_path: Path):
    audit = Audit.from_predictions(predictions=LABELS, targets=TARGETS, class_names=["a", "b", "c", "<b>d</b>"])
    images = np.random.default_rng(0).integers(0, 256, (40, 70, 90, 3), dtype=np.uint8)
    path = tmp_path / "page.html"
    write_html(audit, path, thumbnails=images)
    for width in (1200, 400):
        page.resize(width, 900)
        page.open(path)
        sizes = page.run(
            "[...document.querySelectorAll('#samples img')].map(e => [e.complete, e.naturalWidth, e.width])"
        )
        assert len(sizes) == 6
        assert all(size == [True, 90, 112] for size in sizes)
        assert page.run("document.documentElement.scrollWidth") <= width
        assert page.errors() == []
    assert {url.partition(",")[0] for url in page.requests()[1:]} <= {"data:image/jpeg;base64"}
    page.resize(1200, 900)
