"""Inputs that are used together: keys, shards, valid labels, slices, file names and large test sets."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from classgap.audit import Audit, AuditSettings, compare, read_predictions
from classgap.audit.io.sample_columns import read_sample_column
from classgap.cli import main

N = 24
RNG = np.random.default_rng(0)
TARGETS = np.arange(N) % 3
PREDICTED = np.where(np.arange(N) % 4 == 0, (TARGETS + 1) % 3, TARGETS)
IDS = np.array([f"img/{i:04d}.png" for i in RNG.permutation(N)])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"filename": IDS, "target": TARGETS, "prediction": PREDICTED, "camera": TARGETS % 2})
    frame["valid_labels"] = [f"{t}|{p}" for t, p in zip(TARGETS, PREDICTED, strict=True)]
    frame.to_csv("all.csv")  # with the row numbers of pandas
    frame.to_parquet("all.parquet")
    for part in range(2):
        rows = slice(part * N // 2, (part + 1) * N // 2)
        frame[rows].to_csv(f"part-{part}.csv", index=False)
        sets = [sorted({t, p}) for t, p in zip(TARGETS[rows], PREDICTED[rows], strict=True)]
        np.savez(
            f"part-{part}.npz",
            targets=TARGETS[rows],
            predictions=PREDICTED[rows],
            filenames=IDS[rows],
            unused=RNG.normal(size=N // 2),
            camera=TARGETS[rows] % 2,
            valid_labels=np.concatenate(sets),
            valid_labels_offsets=np.cumsum([0, *map(len, sets)]).astype(np.uint64),
        )
    return tmp_path


@pytest.mark.parametrize("source", ["all.csv", "all.parquet", "part-*.csv", "part-*.npz"])
def test_every_format_gives_the_same_samples(source: str, folder: Path):
    key = "filenames" if source.endswith("npz") else "filename"
    data = read_predictions(source, key=key, slices=["camera"])
    order = np.argsort(read_predictions("all.csv", key="filename").index_N)
    assert np.array_equal(data.index_N[order], read_predictions("all.csv", key="filename").index_N)
    plain = read_predictions("all.csv")
    right = {(t, p) for t, p in zip(data.targets_N, data.predictions_N, strict=True)}
    assert right == {(t, p) for t, p in zip(plain.targets_N, plain.predictions_N, strict=True)}
    assert data.valid_labels is not None
    assert data.valid_labels.contain(data.targets_N).all()
    assert data.valid_labels.contain(data.predictions_N).all()
    codes = np.array([int(data.slices["camera"].values[code]) for code in data.slices["camera"].codes_N])
    assert np.array_equal(codes, data.targets_N % 2)


def test_offsets_of_each_shard_are_checked(folder: Path):
    content = dict(np.load("part-0.npz"))
    content["valid_labels_offsets"] = content["valid_labels_offsets"][:-1]
    np.savez("part-0.npz", **content)
    with pytest.raises(ValueError, match="valid_labels_offsets"):
        read_predictions("part-*.npz")


def test_file_names_follow_the_key(folder: Path):
    frame = pd.DataFrame({"id": [5, 3, 9], "filename": ["five", "three", "nine"], "target": [0, 1, 0]})
    frame["prediction"] = [0, 0, 1]
    frame.to_csv("ids.csv", index=False)
    assert read_sample_column(Path("ids.csv"), "filenames", "id") == {5: "five", 3: "three", 9: "nine"}


def test_rankings_are_matched_by_the_key(folder: Path):
    audit = Audit.from_file("all.csv", key="filename", rank_by="all.csv")
    assert "unpaired-ranking" not in {notice.code for notice in audit.notices}
    assert audit.gap.easy_hard == Audit.from_file("all.csv").gap.easy_hard


def test_ids_on_one_side_only_are_not_matched_by_position(folder: Path):
    with_ids = Audit.from_predictions(targets=TARGETS, predictions=PREDICTED, index=IDS)
    without = Audit.from_predictions(targets=TARGETS, predictions=PREDICTED)
    with pytest.raises(ValueError, match="sample ids and others have none"):
        compare(with_ids, without)
    numbered = Audit.from_predictions(targets=TARGETS, predictions=PREDICTED, index=np.arange(N) + 1)
    assert compare(numbered, without).overall.change == 0


def test_string_ids_match_files_of_valid_labels(folder: Path):
    Path("sets.json").write_text("{" + ", ".join(f'"{key}": [{t}]' for key, t in zip(IDS, TARGETS, strict=True)) + "}")
    data = read_predictions("all.csv", key="filename", valid_labels="sets.json")
    assert data.valid_labels is not None
    assert np.array_equal(data.valid_labels.classes, data.targets_N)


def test_shards_are_not_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]):
    before = Path("part-0.csv").read_bytes()
    for words in (["compare", "part-*.csv", "all.csv"], ["audit", "part-*.csv"]):
        assert main([*words, "--csv", "part-0.csv"]) == 2
        assert "would overwrite an input" in capsys.readouterr().err
    assert Path("part-0.csv").read_bytes() == before


def test_listed_samples_of_large_test_sets_are_rows_of_the_whole():
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 4, 3000)
    logits = 3.0 * np.eye(4)[targets] + rng.normal(size=(3000, 4))
    audit = Audit.from_predictions(logits, targets, settings=AuditSettings(map="none", diagnosis_samples=400))
    wrong = np.flatnonzero(logits.argmax(axis=1) != targets)
    listed = [number for entry in audit.classes for number in entry.confident_errors]
    assert listed
    assert set(listed) <= set(wrong.tolist())
    for k, entry in enumerate(audit.classes):
        assert all(targets[number] == k for number in entry.confident_errors)
