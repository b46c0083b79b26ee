import csv

import pytest

from classgap.audit import Audit
from classgap.report import write_csv


def test_one_row_per_class(tmp_path, audit: Audit):
    path = tmp_path / "classes.csv"
    write_csv(audit, path)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == list(audit.class_names)
    for row, entry in zip(rows, audit.classes, strict=True):
        assert row["status"] == entry.status
        assert int(row["support"]) == entry.support
        if entry.accuracy is None:
            assert row["accuracy"] == row["interval_low"] == row["top_confusion"] == ""
        else:
            assert float(row["accuracy"]) == entry.accuracy
            assert (float(row["interval_low"]), float(row["interval_high"])) == entry.interval
            assert float(row["spread"]) == pytest.approx(entry.spread)
            assert row["top_confusion"] == (entry.confusions[0].name if entry.confusions else "")
            assert row["cause"] == (entry.diagnosis[0].name if entry.diagnosis else "")


def test_missing_values_are_empty(tmp_path, labels_audit: Audit):
    path = tmp_path / "classes.csv"
    write_csv(labels_audit, path)
    with path.open(newline="", encoding="utf-8") as file:
        assert all(row["spread"] == row["margin"] == row["train_count"] == "" for row in csv.DictReader(file))


def test_names_are_no_formulas(tmp_path):
    names = ["=1+1", "+cmd", "-2+3", "@SUM(1)", "\tx", "-5", "1e-3", "plain"]
    audit = Audit.from_predictions(predictions=list(range(8)), targets=list(range(8)), class_names=names)
    write_csv(audit, tmp_path / "classes.csv")
    with (tmp_path / "classes.csv").open(newline="", encoding="utf-8") as file:
        read = [row["name"] for row in csv.DictReader(file)]
    assert read == ["'=1+1", "'+cmd", "'-2+3", "'@SUM(1)", "'\tx", "-5", "1e-3", "plain"]
