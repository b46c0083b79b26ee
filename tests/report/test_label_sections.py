"""Valid labels, slices and superclasses on the terminal, on the page and in CSV."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from html_reader import Page
from synthetic_audits import FAST, NAMES, SCRIPT

from browser import Browser
from classgap.audit import Audit
from classgap.report import audit_text, write_csv
from classgap.report.details import audit_details
from classgap.report.formatting import format_percent
from classgap.report.html.render import render_html
from classgap.report.label_sections import label_sections
from classgap.report.notes import audit_notes
from classgap.report.valid_section import gap_sentence


def predictions(seed: int = 0, each: int = 80):
    rng = np.random.default_rng(seed)
    targets = np.repeat(np.arange(9), each)
    camera = rng.choice(["left", SCRIPT], len(targets))
    rate = np.linspace(0.05, 0.4, 9)[targets] + 0.5 * ((targets == 8) & (camera == SCRIPT))
    predictions = np.where(rng.random(len(targets)) < rate, rng.integers(0, 9, len(targets)), targets)
    sets = [[int(t), int(p)] if rng.random() < 0.3 else [int(t)] for t, p in zip(targets, predictions, strict=True)]
    sets = [[] if rng.random() < 0.05 else [(entry[0] + 1) % 9] if rng.random() < 0.1 else entry for entry in sets]
    return targets, predictions, sets, camera


@pytest.fixture(scope="module")
def labels() -> Audit:
    targets, predicted, sets, camera = predictions()
    return Audit.from_predictions(
        targets=targets,
        predictions=predicted,
        class_names=NAMES,
        valid_labels=sets,
        slices={"camera <b>": camera},
        superclasses={"pets & co": [0, 1, 2], SCRIPT: [3, 4, 5, 6]},
        hierarchy=dict.fromkeys(NAMES, "thing"),
        settings=FAST,
    )


def test_sections_follow_the_inputs(labels: Audit, audit: Audit):
    assert [section.key for section in label_sections(labels)] == ["valid", "slices", "superclasses"]
    assert label_sections(audit) == []
    notes = {"valid", "slices", "superclasses"}
    assert notes <= set(audit_notes(labels))
    assert not notes & set(audit_notes(audit))


def test_the_terminal_shows_both_figures(labels: Audit):
    text = " ".join(audit_text(labels).split())
    valid = labels.valid
    assert f"Valid-label accuracy {format_percent(valid.overall.accuracy)} % (" in text
    assert (
        f"changes from {format_percent(labels.gap.easy_hard)} to {format_percent(valid.gap.easy_hard)} points" in text
    )
    assert f"re-formed from valid-label accuracy are {format_percent(valid.reranked_easy_hard)} points apart" in text
    assert f"{valid.overall.left_out} samples without a valid label are left out" in text
    assert f"{format_percent(valid.groups['hard'].label_validity)} % in the hard third" in text
    found = labels.slices.classes[0]
    assert found.significant
    assert f"{found.errors} of {found.support}" in text
    assert f"{labels.superclasses.within} of {labels.superclasses.errors} errors" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(("reranked", "amount"), [(0.0, "5.0"), (-0.02, "5.0 to 7.0"), (0.0004, "5.0")])
def test_the_share_of_labels_is_a_range_only_if_its_ends_differ(labels: Audit, reranked: float, amount: str):
    valid = replace(
        labels.valid,
        gap=replace(labels.valid.gap, easy_hard=labels.gap.easy_hard - 0.05),
        reranked_easy_hard=labels.gap.easy_hard - 0.05 + reranked,
    )
    assert f"account for {amount} points" in gap_sentence(replace(labels, valid=valid))


def test_the_page_shows_every_section(labels: Audit):
    source = render_html(labels)
    page = Page(source)
    texts = [text for _, text in page.texts]
    for section in label_sections(labels):
        assert section.key in {attributes.get("id") for attributes in page.of("section")}
        for table in section.tables:
            assert table.caption in texts
    assert SCRIPT not in re.sub(r'<script type="application/json".*?</script>', "", source, flags=re.DOTALL)
    assert "Valid-label accuracy, %" in texts
    assert "one of the sample's valid labels, or" in " ".join(texts)
    assert "Errors outside superclass" in texts


def test_a_class_shows_its_figures_as_valid(labels: Audit):
    facts = {label: cells for _, rows in audit_details(labels)["facts"] for label, cells in rows}
    for k, entry in enumerate(labels.valid.classes):
        assert facts["Valid-label accuracy, %"][k] == format_percent(entry.accuracy)
        assert facts["Errors whose prediction is valid"][k] == str(entry.valid_errors)
    assert facts["Errors outside the superclass"] == [str(entry.outside) for entry in labels.superclasses.classes]


def test_classes_are_listed_worst_first(labels: Audit):
    invalid, errors = label_sections(labels)[0].tables[1:]
    validity = {entry.name: entry.label_validity for entry in labels.valid.classes}
    shown = [validity[row[0]] for row in invalid.rows]
    assert shown == sorted(shown)
    assert shown[0] == min(validity.values())
    valid_errors = {entry.name: entry.valid_errors for entry in labels.valid.classes}
    assert [valid_errors[row[0]] for row in errors.rows] == sorted(valid_errors.values(), reverse=True)[
        : len(errors.rows)
    ]


def test_csv_has_both_figures(labels: Audit, tmp_path: Path):
    write_csv(labels, tmp_path / "classes.csv")
    with (tmp_path / "classes.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["valid_accuracy"]) for row in rows] == [entry.accuracy for entry in labels.valid.classes]
    assert [int(row["left_out"]) for row in rows] == [entry.left_out for entry in labels.valid.classes]
    assert [row["superclass"] for row in rows] == [entry.superclass or "" for entry in labels.superclasses.classes]
    assert [float(row["accuracy"]) for row in rows] == [entry.accuracy for entry in labels.classes]


def test_labels_that_explain_nothing_are_named_so():
    targets, predicted, _, _ = predictions()
    audit = Audit.from_predictions(
        targets=targets, predictions=predicted, valid_labels=[[t] for t in targets.tolist()], settings=FAST
    )
    (section,) = label_sections(audit)
    assert any("do not explain the gap" in sentence for sentence in section.sentences)
    assert not any("predict a valid label" in sentence for sentence in section.sentences)


def test_no_slice_is_named_without_an_effect():
    targets, predicted, _, _ = predictions()
    camera = np.random.default_rng(5).choice(["a", "b"], len(targets))
    audit = Audit.from_predictions(targets=targets, predictions=predicted, slices=camera, settings=FAST)
    (section,) = label_sections(audit)
    assert len(section.sentences) == 1
    assert section.sentences[0].startswith("No slice")


def test_sections_in_a_browser(labels: Audit, page: Browser, tmp_path: Path):
    path = tmp_path / "report.html"
    path.write_text(render_html(labels), encoding="utf-8")
    page.resize(400, 800)
    page.open(path)
    assert page.run("document.documentElement.scrollWidth") <= 400
    page.click("#valid [data-class]")
    assert page.run("document.querySelector('dialog').open")
    assert "Valid-label accuracy" in page.run("document.querySelector('dialog').textContent")
    assert page.errors() == []
