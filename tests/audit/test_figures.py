"""The table of per-class metrics feeds JSON, CSV, pandas and the pages."""

import csv
import dataclasses

import numpy as np
import pandas
import pytest
import torch
from audit_cases import QUICK, audit_of, blobs
from sklearn import metrics

from classgap.audit import Audit
from classgap.audit.diff_results import CLASS_CHANGES
from classgap.audit.figures import FIGURES, SECTIONS, ClassResult, column_names
from classgap.report import write_csv, write_diff_csv
from classgap.theory.mr2 import head_norm, rademacher_bound


@pytest.fixture(scope="module")
def audit():
    targets, features, weight, bias = blobs([1.5, 2, 2.5, 3, 3.5], each=40)
    return audit_of(targets, features, weight, bias, train_counts=[100, 90, 80, 70, 5])


def test_every_field_is_a_row_in_a_known_place(audit):
    for table in (FIGURES, CLASS_CHANGES):
        for figure in table:
            assert figure.section in (*SECTIONS, "")
            assert bool(figure.label) == bool(figure.section)
    assert all(figure.compute is not None for figure in FIGURES)
    assert list(audit.to_dict()["classes"][0]) == [figure.name for figure in FIGURES]
    assert [field.name for field in dataclasses.fields(ClassResult)] == [figure.name for figure in FIGURES]


def test_csv_and_pandas_have_the_columns_of_the_table(audit, tmp_path):
    write_csv(audit, tmp_path / "classes.csv")
    with (tmp_path / "classes.csv").open(newline="") as file:
        header = next(csv.reader(file))
    assert tuple(header) == column_names(FIGURES)
    frame = audit.to_pandas()
    assert [frame.columns[0], *frame.columns[1:]] == [name for name in header if name != "name"]
    read = pandas.read_csv(tmp_path / "classes.csv", index_col="name")
    np.testing.assert_allclose(read["accuracy"], frame["accuracy"])
    np.testing.assert_allclose(read["complexity_fraction"], frame["complexity_fraction"])


def test_pandas_is_indexed_by_class_name(audit):
    frame = audit.to_pandas()
    assert list(frame.index) == list(audit.class_names)
    assert frame.index.name == "class"
    assert frame.loc["class 4", "accuracy"] == audit.classes[4].accuracy
    assert frame.loc["class 4", "interval_low"] == audit.classes[4].interval.low
    assert frame["accuracy"].dtype == float


def test_pandas_of_a_comparison(audit, tmp_path):
    diff = audit.diff(audit)
    frame = diff.to_pandas()
    assert frame.loc["class 0", "change"] == 0
    write_diff_csv([diff], tmp_path / "changes.csv")
    read = pandas.read_csv(tmp_path / "changes.csv", index_col="name")
    assert list(read.columns) == [*frame.columns, "before_name", "after_name"]


def test_without_pandas_the_error_names_it(audit, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match=r"classgap\[pandas\]"):
        audit.to_pandas()


def test_f1_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    targets, predictions = rng.integers(0, 5, 200), rng.integers(0, 7, 200)  # classes 5 and 6 are unseen
    predictions[predictions == 4] = 3  # class 4 is never predicted
    audit = Audit.from_predictions(targets=targets, predictions=predictions, settings=QUICK)
    expected = metrics.f1_score(targets, predictions, labels=range(5), average=None, zero_division=0)
    assert [entry.f1 for entry in audit.classes[:5]] == pytest.approx(expected.tolist())
    assert audit.classes[4].f1 == 0
    assert [entry.f1 for entry in audit.classes[5:]] == [None, None]
    macro = metrics.f1_score(targets, predictions, labels=range(5), average="macro", zero_division=0)
    assert audit.overall.macro_f1 == pytest.approx(macro)


@pytest.mark.parametrize("with_bias", [True, False])
def test_complexity_fractions_against_a_loop(with_bias):
    rng = np.random.default_rng(1)
    targets = np.array([0] * 5 + [1] * 20 + [3] * 9)  # class 2 is unseen
    features = rng.normal(size=(34, 6)) * (1 + targets[:, None])
    weight, bias = rng.normal(size=(4, 6)), rng.normal(size=4)
    audit = Audit.from_predictions(
        features @ weight.T + with_bias * bias,
        targets,
        features=features,
        head=(weight, bias) if with_bias else weight,
        settings=QUICK,
    )
    terms = np.zeros(4)
    for feature, target in zip(features, targets, strict=True):
        terms[target] += feature @ feature + (1 if with_bias else 0)
    fractions = [entry.complexity_fraction for entry in audit.classes]
    assert fractions[2] is None
    assert [each or 0 for each in fractions] == pytest.approx((terms / terms.sum()).tolist())
    # Without a class, the term of Eq. (13) falls by the root of one minus its fraction.
    counts = torch.from_numpy(np.bincount(targets, minlength=4))
    sizes = torch.from_numpy(terms) / counts.clamp(min=1)
    norm = head_norm(torch.from_numpy(weight))
    whole, without = (
        rademacher_bound(part, counts, torch.ones(4), weight_norm=norm)
        for part in (sizes, sizes * torch.tensor([1, 0, 1, 1]))
    )
    assert float(without / whole) ** 2 == pytest.approx(1 - fractions[1])


def test_complexity_fractions_need_features_alone():
    rng = np.random.default_rng(2)
    features, targets, logits = rng.normal(size=(20, 3)), np.arange(20) % 2, rng.normal(size=(20, 2))
    given = Audit.from_predictions(logits, targets, features=features, settings=QUICK)
    terms = [float((features[targets == k] ** 2).sum()) for k in range(2)]  # the norm of the head cancels
    assert [entry.complexity_fraction for entry in given.classes] == pytest.approx(
        [each / sum(terms) for each in terms]
    )
    without = Audit.from_predictions(logits, targets, settings=QUICK)
    assert [entry.complexity_fraction for entry in without.classes] == [None, None]
