import base64
import hashlib
import os
import re

import numpy as np
import pytest
from html_reader import Page
from synthetic_audits import FAST, SCRIPT, make_audit, with_budgets

from classgap.audit import Audit
from classgap.report import diff_summary, render_html, write_html
from classgap.report.formatting import format_percent, format_points
from classgap.report.notes import audit_notes, diff_notes


@pytest.fixture(
    scope="module",
    params=[
        *("audit", "budget_audit", "labels_audit", "many_audit", "diff", "runs_diff", "several"),
        *("tested_fix", "nested_fix", "no_fix", "history"),
    ],
)
def source(request: pytest.FixtureRequest) -> str:
    if request.param == "several":
        return render_html([request.getfixturevalue("diff"), request.getfixturevalue("runs_diff")])
    return render_html(request.getfixturevalue(request.param))


def test_page_is_self_contained(source: str):
    page = Page(source)
    for tag, attributes in page.elements:
        for name in ("src", "srcset", "href", "xlink:href", "action", "data", "poster"):
            target = attributes.get(name, "#")
            assert target.startswith("#") or (tag == "link" and target == "data:,"), (tag, target)
    style = next(text for tag, text in page.texts if tag == "style")
    assert not re.search(r"url\(|@import|@font-face", style)
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|import|sendBeacon|innerHTML|eval)\b", page.script)


def test_policy_allows_only_the_page_script(source: str):
    page = Page(source)
    policy = next(meta["content"] for meta in page.of("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(page.script.encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy
    assert [script.get("type") for script in page.of("script")] == ["application/json", None]


def test_class_names_are_escaped(source: str):
    assert SCRIPT not in source
    page = Page(source)
    assert len(page.of("script")) == 2
    assert not page.of("b")  # the audit's name contains one as well


def test_page_is_accessible(source: str):
    page = Page(source)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    referred = [word for _, attributes in page.elements for word in attributes.get("aria-labelledby", "").split()]
    assert set(referred) - {"opened"} <= set(ids)  # created when a class is opened
    drawings = [svg for svg in page.of("svg") if svg.get("aria-hidden") != "true"]
    assert all(svg["role"] == "img" and svg["aria-labelledby"] for svg in drawings)
    assert len(page.of("caption")) == len(page.of("table")) > 0
    assert len(page.of("h1")) >= 1
    assert {label["for"] for label in page.of("label")} == {field["id"] for field in page.of("input")}
    assert all(output["aria-live"] == "polite" for output in page.of("output"))
    anchors = [a["href"][1:] for a in page.of("a")]
    assert set(anchors) <= set(ids)


def test_class_table_is_sorted_by_accuracy(audit: Audit):
    page = Page(render_html(audit))
    rows = [text for tag, text in page.texts]
    start = rows.index("Most confused with")
    shown = [text for text in rows[start:] if text in audit.class_names][: len(audit.classes)]
    seen = sorted((e for e in audit.classes if e.accuracy is not None), key=lambda e: (e.accuracy, e.index))
    assert shown[: len(seen)] == [entry.name for entry in seen]
    assert shown[len(seen) :] == [audit.class_names[-1]]


def test_class_details_match_the_audit(audit: Audit):
    (data,) = Page(render_html(audit)).data
    facts = {label: texts for _, rows in data["facts"] for label, texts in rows}
    assert data["names"] == list(audit.class_names)
    for entry in audit.classes:
        k = entry.index
        assert facts["Accuracy (recall), %"][k] == ("" if entry.accuracy is None else f"{100 * entry.accuracy:.1f}")
        assert facts["Support"][k] == str(entry.support)
        assert facts["Class with the nearest mean"][k] == (entry.nearest_class or "")
        assert [audit.class_names[j] for j, _, _ in data["confusions"][k]] == [c.name for c in entry.confusions]
        assert [n for _, n, _ in data["confusions"][k]] == [str(c.count) for c in entry.confusions]
        assert len(data["causes"].get(str(k), [])) == len(entry.diagnosis)
        if entry.logit_margin is not None:
            np.testing.assert_allclose(data["margins"][k], entry.logit_margin.quantiles, rtol=5e-3)
        if entry.spread is not None:
            assert float(facts["Spread ‖ŝ‖"][k].replace(",", "")) == pytest.approx(entry.spread, rel=5e-3)


def test_missing_inputs_are_named(labels_audit: Audit):
    source = render_html(labels_audit)
    assert "only predicted labels" in source
    assert "No features were given" in source
    assert "nan" not in re.sub(r"<style>.*?</style>|<script>.*?</script>", "", source, flags=re.DOTALL).lower().split()
    (data,) = Page(source).data
    assert [title for title, _ in data["facts"]] == ["Test set"]


@pytest.mark.parametrize(
    ("targets", "thirds"), [([0] * 5, ["medium third"]), ([0, 0, 0, 1, 1], ["easy third", "hard third"])]
)
def test_one_or_two_classes(targets: list[int], thirds: list[str]):
    few = Audit.from_predictions(predictions=[0, 0, 0, 1, 0], targets=targets, settings=FAST)
    page = Page(render_html(few))
    shown = [(tag, text) for tag, text in page.texts if re.fullmatch("(easy|medium|hard) third", text, re.IGNORECASE)]
    assert [text for tag, text in shown if tag == "li"] == thirds
    assert [text for tag, text in shown if tag == "dt"] == [
        text.capitalize() for text in thirds if "medium" not in text
    ]
    alone = any(text.startswith("Only one class has test samples") for _, text in page.texts)
    assert alone == (len(thirds) == 1)


def test_variation_of_class_means_is_relative_to_the_global_mean():
    # Means at 1 and 3 have the same distance to 2 but different norms.
    features = np.array([[1.0, 0.0], [1.0, 0.0], [3.0, 0.0], [3.0, 0.0]])
    two = Audit.from_predictions(predictions=[0, 0, 1, 1], targets=[0, 0, 1, 1], features=features, settings=FAST)
    assert two.features.mean_norm_variation == 0
    cells = [text for tag, text in Page(render_html(two)).texts if tag in ("td", "th")]
    row = cells.index("Variation of the distances of class means")
    assert "global mean" in cells[row + 2]


def test_notes_are_shown(audit: Audit, diff):
    page, other = Page(render_html(audit)), Page(render_html(diff))
    for shown, notes in ((page, audit_notes(audit)), (other, diff_notes(diff))):
        assert {
            text.replace("−", "-").replace("\N{NO-BREAK SPACE}", " ") for tag, text in shown.texts if tag == "dd"
        } >= set(notes.values())
        headings = [text for tag, text in shown.texts if tag == "dt"][-len(notes) :]
        assert len(set(headings)) == len(notes)
        assert not any("." in heading or re.search(r"[a-z]_[a-z]{2}", heading) for heading in headings)


def test_minus_signs_are_not_hyphens(source: str):
    for tag, text in Page(source).texts:
        if tag not in ("script", "style"):
            assert not re.search(r"(?<![\w-])-[\d.]| - ", text), text


def test_suggested_losses_can_be_imported(audit: Audit):
    from classgap import losses

    advised = {method for entry in audit.classes for cause in entry.diagnosis for method in cause.methods}
    assert advised & {"mr2", "elm", "lmdl"}
    (data,) = Page(render_html(audit)).data
    shown = {
        name for causes in data["causes"].values() for cause in causes for name in data["texts"][cause[2]].split(", ")
    }
    assert {name for name in shown if name.endswith("Loss")} <= set(losses.__all__)
    assert not shown & {"mr2", "elm", "lmdl"}


def test_comparison_lists_gained_and_regressed_classes(diff):
    page = Page(render_html(diff))
    texts = [text.replace("\N{NO-BREAK SPACE}", " ") for _, text in page.texts]
    assert diff_summary(diff) in texts
    assert f"Gained: {len(diff.gained)}" in texts
    assert f"Regressed: {len(diff.regressed)}" in texts
    assert len(diff.gained) > 0
    (data,) = page.data
    facts = {label: values for _, rows in data["facts"] for label, values in rows}
    assert facts["Samples fixed"] == [str(entry.fixed) for entry in diff.classes]
    assert facts["After, %"] == ["" if e.after is None else format_percent(e.after) for e in diff.classes]


def test_own_thirds_have_no_class_counts(diff):
    cells = [text for tag, text in Page(render_html(diff)).texts if tag in ("td", "th")]
    start = cells.index("hard, each model's own")
    assert cells[start + 6 : start + 8] == ["–", "–"]
    hard = cells.index("hard", cells.index("Classes up"))
    assert cells[hard + 6 : hard + 8] == [str(diff.groups["hard"].gained), str(diff.groups["hard"].regressed)]
    assert cells[hard + 5] == format_points(diff.groups["hard"].change.expected_by_chance)


def test_comparison_over_runs(runs_diff):
    page = Page(render_html(runs_diff))
    assert next(text for tag, text in page.texts if tag == "title").startswith("before <b> → after (2 runs each)")
    labels = [text for tag, text in page.texts if tag == "th" and "hard third" in text]
    assert "easy third − hard third, per run" in labels
    assert "easy third − hard third, thirds of the first model" in labels
    assert len(labels) == len(set(labels)) == 3


def test_chart_sorts_ties_by_third():
    targets = np.repeat(np.arange(60), 10)
    labels = np.where((targets % 4 == 0) & (np.arange(600) % 10 < 3), (targets + 1) % 60, targets)  # a quarter has 70 %
    tied = Audit.from_predictions(predictions=labels, targets=targets)
    source = render_html(tied)
    ends = {}
    for kind in ("hard", "medium", "easy"):
        path, _ = re.findall(rf'<path d="([^"]*)" class="dots large {kind}"', source)  # wide and narrow
        places = [float(x) for x in re.findall(r"M([\d.]+) ", path)]
        ends[kind] = min(places), max(places)
    assert ends["hard"][1] < ends["medium"][0] <= ends["medium"][1] < ends["easy"][0]


def test_page_size_is_linear_in_the_number_of_classes(many_audit: Audit):
    larger = make_audit(200, 4000, skill=1.0, name="more")
    sizes = [len(Page(render_html(entry)).elements) for entry in (many_audit, larger)]
    assert sizes[1] < 2.5 * sizes[0]


def test_imagenet_scale_page_is_below_a_megabyte(tmp_path):
    large = with_budgets(make_audit(1000, 50_000, skill=1.0, name="large"))
    assert any(entry.diagnosis for entry in large.classes)
    write_html(large, tmp_path / "large.html")
    assert (tmp_path / "large.html").stat().st_size < 1_000_000


def test_file_is_replaced_atomically(tmp_path, monkeypatch, audit: Audit):
    path = tmp_path / "report.html"
    path.write_text("old")

    def broken(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", broken)
        with pytest.raises(OSError, match="disk full"):
            write_html(audit, path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "old"
    audit.to_html(path)
    assert path.read_text(encoding="utf-8") == render_html(audit)
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
