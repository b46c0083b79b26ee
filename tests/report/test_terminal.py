import io
import re

import numpy as np
import pytest
from made_audits import make_audit
from rich.cells import cell_len

from classgap.audit import Audit, AuditDiff
from classgap.report import diff_summary, print_audit, print_diff
from classgap.report.formatting import failing_first, hardest_first, percent


def shown(what: Audit | AuditDiff) -> str:
    file = io.StringIO()
    print_audit(what, file) if isinstance(what, Audit) else print_diff(what, file)
    return file.getvalue()


@pytest.mark.parametrize("which", ["audit", "labels_audit", "many_audit", "diff", "seeds_diff"])
@pytest.mark.parametrize("columns", ["80", "200"])
def test_a_page_fits_eighty_columns(which: str, columns: str, request: pytest.FixtureRequest, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    text = shown(request.getfixturevalue(which))
    assert max(cell_len(line) for line in text.splitlines()) <= 80
    assert "\x1b" not in text  # nor does a class name reach the terminal as a command
    assert "\x07" not in text


@pytest.mark.parametrize("which", ["audit", "labels_audit", "many_audit", "diff", "seeds_diff"])
@pytest.mark.parametrize("columns", [40, 60, 66, 72])
def test_a_narrow_page_keeps_row_names_and_whole_figures(
    which: str, columns: int, request: pytest.FixtureRequest, monkeypatch
):
    what = request.getfixturevalue(which)
    wide = {word for line in shown(what).splitlines() for word in line.split()}
    monkeypatch.setenv("COLUMNS", str(columns))
    text = shown(what)
    assert max(cell_len(line) for line in text.splitlines()) <= columns
    groups = text[text.index("\nGroups") : text.index("\nGap")].splitlines()[4:]
    assert [line.split()[0] for line in groups if line.strip()] == list(what.groups)
    for line in groups:
        assert "…" not in line
        assert set(line.split()) <= wide  # every figure as it is where there is room
    tables = text[text.index("\nGap") :].split("\nWhy they fail")[0]
    assert not re.search(r" [+−]?[\d.,]+…", tables)


def test_a_narrow_page_has_the_columns_that_matter_most(audit: Audit, diff: AuditDiff, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    text = shown(audit)
    groups = text[text.index("\nGroups") : text.index("\nGap")]
    for group in audit.groups.values():
        assert re.search(rf"^{group.name} .* {100 * group.accuracy:.1f} ", groups, re.MULTILINE)
        assert f"{100 * group.interval.low:.1f} to {100 * group.interval.high:.1f}" in groups
    text = shown(diff)
    groups = text[text.index("\nGroups") : text.index("\nGap")]
    for group in diff.groups.values():
        change = f"{100 * abs(group.change.change):.1f}"
        assert re.search(rf"^{group.name} .*[ +−]{change} ", groups, re.MULTILINE)


def test_class_names_are_not_markup(audit: Audit):
    assert "[red]brackets" in shown(audit)


def test_the_audit_page_shows_the_audit_s_figures(audit: Audit):
    text = shown(audit)
    for group in audit.groups.values():
        line = next(line for line in text.splitlines() if line.startswith(f"{group.name} "))
        assert percent(group.accuracy) in line
    worst = min((e for e in audit.classes if e.accuracy is not None), key=lambda e: e.accuracy)
    assert audit.gap.worst_class == worst.accuracy
    after = text[text.index("Worst classes") :].splitlines()
    assert percent(worst.accuracy) in after[3]
    assert percent(audit.gap.easy_hard) in text


def test_figures_are_never_cut(audit: Audit):
    text = shown(audit)
    table = text[text.index("Worst classes") : text.index("Most confused")].splitlines()[3:]
    for line in [line for line in table if line.strip()]:
        figures = line.split("·")[-1].split()
        assert not any(figure.endswith("…") and figure[0].isdigit() for figure in figures), line


def test_the_diff_page_names_who_gained_and_who_paid(diff: AuditDiff):
    text = shown(diff)
    assert f"Who gained: {len(diff.gained)}" in text
    assert "Who paid" in text
    assert diff_summary(diff).split()[-1] in text
    change = diff.groups["hard"].change
    line = next(line for line in text.splitlines() if line.startswith("hard "))
    assert f"{100 * change.change:+.1f}".replace("-", "−") in line


def swapped(before: list[int], after: list[int]) -> AuditDiff:
    """Twenty classes with long names and 40 samples each, of which so many are wrong in the first classes."""
    targets = np.repeat(np.arange(20), 40)
    place = np.tile(np.arange(40), 20)
    names = [f"class with a name {k:02}" for k in range(20)]
    sides = []
    for wrong in (before, after):
        wrong_K = np.pad(wrong, (0, 20 - len(wrong)))
        labels = np.where(place < wrong_K[targets], (targets + 1) % 20, targets)
        sides.append(Audit.from_predictions(predictions=labels, targets=targets, class_names=names))
    return AuditDiff.from_audits(*sides, n_resamples=50)


def test_names_of_who_gained_and_paid_have_room():
    text = shown(swapped([30, 0], [0, 30]))
    assert "class with a name 00" in text[text.index("Who gained") : text.index("Who paid")]
    assert "class with a name 01" in text[text.index("Who paid") :]
    assert "Largest losses" not in text


def test_if_none_paid_for_certain_the_largest_losses_are_shown_as_unclear():
    text = shown(swapped([30, 0, 0, 0, 0], [0, 1, 4, 3, 2]))
    assert "Who paid: no class for certain." in text
    lines = text[text.index("Largest losses, perhaps by chance") :].splitlines()[3:6]
    assert [line.split()[4] for line in lines] == ["02", "03", "04"]
    assert "+0 −4" in lines[0]
    assert "Largest losses" not in shown(swapped([30], [0]))


def test_the_audit_page_has_every_gap_measure(audit: Audit):
    table = shown(audit).split("Gap", 1)[1].split("Worst classes")[0]
    for name in ("easy_hard", "best_worst", "worst_class", "worst_tenth", "std"):
        assert f" {100 * getattr(audit.gap, name):.1f}" in table
    assert f"{audit.gap.gini:.3g}" in table


def test_the_gap_of_the_thirds_of_before_stands_beside_that_of_each_side_s_own():
    # The first ten classes have 20 of 40 right before and 36 after; the other way round for the rest.
    diff = swapped([20] * 10 + [4] * 10, [4] * 10 + [20] * 10)
    table = shown(diff).split("\nGap", 1)[1].split("Who gained")[0].splitlines()
    kept = next(i for i, line in enumerate(table) if line.startswith("easy third"))
    own = next(i for i, line in enumerate(table[kept + 1 :], kept + 1) if line.startswith("easy third"))
    assert table[kept + 1].strip() == "thirds of before"
    assert table[kept].split("third,")[1].split()[:3] == ["40.0", "−40.0", "−80.0"]
    assert table[own + 1].strip() == "side's own thirds"
    assert table[own].split("each")[1].split()[:3] == ["40.0", "40.0", "0.0"]


def test_seeds_are_shown(seeds_diff: AuditDiff):
    assert "Over 2 seeds" in shown(seeds_diff)


def test_two_classes_and_no_mistakes_make_a_page():
    perfect = Audit.from_predictions(predictions=[0, 1, 1], targets=[0, 1, 1], class_names=["a", "b"])
    assert "No clear gap" in shown(perfect)
    one = Audit.from_predictions(predictions=[0, 0], targets=[0, 0], class_names=["only"])
    assert "100.0 %" in shown(one)
    assert "unseen" not in shown(make_audit(9, 300, skill=1.0, name="few"))


def test_classes_that_fail_for_certain_come_before_those_that_chance_may_explain():
    targets = np.repeat(np.arange(12), [3] + [200] * 11)
    rng = np.random.default_rng(0)
    right = rng.random(len(targets)) < np.array([0.0, 0.4] + [0.9] * 10)[targets]
    audit = Audit.from_predictions(predictions=np.where(right, targets, (targets + 1) % 12), targets=targets)
    assert [entry.index for entry in hardest_first(audit.classes)][:2] == [0, 1]
    names = {entry.index: entry.diagnosis[0].name for entry in audit.classes if entry.diagnosis}
    assert names[0] == "too-few-test-samples" != names[1]
    order = [entry.index for entry in failing_first(audit.classes)]
    assert order[0] == 1
    assert set(order) == set(names)
