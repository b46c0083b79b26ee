"""No CSV file contains text that a spreadsheet would run as a formula, and such names survive where files are read."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch

from classgap._csv_cells import escape_cell, unescape_cell
from classgap.audit import read_predictions
from classgap.audit.io.sample_columns import read_sample_column
from classgap.inference.prediction_files import write_predictions
from classgap.inference.results import PredictResult
from classgap.inference.samples import InputSamples
from classgap.report.reproduction_files import write_reproduction_csv
from classgap.reproduce.cells import make_plan
from classgap.reproduce.results import collect
from classgap.reproduce.schema import Recipe
from classgap.reproduce.store import ResultStore

HOSTILE = ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "'=quoted", "-0.5", "cat")


def is_formula(cell: str) -> bool:
    """An independent rule: it begins as a formula, and is no number."""
    try:
        float(cell)
    except ValueError:
        return cell[:1] in ("=", "+", "-", "@", "\t", "\r")
    return False


def cells(path: Path) -> list[str]:
    with path.open(newline="") as file:
        return [cell for row in csv.reader(file) for cell in row]


@pytest.mark.parametrize("name", [*HOSTILE, "\tx", "\rx", "", "''=a", "'"])
def test_escaped_cells_are_read_back(name):
    assert not is_formula(escape_cell(name))
    assert unescape_cell(escape_cell(name)) == name


def test_predictions_have_no_formulas_and_keep_their_names(tmp_path):
    targets = torch.arange(14) % 7
    logits = 3 * torch.eye(7)[targets.roll(1)]
    result = PredictResult(logits, logits.softmax(1), HOSTILE)
    samples = InputSamples(torch.zeros(14, 2), targets=targets, filenames=tuple(f"={i}.png" for i in range(14)))
    write_predictions(tmp_path / "p.csv", result, samples, top_k=2)
    assert not any(map(is_formula, cells(tmp_path / "p.csv")))
    found = read_predictions(tmp_path / "p.csv")
    assert found.class_names == HOSTILE
    assert found.targets_N.tolist() == targets.tolist()
    np.testing.assert_array_equal(np.asarray(found.logits_NK[:]), logits.numpy())
    assert read_sample_column(tmp_path / "p.csv", "filenames") == {i: f"={i}.png" for i in range(14)}


def test_reproductions_have_no_formulas(tmp_path):
    part = {
        "shows": "=1+1",
        "rows": {"=1+1": {"method": "erm"}},
        "columns": {"@SUM(A1)": {"metric": "accuracy"}},
        "values": {"=1+1": [90.0]},
    }
    settings = {"data": "two-moons:n_train=20:n_test=20", "epochs": 1}
    content = {"name": "-x", "paper": "elm", "item": "=1", "title": "=1", "base": "elm-moons", "settings": settings}
    plan = make_plan(Recipe.model_validate({**content, "parts": {"+a": part}}), "tiny", 1)
    store = ResultStore(tmp_path)
    hostile = {"settings": {"data": "=1+1", "method": "@SUM(A1)"}, "version": "+1+1", "metrics": {"accuracy": -0.5}}
    store.add({"key": "0a", "seed": 0, **hostile})
    store.rebuild_index()
    write_reproduction_csv([collect(plan, store)], tmp_path / "t.csv")
    for path in (store.index, tmp_path / "t.csv"):
        assert len(cells(path)) > 20
        assert not any(map(is_formula, cells(path)))
