"""Datasets of Hugging Face ``datasets``, saved to disk or in Parquet and Arrow files; no network."""

import io
import logging
import shutil
from pathlib import Path

import datasets
import numpy as np
import pytest
import torch
from PIL import Image

import classgap as cg
from classgap.data import load
from classgap.data.sources.encoded_images import EncodedImages
from classgap.engine import RunDirectory
from classgap.engine.errors import TrainingInterrupted
from classgap.engine.storage.checkpoint import load_weights
from classgap.engine.storage.fingerprint import fingerprint
from classgap.inference.inputs import read_inputs
from stop_after import StopAfter
from text_encoders import make_texts, save_encoder

NAMES = ["cat", "dog", "fox"]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLASSGAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)


def pixels(count: int, seed: int, side: int = 8) -> np.ndarray:
    """Noise in three colors, one per class."""
    made = np.random.default_rng(seed).integers(0, 120, (count, side, side, 3), dtype=np.uint8)
    made[np.arange(count), :, :, np.arange(count) % 3] += 100
    return made


def images(count: int, seed: int, **columns: list) -> datasets.Dataset:
    features = {"image": datasets.Image(), "label": datasets.ClassLabel(names=NAMES)}
    rows = {"image": [Image.fromarray(each) for each in pixels(count, seed)], "label": [k % 3 for k in range(count)]}
    made = datasets.Dataset.from_dict(rows, features=datasets.Features(features))
    for name, values in columns.items():
        made = made.add_column(name, values)
    return made


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    splits = {"train": images(24, 0), "validation": images(6, 1), "test": images(9, 2)}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "photos")
    return tmp_path / "photos"


def all_rows(split: cg.data.Split) -> torch.Tensor:
    return split.inputs[torch.arange(len(split))]


def test_images_with_the_names_of_the_class_label(photos: Path) -> None:
    data = load(f"hf:{photos}")
    assert data.class_names == tuple(NAMES)
    assert (data.kind, data.shape) == ("image", (3, 8, 8))
    for split, (count, seed) in {"train": (24, 0), "validation": (6, 1), "test": (9, 2)}.items():
        found = getattr(data, split)
        np.testing.assert_array_equal(all_rows(found).numpy(), pixels(count, seed).transpose(0, 3, 1, 2))
        assert found.targets.tolist() == [k % 3 for k in range(count)]
    assert data.mean == pytest.approx(pixels(24, 0).mean(axis=(0, 1, 2)) / 255)  # small images: their own statistics
    assert load(f"hf:{photos}:size=4").shape == (3, 4, 4)
    assert fingerprint(load(str(photos))) == fingerprint(data)  # the path is enough


def test_images_beyond_the_limit_are_decoded_on_demand(photos: Path) -> None:
    kept, lazy = load(f"hf:{photos}"), load(f"hf:{photos}:cache_gb=0")
    assert isinstance(lazy.train.inputs, EncodedImages)
    rows = torch.tensor([5, 2, 23])
    assert torch.equal(lazy.train.inputs[rows], kept.train.inputs[rows])
    assert fingerprint(lazy) == fingerprint(kept)


def test_splits_can_be_chosen(photos: Path, tmp_path: Path) -> None:
    data = load(f"hf:{photos}:test_split=validation")
    assert (len(data.test), data.validation) == (6, None)
    images(30, 0).save_to_disk(tmp_path / "unsplit")
    drawn = load(f"hf:{tmp_path / 'unsplit'}:test_fraction=0.2")
    assert (len(drawn.train), len(drawn.test)) == (24, 6)
    assert "6 rows were drawn" in drawn.notes[0]
    with pytest.raises(ValueError, match="train, validation, test"):
        load(f"hf:{photos}:train_split=training")
    with pytest.raises(ValueError, match="test_fraction"):
        load(f"hf:{photos}:test_fraction=0.2")


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_parquet_and_arrow_files(tmp_path: Path, suffix: str) -> None:
    for name, (count, seed) in {"train": (12, 0), "test": (6, 1)}.items():
        made = images(count, seed)
        if suffix == "parquet":
            made.to_parquet(tmp_path / "train.parquet" if name == "train" else tmp_path / "test.parquet")
        else:
            made.save_to_disk(tmp_path / name)
            next((tmp_path / name).glob("*.arrow")).rename(tmp_path / f"{name}.arrow")
    data = load(f"hf:{tmp_path / f'train.{suffix}'},{tmp_path / f'test.{suffix}'}")
    assert data.class_names == tuple(NAMES)
    np.testing.assert_array_equal(all_rows(data.test).numpy(), pixels(6, 1).transpose(0, 3, 1, 2))


def test_a_run_resumes_with_the_same_data_only(photos: Path, tmp_path: Path) -> None:
    settings = {"data": f"hf:{photos}", "model": "linear", "epochs": 4, "batch_size": 8, "audit": False}
    config = cg.TrainConfig(**settings, monitor="accuracy", out=tmp_path / "run")
    for steps in (4, 5):
        with pytest.raises(TrainingInterrupted):
            cg.train(config, quiet=True, stop=StopAfter(steps))
    cg.train(config, quiet=True)
    whole = cg.train(
        cg.TrainConfig(**settings | {"audit": True}, monitor="accuracy", out=tmp_path / "whole"), quiet=True
    )
    weights = [load_weights(RunDirectory(tmp_path / name).model) for name in ("run", "whole")]
    assert all(torch.equal(tensor, weights[1][name]) for name, tensor in weights[0].items())
    run = cg.load_run(whole.run_dir)
    samples = read_inputs(run, [])
    audit = cg.Audit.from_predictions(run.predict(samples).logits, samples.targets, class_names=run.class_names)
    assert audit.overall == cg.Audit.load(whole.run_dir / "audit.json").overall
    assert audit.overall.accuracy > 0.8

    changed = cg.TrainConfig(**settings | {"data": f"hf:{tmp_path / 'copy'}"}, out=tmp_path / "changed")
    shutil.copytree(photos, tmp_path / "copy")
    with pytest.raises(TrainingInterrupted):
        cg.train(changed, quiet=True, stop=StopAfter(4))
    shutil.rmtree(tmp_path / "copy")
    datasets.DatasetDict({"train": images(24, 3), "test": images(9, 2)}).save_to_disk(tmp_path / "copy")
    with pytest.raises(ValueError, match="training inputs"):
        cg.train(changed, quiet=True)


def test_tables(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = {
        "size": random.normal(size=30).tolist(),
        "color": ["red", "gray", "black"] * 10,
        "id": list(range(30)),
        "species": [NAMES[k % 3] for k in range(30)],
    }
    datasets.DatasetDict(
        {"train": datasets.Dataset.from_dict(rows), "test": datasets.Dataset.from_dict(rows)}
    ).save_to_disk(tmp_path / "table")
    data = load(f"hf:{tmp_path / 'table'}:target=species:drop=id")
    assert (data.kind, data.shape, data.class_names) == ("vector", (4,), tuple(NAMES))
    assert data.table is not None
    datasets.Dataset.from_dict(rows).to_csv(tmp_path / "table.csv")
    expected = load(f"csv:{tmp_path / 'table.csv'},{tmp_path / 'table.csv'}:target=species:drop=id")
    torch.testing.assert_close(all_rows(data.train), all_rows(expected.train))


def test_texts_and_vectors(tmp_path: Path) -> None:
    encoder = save_encoder(tmp_path / "encoder")
    texts, labels = make_texts(5)
    label = datasets.ClassLabel(names=["fox", "dog", "cat"])
    rows = {"text": texts, "label": labels, "vector": [[float(len(text)), 1.0] for text in texts]}
    made = datasets.Dataset.from_dict(rows).cast_column("label", label)
    datasets.DatasetDict({"train": made, "test": made}).save_to_disk(tmp_path / "texts")
    data = load(f"hf:{tmp_path / 'texts'}:encoder={encoder}")
    assert (data.shape, data.class_names) == ((16,), ("fox", "dog", "cat"))  # as in the ClassLabel, not sorted
    assert data.table is not None
    assert data.table.text_column == "text"
    assert [data.class_names[k] for k in data.train.targets] == labels
    vectors = load(f"hf:{tmp_path / 'texts'}:input=vector")
    assert all_rows(vectors.train)[:, 0].tolist() == [len(text) for text in texts]


def test_errors(tmp_path: Path, photos: Path) -> None:
    with pytest.raises(ValueError, match="hf:nobody/nothing cannot be loaded"):
        load("hf:nobody/nothing")
    with pytest.raises(ValueError, match="'picture'"):
        load(f"hf:{photos}:input=picture")
    made = images(6, 0, other=[0, 1, 2] * 2).cast_column("other", datasets.ClassLabel(names=NAMES))
    made.save_to_disk(tmp_path / "two")
    with pytest.raises(ValueError, match="label, other"):
        load(f"hf:{tmp_path / 'two'}")
    hidden = datasets.Dataset.from_dict({"x": [1.0, 2.0], "label": [-1, -1]})
    hidden = hidden.cast_column("label", datasets.ClassLabel(names=NAMES))
    table = datasets.Dataset.from_dict({"x": [1.0, 2.0], "label": [0, 1]})
    table = table.cast_column("label", datasets.ClassLabel(names=NAMES))
    datasets.DatasetDict({"train": table, "test": hidden}).save_to_disk(tmp_path / "hidden")
    with pytest.raises(ValueError, match="split test, row 0"):
        load(f"hf:{tmp_path / 'hidden'}")
    broken = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=NAMES)})
    data = io.BytesIO()
    Image.fromarray(pixels(1, 0)[0]).save(data, "png")
    cells = [{"bytes": data.getvalue(), "path": None}, {"bytes": b"damaged", "path": None}]
    datasets.Dataset.from_dict({"image": cells, "label": [0, 1]}, features=broken).save_to_disk(tmp_path / "broken")
    with pytest.raises(ValueError, match="row 1"):
        load(f"hf:{tmp_path / 'broken'}")


def test_a_damaged_file_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 damaged")
    logger, verbosity, shown = logging.getLogger("datasets"), datasets.logging.get_verbosity(), io.StringIO()
    handler = logging.StreamHandler(shown)
    logger.addHandler(handler)
    try:
        with pytest.raises(ValueError, match=r"x\.parquet cannot be loaded"):
            load(f"hf:{tmp_path / 'x.parquet'}")
    finally:
        logger.removeHandler(handler)
    assert not shown.getvalue()
    assert datasets.logging.get_verbosity() == verbosity
