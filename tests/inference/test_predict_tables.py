"""A model of a table takes new rows by column name, from files, data frames and mappings."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from predict_cases import figures, run
from safetensors.torch import load_file

import classgap as cg
from classgap.cli import main


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    for name, rows in {"train": 120, "test": 50}.items():
        classes = rng.integers(0, 3, rows)
        made = pd.DataFrame({"height": rng.normal(classes, 1), "color": np.array(["red", "blue", "green"])[classes]})
        made.loc[rng.random(rows) < 0.3, "color"] = "red"
        made.loc[rng.random(rows) < 0.1, "height"] = np.nan
        made["species"] = np.array(["ant", "bee", "cow"])[classes]
        made.to_csv(base / f"{name}.csv", index=False)
        made.to_parquet(base / f"{name}.parquet")
    data = f"csv:{base / 'train.csv'},{base / 'test.csv'}:target=species"
    run("train", "--data", data, "--epochs", "4", "--device", "cpu", "--batch-size", "16", "--out", base / "run")
    return base


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_train_predict_audit_gives_the_figures_of_the_run(place: Path, tmp_path: Path, suffix: str) -> None:
    run("predict", place / "run", place / f"test{suffix}", "--out", tmp_path / "new.npz", "--device", "cpu")
    run("audit", tmp_path / "new.npz", "--json", tmp_path / "audit.json")
    assert figures(tmp_path / "audit.json") == figures(place / "run" / "audit.json")
    own = load_file(place / "run" / "predictions.safetensors")
    assert np.array_equal(np.load(tmp_path / "new.npz")["logits"], own["logits"].numpy())


def test_rows_come_from_data_frames_and_mappings(place: Path) -> None:
    loaded = cg.load_run(place / "run", device="cpu")
    expected = load_file(place / "run" / "predictions.safetensors")["logits"]
    test = pd.read_csv(place / "test.csv")
    assert torch.equal(loaded.predict(test[["color", "height"]]).logits, expected)  # the order does not matter
    assert torch.equal(loaded.predict(test.to_dict("records")).logits, expected)
    row = loaded.preprocessing({"color": test.loc[3, "color"], "height": test.loc[3, "height"]})
    torch.testing.assert_close(loaded.model(row[None]), expected[3:4])


def test_the_encoding_is_stored_without_the_data(place: Path) -> None:
    facts = json.loads((place / "run" / "preprocessing.json").read_text())
    height, color = facts["table"]["columns"]
    train = pd.read_csv(place / "train.csv")
    assert height["fill"] == pytest.approx(train["height"].median())
    assert color["categories"] == ["blue", "green", "red"]


def test_a_missing_column_is_named(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pd.read_csv(place / "test.csv").drop(columns="color").to_csv(tmp_path / "x.csv", index=False)
    assert main(["predict", str(place / "run"), str(tmp_path / "x.csv"), "--out", str(tmp_path / "out.npz")]) == 2
    err = capsys.readouterr().err
    assert "'color'" in err
    assert "x.csv" in err
    assert not (tmp_path / "out.npz").exists()
