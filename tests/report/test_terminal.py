import io
import re

import numpy as np
import pytest
from rich.cells import cell_len
from synthetic_audits import make_audit

from classgap.audit import Audit, AuditDiff
from classgap.report import diff_summary, print_audit, print_diff
from classgap.report.formatting import format_percent
from classgap.report.ordering import failing_classes, sort_by_accuracy


def shown(what: Audit | AuditDiff) -> str:
    file = io.StringIO()
    print_audit(what, file) if isinstance(what, Audit) else print_diff(what, file)
    return file.getvalue()


def rows(table: str) -> list[str]:
    """Lines below the header of the first table."""
    body = table.split("──\n", 1)[1].splitlines()
    return [line for line in body if line.strip()]


@pytest.mark.parametrize("which", ["audit", "labels_audit", "many_audit", "diff", "runs_diff"])
@pytest.mark.parametrize("columns", ["80", "200"])
def test_output_fits_80_columns(which: str, columns: str, request: pytest.FixtureRequest, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    text = shown(request.getfixturevalue(which))
    assert max(cell_len(line) for line in text.splitlines()) <= 80
    assert "\x1b" not in text  # control characters in class names are escaped
    assert "\x07" not in text


@pytest.mark.parametrize("which", ["audit", "labels_audit", "many_audit", "diff", "runs_diff"])
@pytest.mark.parametrize("columns", [40, 80])
def test_redirected_output_has_no_trailing_spaces(
    which: str, columns: int, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", str(columns))
    what = request.getfixturevalue(which)
    assert [line for line in shown(what).splitlines() if line != line.rstrip()] == []
    if columns == 80:
        assert shown(what) == f"{what}\n"


@pytest.mark.parametrize("which", ["audit", "labels_audit", "many_audit", "diff", "runs_diff"])
@pytest.mark.parametrize("columns", [40, 60, 66, 72])
def test_narrow_output_does_not_cut_numbers(which: str, columns: int, request: pytest.FixtureRequest, monkeypatch):
    what = request.getfixturevalue(which)
    wide = {word for line in shown(what).splitlines() for word in line.split()}
    monkeypatch.setenv("COLUMNS", str(columns))
    text = shown(what)
    assert max(cell_len(line) for line in text.splitlines()) <= columns
    groups = rows(text[text.index("\nGroups") : text.index("\nGap")])
    assert [line.split()[0] for line in groups] == list(what.groups)
    for line in groups:
        assert "…" not in line
        assert set(line.split()) <= wide  # the same numbers as in the wide output
    tables = text[text.index("\nGap") :].split("\nWhy classes fail")[0]
    assert not re.search(r" [+−]?[\d.,]+…", tables)


def test_narrow_output_keeps_important_columns(audit: Audit, diff: AuditDiff, monkeypatch):
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


def test_audit_output_matches_the_audit(audit: Audit):
    text = shown(audit)
    for group in audit.groups.values():
        line = next(line for line in text.splitlines() if line.startswith(f"{group.name} "))
        assert format_percent(group.accuracy) in line
    worst = min((e for e in audit.classes if e.accuracy is not None), key=lambda e: e.accuracy)
    assert audit.gap.worst_class == worst.accuracy
    assert format_percent(worst.accuracy) in rows(text[text.index("Worst classes") :])[0]
    assert format_percent(audit.gap.easy_hard) in text


def test_numbers_are_never_cut(audit: Audit):
    text = shown(audit)
    for line in rows(text[text.index("Worst classes") : text.index("Most confused")]):
        figures = line.split("·")[-1].split()
        assert not any(figure.endswith("…") and figure[0].isdigit() for figure in figures), line


def test_diff_output_lists_gained_and_regressed_classes(diff: AuditDiff):
    text = shown(diff)
    assert f"Gained: {len(diff.gained)} class" in text
    assert (f"Regressed: {len(diff.regressed)} class" if diff.regressed else "significantly worse") in text
    assert diff_summary(diff).split()[-1] in text
    change = diff.groups["hard"].change
    line = next(line for line in text.splitlines() if line.startswith("hard "))
    assert f"{100 * change.change:+.1f}".replace("-", "−") in line


def swapped(before: list[int], after: list[int]) -> AuditDiff:
    """Compare 20 classes of 40 samples, with the given number of errors in the first classes."""
    targets = np.repeat(np.arange(20), 40)
    place = np.tile(np.arange(40), 20)
    names = [f"class with a name {k:02}" for k in range(20)]
    sides = []
    for wrong in (before, after):
        wrong_K = np.pad(wrong, (0, 20 - len(wrong)))
        labels = np.where(place < wrong_K[targets], (targets + 1) % 20, targets)
        sides.append(Audit.from_predictions(predictions=labels, targets=targets, class_names=names))
    return AuditDiff.from_audits(*sides, n_resamples=50)


def test_class_names_are_not_truncated_in_80_columns():
    text = shown(swapped([30, 0], [0, 30]))
    assert "class with a name 00" in text[text.index("Gained: 1") : text.index("Regressed: 1")]
    assert "class with a name 01" in text[text.index("Regressed: 1") :]
    assert "Largest losses, not" not in text


def test_insignificant_changes_are_shown_in_directions_without_significant_ones():
    text = shown(swapped([30, 0, 0, 0, 0], [0, 1, 4, 3, 2]))
    assert "none significantly worse." in text
    assert "Largest gains" not in text
    both = shown(swapped([0, 2, 3], [1, 0, 0]))
    gains, losses = both.index("Largest gains, not significant"), both.index("Largest losses, not significant")
    assert [line.split()[4] for line in rows(both[gains:losses])] == ["02", "01"]
    assert [line.split()[4] for line in rows(both[losses:])] == ["00"]
    lines = rows(text[text.index("Largest losses, not significant") :])
    assert [line.split()[4] for line in lines] == ["02", "03", "04"]
    assert "+0 −4" in lines[0]
    assert "Largest losses, not" not in shown(swapped([30], [0]))


def test_audit_output_has_every_gap_measure(audit: Audit):
    table = shown(audit).split("Gap", 1)[1].split("Worst classes")[0]
    for name in ("easy_hard", "best_worst", "worst_class", "worst_tenth", "std"):
        assert f" {100 * getattr(audit.gap, name):.1f}" in table
    assert f"{audit.gap.gini:.3g}" in table


def test_gap_of_the_first_side_and_of_each_side():
    # The first ten classes have 20 of 40 correct before and 36 after, the other ten the reverse.
    diff = swapped([20] * 10 + [4] * 10, [4] * 10 + [20] * 10)
    table = shown(diff).split("\nGap", 1)[1].split("Gained:")[0].splitlines()
    kept = next(i for i, line in enumerate(table) if line.startswith("easy third"))
    own = next(i for i, line in enumerate(table[kept + 1 :], kept + 1) if line.startswith("easy third"))
    assert "thirds of the first model" in " ".join(table[kept : kept + 2])
    assert table[kept].split("third,")[1].split()[:3] == ["40.0", "−40.0", "−80.0"]
    assert table[own + 1].strip() == "model's own thirds"
    assert table[own].split("each")[1].split()[:3] == ["40.0", "40.0", "0.0"]


def test_runs_are_shown(runs_diff: AuditDiff):
    assert "over 2 runs per side" in shown(runs_diff)


def test_perfect_and_single_class_audits():
    perfect = Audit.from_predictions(predictions=[0, 1, 1], targets=[0, 1, 1], class_names=["a", "b"])
    assert "No significant gap" in shown(perfect)
    one = Audit.from_predictions(predictions=[0, 0], targets=[0, 0], class_names=["only"])
    assert "100.0 %" in shown(one)
    assert "unseen" not in shown(make_audit(9, 300, skill=1.0, name="few"))


def test_significantly_failing_classes_come_first():
    targets = np.repeat(np.arange(12), [3] + [200] * 11)
    rng = np.random.default_rng(0)
    right = rng.random(len(targets)) < np.array([0.0, 0.4] + [0.9] * 10)[targets]
    audit = Audit.from_predictions(predictions=np.where(right, targets, (targets + 1) % 12), targets=targets)
    assert [entry.index for entry in sort_by_accuracy(audit.classes)][:2] == [0, 1]
    names = {entry.index: entry.diagnosis[0].name for entry in audit.classes if entry.diagnosis}
    assert names[0] == "too-few-test-samples" != names[1]
    order = [entry.index for entry in failing_classes(audit.classes)]
    assert order[0] == 1
    assert set(order) == set(names)
