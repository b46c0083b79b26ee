"""Texts in tables and folders, encoded by a small BERT, and predicted by a trained run."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import classgap as cg
from classgap.data import load
from classgap.data.preprocessing import Preprocessing
from classgap.data.transforms.text import TextColumn, load_encoder
from classgap.inference.inputs import read_inputs
from text_encoders import make_texts, save_encoder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLASSGAP_CACHE", str(tmp_path / "cache"))


def write_csv(path: Path, per_class: int, seed: int) -> Path:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["review", "length", "animal"])
        rows.writerows([text, len(text), label] for text, label in zip(*make_texts(per_class, seed=seed), strict=True))
    return path


def one_by_one(folder: Path, texts: list[str]) -> np.ndarray:
    """Mean over the tokens of each text alone, without padding."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        rows = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(dim=0) for text in texts]
    return torch.stack(rows).numpy()


def test_padding_does_not_change_the_mean(encoder: Path) -> None:
    texts, _ = make_texts(15)
    found = TextColumn.from_encoder("review", str(encoder)).encode(texts)
    np.testing.assert_allclose(found, one_by_one(encoder, texts), atol=1e-6)
    assert len({len(text.split()) for text in texts}) > 1


def test_long_and_missing_texts(encoder: Path) -> None:
    column = TextColumn.from_encoder("review", str(encoder))
    long, cut, missing, empty = column.encode(["purr " * 500, "purr " * 12, None, ""])
    np.testing.assert_array_equal(long, cut)
    np.testing.assert_array_equal(missing, empty)
    assert np.isfinite(missing).all()


def test_texts_of_a_table_stand_beside_other_columns(tmp_path: Path, encoder: Path) -> None:
    files = [write_csv(tmp_path / f"{name}.csv", 6, seed) for seed, name in enumerate(("train", "test"))]
    data = load(f"csv:{files[0]},{files[1]}:target=animal:text=review:encoder={encoder}")
    assert data.shape == (17,)
    assert data.class_names == ("cat", "dog", "fox")
    texts, _ = make_texts(6, seed=1)
    np.testing.assert_allclose(
        data.test.inputs[torch.arange(18)][:, :16].numpy(), one_by_one(encoder, texts), atol=1e-6
    )
    alone = load(f"csv:{files[0]},{files[1]}:target=animal:text=review:encoder={encoder}:drop=length")
    assert alone.shape == (16,)


def test_features_are_cached_and_an_other_encoder_is_refused(
    tmp_path: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = TextColumn.from_encoder("review", str(encoder))
    first = column.encode(["purr", "bark"])
    (file,) = (tmp_path / "cache" / "texts").glob("*.npy")
    np.save(file, first + 1)
    np.testing.assert_array_equal(column.encode(["purr", "bark"]), first + 1)  # read, not computed
    file.write_bytes(b"damaged")
    np.testing.assert_array_equal(column.encode(["purr", "bark"]), first)
    other = TextColumn(column.name, str(save_encoder(tmp_path / "other", seed=1)), column.width, column.weights)
    with pytest.raises(ValueError, match="weights"):
        other.encode(["purr"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for split, per_class in (("train", 16), ("test", 5)):
        for number, (text, label) in enumerate(zip(*make_texts(per_class, seed=per_class), strict=True)):
            place = tmp_path / "mails" / split / label
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{number:03}.txt").write_text(text)
    return tmp_path / "mails"


def test_train_predict_and_audit_of_text_files_agree(folder: Path, encoder: Path, tmp_path: Path) -> None:
    data = f"text:{folder}:encoder={encoder}"
    config = cg.TrainConfig(data=data, model="linear", epochs=30, batch_size=8, lr=0.1, out=tmp_path / "run")
    stored = cg.Audit.load(cg.train(config, quiet=True).run_dir / "audit.json")
    assert stored.overall.accuracy > 0.8
    run = cg.load_run(tmp_path / "run")
    files = read_inputs(run, [str(folder / "test")])
    assert files.filenames is not None
    assert files.filenames[0].endswith(".txt")
    for samples in (files, read_inputs(run, [])):
        result = run.predict(samples)
        audit = cg.Audit.from_predictions(result.logits, samples.targets, class_names=run.class_names)
        assert audit.overall == stored.overall
    result = run.predict(["the purr meow", "a bark woof"])
    assert [run.class_names[k] for k in result.logits.argmax(1)] == ["cat", "dog"]
    torch.testing.assert_close(run.preprocessing("a bark woof"), run.preprocessing.read({"text": "a bark woof"}))
    facts = json.loads((tmp_path / "run" / "preprocessing.json").read_text())
    assert Preprocessing.from_dict(facts) == run.preprocessing


def test_a_drawn_test_split_depends_on_names_only(folder: Path, encoder: Path) -> None:
    first = load(f"text:{folder / 'train'}:encoder={encoder}:test_fraction=0.25")
    assert (len(first.train), len(first.test)) == (36, 12)
    assert "12 text files were drawn" in first.notes[0]
    (folder / "train" / "cat" / "notes.md").write_text("ignored")
    again = load(f"text:{folder / 'train'}:encoder={encoder}:test_fraction=0.25")
    rows = torch.arange(12)
    assert torch.equal(first.test.inputs[rows], again.test.inputs[rows])


def test_errors(tmp_path: Path, encoder: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_csv(tmp_path / "x.csv", 4, 0)
    with pytest.raises(ValueError, match="'body'"):
        load(f"csv:{file}:target=animal:text=body")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="cannot be loaded"):
        load(f"csv:{file}:target=animal:text=review:encoder={tmp_path / 'empty'}")
    (folder / "test" / "cat" / "bad.txt").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ValueError, match=r"bad\.txt"):
        load(f"text:{folder}:encoder={encoder}")
    load_encoder.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    with pytest.raises(ValueError, match=r"classgap\[text\]"):
        load(f"csv:{file}:target=animal:text=review")
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(ValueError, match=r"classgap\[hf\]"):
        load(f"csv:{file}:target=animal:text=review:encoder={encoder}")
    load_encoder.cache_clear()


def test_sentence_transformers(tmp_path: Path, encoder: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    library.SentenceTransformer(str(encoder), device="cpu").save(str(tmp_path / "sentences"))  # with mean pooling
    assert (tmp_path / "sentences" / "modules.json").is_file()
    texts, _ = make_texts(4)
    found = TextColumn.from_encoder("review", str(tmp_path / "sentences")).encode(texts)
    np.testing.assert_allclose(found, one_by_one(encoder, texts), atol=1e-5)
