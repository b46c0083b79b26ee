"""Tables: columns are encoded as scikit-learn does, from training rows alone."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from classgap.data import load

CITIES = ("Rome", "Oslo", "")


def frame(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    made = pd.DataFrame(
        {
            "age": rng.normal(40, 9, rows).round(1),
            "city": rng.choice(CITIES, rows),
            "rooms": rng.integers(1, 5, rows),
            "target": rng.choice(["low", "mid", "top"], rows),
        }
    )
    made.loc[made.index % 7 == 3, "age"] = np.nan
    return made


def expected(train: pd.DataFrame, test: pd.DataFrame) -> np.ndarray:
    """Encode the test rows with scikit-learn's own pipeline."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    categories = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encoder = make_column_transformer((numbers, ["age"]), (categories, ["city"]), (StandardScaler(), ["rooms"]))
    return encoder.fit(train).transform(test)


def write(path: Path, made: pd.DataFrame) -> Path:
    if path.suffix == ".parquet":
        made.to_parquet(path)
    else:
        made.to_csv(path)  # with the unnamed column of row numbers
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_are_encoded_as_by_scikit_learn(tmp_path: Path, suffix: str) -> None:
    train, test = frame(60), frame(30, seed=1)
    test.loc[0, "city"] = "Bern"  # no training row has it
    paths = [write(tmp_path / f"{name}{suffix}", each) for name, each in (("train", train), ("test", test))]
    data = load(f"{suffix[1:]}:{paths[0]},{paths[1]}")
    assert data.class_names == ("low", "mid", "top")
    assert data.shape == (5,)
    got = data.test.inputs[torch.arange(30)].numpy()
    np.testing.assert_allclose(got, expected(train, test), atol=1e-6)
    assert [data.class_names[k] for k in data.test.targets] == test["target"].tolist()


def test_a_drawn_test_split_does_not_enter_the_statistics(tmp_path: Path) -> None:
    made = frame(80)
    data = load(f"csv:{write(tmp_path / 'x.csv', made)}:test_fraction=0.25")
    train, test = (made.iloc[each.index.tolist()] for each in (data.train, data.test))
    assert len(train) + len(test) == 80
    np.testing.assert_allclose(data.test.inputs[torch.arange(len(test))].numpy(), expected(train, test), atol=1e-6)
    assert "drawn" in data.notes[0]


def test_options_choose_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", frame(60).rename(columns={"target": "class"}))
    data = load(f"{path}:target=class:drop=age,city:categorical=rooms")
    assert data.shape == (4,)  # rooms 1 to 4
    inputs = data.train.inputs[torch.arange(len(data.train))]
    assert set(inputs.flatten().tolist()) == {0.0, 1.0}
    assert torch.equal(inputs.sum(dim=1), torch.ones(len(data.train)))


def test_class_numbers_are_in_numeric_order(tmp_path: Path) -> None:
    made = frame(60)
    made["target"] = np.arange(60) % 12
    assert load(f"csv:{write(tmp_path / 'x.csv', made)}").class_names == tuple(map(str, range(12)))


BAD = {
    "no target": ("a,b\n1,2\n", "target=NAME"),
    "missing class": ("a,target\n1,x\n2,\n", "row 2"),
    "infinite": ("a,target\ninf,x\n2,y\n2,x\n2,y\n", "'inf'"),
    "ragged": ("a,target\n1,x,3\n", "line 2"),
    "no rows": ("a,target\n", "no rows"),
    "twice": ("a,a,target\n1,2,x\n", "'a'"),
    "no columns": ("target\nx\ny\nx\ny\n", "besides the target"),
    "empty column": ("a,b,target\n,1,x\n,2,x\n,2,y\n,2,y\n", "drop=a"),
}


@pytest.mark.parametrize("name", list(BAD))
def test_bad_tables_are_named(tmp_path: Path, name: str) -> None:
    content, fact = BAD[name]
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(ValueError) as error:  # noqa: PT011  # the fact is checked below
        load(f"csv:{tmp_path / 'x.csv'}")
    assert fact in str(error.value)


def test_too_many_categories_are_named(tmp_path: Path) -> None:
    with (tmp_path / "x.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "target"), *((f"n{i}", i % 2) for i in range(600))])
    with pytest.raises(ValueError, match="drop=id"):
        load(f"csv:{tmp_path / 'x.csv'}")


def test_files_that_do_not_fit_are_named(tmp_path: Path) -> None:
    train, test = frame(60), frame(20, seed=1)
    write(tmp_path / "train.csv", train)
    write(tmp_path / "short.csv", test.drop(columns="city"))
    write(tmp_path / "new.csv", test.assign(target="other"))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    for other, fact in {"short.csv": "'city'", "new.csv": "'other'", "gone.csv": "gone.csv"}.items():
        with pytest.raises(ValueError, match=fact):
            load(f"csv:{tmp_path / 'train.csv'},{tmp_path / other}")
    with pytest.raises(ValueError, match=r"broken\.parquet"):
        load(f"parquet:{tmp_path / 'broken.parquet'}")
    with pytest.raises(ValueError, match="'size'"):
        load(f"csv:{tmp_path / 'train.csv'}:drop=size")


def test_a_column_that_numbers_the_rows_is_named(tmp_path: Path) -> None:
    made = frame(60).assign(id=np.random.default_rng(2).permutation(60) + 1000)
    made.to_csv(tmp_path / "table.csv", index=False)
    assert [note for note in load(f"csv:{tmp_path / 'table.csv'}").notes if "drop=id" in note and "rooms" not in note]
    assert not [note for note in load(f"csv:{tmp_path / 'table.csv'}:drop=id").notes if "drop=" in note]
