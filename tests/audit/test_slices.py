from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import fisher_exact

from classgap.audit import Audit, AuditSettings
from classgap.audit.io.readers import read_predictions
from classgap.audit.io.slice_columns import MAX_VALUES, check_slices
from classgap.audit.metrics.slices import SliceCounts, countable_tests, slice_result

QUICK = AuditSettings(map="none", n_resamples=20, diagnose=False)


def drawn(rng, *, classes=6, each=60, values=4, carried=0.0):
    """Errors that are independent of the slice, except that slice 0 of the last class has more by ``carried``."""
    targets = np.repeat(np.arange(classes), each)
    codes = rng.integers(0, values, len(targets))
    rate = np.linspace(0.1, 0.5, classes)[targets]
    rate = rate + carried * ((targets == classes - 1) & (codes == 0))
    return targets, rng.random(len(targets)) >= rate, codes


def slow_holm(p):
    """Reject step by step, as the method is stated."""
    adjusted, so_far = {}, 0.0
    for rank, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        so_far = max(so_far, min(1.0, p[i] * (len(p) - rank)))
        adjusted[i] = so_far
    return [adjusted[i] for i in range(len(p))]


def test_p_values_equal_fishers_test():
    targets, correct, codes = drawn(np.random.default_rng(0), carried=0.4)
    counts = SliceCounts.from_samples(targets, correct, codes, np.arange(6))
    assert len(counts.class_P) == 24
    for i, (k, value) in enumerate(zip(counts.class_P, counts.code_P, strict=True)):
        inside, outside = (targets == k) & (codes == value), (targets == k) & (codes != value)
        table = [
            [(~correct[inside]).sum(), correct[inside].sum()],
            [(~correct[outside]).sum(), correct[outside].sum()],
        ]
        assert counts.p_values[i] == pytest.approx(fisher_exact(table, alternative="greater").pvalue)
        errors, size = (~correct[targets == k]).sum(), inside.sum()
        most = min(errors, size)
        extreme = [[most, size - most], [errors - most, outside.sum() - errors + most]]
        assert counts.least_p_values[i] == pytest.approx(fisher_exact(extreme, alternative="greater").pvalue)


def test_only_the_slice_that_carries_the_errors_is_significant():
    targets, correct, codes = drawn(np.random.default_rng(1), carried=0.5)
    predictions = np.where(correct, targets, (targets + 1) % 6)
    audit = Audit.from_predictions(
        targets=targets, predictions=predictions, slices={"camera": [f"cam {c}" for c in codes]}, settings=QUICK
    )
    found = [entry for entry in audit.slices.classes if entry.significant]
    assert [(entry.name, entry.column, entry.value) for entry in found] == [("5", "camera", "cam 0")]
    inside = (targets == 5) & (codes == 0)
    assert (found[0].support, found[0].errors) == (inside.sum(), (~correct[inside]).sum())
    assert (found[0].other_support, found[0].other_errors) == (
        60 - inside.sum(),
        (~correct[(targets == 5) & ~inside]).sum(),
    )
    hard = [audit.class_names.index(name) for name in audit.groups["hard"].members]
    assert audit.slices.n_classes == len(hard) == 2
    assert Audit.from_dict(audit.to_dict()) == audit


def test_the_correction_is_holms_over_the_countable_tests():
    targets, correct, codes = drawn(np.random.default_rng(2), values=12, each=40, carried=0.4)
    columns = check_slices({"a": codes, "b": codes % 3}, len(targets))
    result = slice_result(targets, correct, columns, [str(k) for k in range(6)], np.arange(6), 0.95)
    pairs = []
    for name, column in columns.items():
        counts = SliceCounts.from_samples(targets, correct, column.codes_N, np.arange(6))
        for i in range(len(counts.class_P)):
            key = (str(counts.class_P[i]), name, column.values[counts.code_P[i]])
            pairs.append((key, counts.p_values[i], counts.least_p_values[i]))
    m = next(m for m in range(1, len(pairs) + 1) if sum(least <= 0.05 / m for _, _, least in pairs) <= m)
    kept = [(key, p) for key, p, least in pairs if least <= 0.05 / m]
    expected = dict(zip([key for key, _ in kept], slow_holm([p for _, p in kept]), strict=True))
    assert (result.n_pairs, result.n_tests) == (len(pairs), len(kept))
    assert 0 < len(kept) < len(pairs)
    found = {(entry.name, entry.column, entry.value): entry.adjusted_p_value for entry in result.classes}
    assert found.keys() == expected.keys()
    assert all(found[key] == pytest.approx(expected[key]) for key in expected)


@pytest.mark.parametrize(("values", "each"), [(2, 60), (5, 40), (8, 80)])
def test_slices_that_do_not_matter_are_rarely_named(values, each):
    """False alarms over 300 data sets without an effect: at most 5 %, up to three standard errors of the simulation."""
    rng = np.random.default_rng(values)
    alarms = uncorrected = 0
    for _ in range(300):
        targets, correct, codes = drawn(rng, values=values, each=each)
        columns = check_slices(codes, len(targets))
        accuracy = np.array([correct[targets == k].mean() for k in range(6)])
        failing = np.flatnonzero(accuracy < accuracy.mean())  # chosen by the same samples, as in an audit
        found = slice_result(targets, correct, columns, list("abcdef"), failing, 0.95).classes
        alarms += any(entry.significant for entry in found)
        uncorrected += any(entry.p_value < 0.05 for entry in found)
    assert alarms / 300 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)
    assert uncorrected / 300 > 0.1  # the simulation would show a missing correction


def test_slices_over_all_classes_equal_a_loop():
    targets, correct, codes = drawn(np.random.default_rng(3))
    result = slice_result(targets, correct, check_slices(codes, len(targets)), list("abcdef"), np.arange(0), 0.95)
    accuracy = {k: correct[targets == k].mean() for k in range(6)}
    for entry in result.columns["slice"]:
        inside = codes == int(entry.value)
        assert entry.support == inside.sum()
        assert entry.accuracy == pytest.approx(correct[inside].mean())
        assert entry.expected_accuracy == pytest.approx(np.mean([accuracy[k] for k in targets[inside]]))
    assert (result.n_pairs, result.n_tests, result.classes) == (0, 0, ())


def test_no_test_is_counted_if_none_can_be_significant():
    assert not countable_tests(np.array([0.2, 0.5]), 0.05).any()
    assert countable_tests(np.array([]), 0.05).tolist() == []


def test_columns_of_all_kinds():
    column = check_slices(torch.tensor([2, 1, 2]), 3)["slice"]
    assert [column.values[code] for code in column.codes_N] == ["2", "1", "2"]
    column = check_slices({"site": [None, "", float("nan")]}, 3)["site"]
    assert column.values == ("(empty)",)


@pytest.mark.parametrize(
    ("slices", "facts"),
    [
        ({"camera": ["a", "b"]}, ("slices['camera']", "(3,)", "(2,)")),
        ([["a"], ["b"], ["c"]], ("slices", "(3, 1)")),
        ({}, ("slices",)),
    ],
)
def test_invalid_columns_are_named(slices, facts):
    with pytest.raises(ValueError, match="slices") as error:
        check_slices(slices, 3)
    assert all(fact in str(error.value) for fact in facts), error.value


def test_measurements_are_no_slices():
    with pytest.raises(ValueError, match=str(MAX_VALUES)):
        check_slices(np.arange(MAX_VALUES + 1), MAX_VALUES + 1)


def test_files_name_their_columns(tmp_path: Path):
    (tmp_path / "a.csv").write_text("target,prediction,camera,site\ncat,cat,left,1\ndog,cat,right,2\ndog,dog,,1\n")
    (tmp_path / "b.csv").write_text("target,cat,dog,camera\ncat,2,1,left\ndog,3,1,right\ndog,1,2,\n")
    np.savez(
        tmp_path / "c.npz", targets=[0, 1, 1], predictions=[0, 0, 1], camera=["left", "right", ""], index=[3, 1, 2]
    )
    for name in ("a.csv", "b.csv"):
        column = read_predictions(tmp_path / name, slices=["camera"]).slices["camera"]
        assert [column.values[code] for code in column.codes_N] == ["left", "right", "(empty)"]
    data = read_predictions(tmp_path / "c.npz", slices=["camera"])
    assert [data.slices["camera"].values[code] for code in data.slices["camera"].codes_N] == [
        "right",
        "(empty)",
        "left",
    ]
    assert not any("unused" in notice.code for notice in data.notices)
    assert [*read_predictions(tmp_path / "a.csv", slices=["site", "camera"]).slices] == ["site", "camera"]
    for name, column, fact in (
        ("a.csv", "camra", "camera"),
        ("c.npz", "site", "'site'"),
        ("c.npz", "targets", "'targets'"),
    ):
        with pytest.raises(ValueError, match=fact):
            read_predictions(tmp_path / name, slices=[column])


def test_report_says_if_no_slice_could_be_tested():
    from classgap.audit import Audit
    from classgap.report.slice_section import slice_sentences

    targets = np.repeat([0, 1], 40)
    predictions = np.ones(80, dtype=int)  # class 0 is never right, so no slice can be worse than the rest
    sites = np.array(["a", "b"])[np.arange(80) % 2]
    audit = Audit.from_predictions(predictions=predictions, targets=targets, slices={"site": sites})
    assert (audit.slices.n_pairs, audit.slices.n_tests) == (2, 0)
    (sentence,) = slice_sentences(audit)
    assert "could be tested" in sentence
    assert "2 pairs" in sentence
