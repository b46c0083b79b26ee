"""`classgap predict` gives the run's own figures, in every format, and rejects bad input before it writes."""

import contextlib
import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from predict_cases import CLASSES, figures, run, write_features, write_photos
from safetensors.torch import load_file

import classgap as cg
from classgap.cli import main
from classgap.testing import Processes

SMALL = ("--epochs", "5", "--device", "cpu", "--batch-size", "16")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data and three trained runs."""
    base = tmp_path_factory.mktemp("predict")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLASSGAP_CACHE", str(base / "cache"))
        write_photos(base / "my photos")
        write_features(base / "features.npz")
        data = {
            "photos": (f"folder:{base / 'my photos'}:size=12", "resnet20"),
            "features": (f"features:{base / 'features.npz'}", "mlp:width=16"),
            "digits": ("digits", "mlp:width=16"),
        }
        for name, (source, model) in data.items():
            run("train", "--data", source, "--model", model, "--augment", "none", "--out", base / name, *SMALL)
    return base


INPUTS = {
    "photos": ("my photos/test",),
    "features": ("features.npz",),
    "digits": ("digits",),
}


def predict(place: Path, name: str, out: Path, *flags: str) -> Path:
    words = [str(place / each) if (place / each).exists() and each != "digits" else each for each in INPUTS[name]]
    run("predict", place / name, *words, "--out", out, "--device", "cpu", *flags)
    return out


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".csv"])
@pytest.mark.parametrize("name", list(INPUTS))
def test_train_predict_audit_gives_the_figures_of_the_run(place: Path, tmp_path: Path, name: str, suffix: str) -> None:
    out = predict(place, name, tmp_path / f"new{suffix}")
    run("audit", out, "--json", tmp_path / "audit.json")
    got, expected = figures(tmp_path / "audit.json"), figures(place / name / "audit.json")
    if suffix == ".csv":  # a column of training counts does not exist
        got["groups"], expected["groups"] = (
            {key: each["groups"][key] for key in ("easy", "medium", "hard")} for each in (got, expected)
        )
    assert got == expected
    final = json.loads((place / name / "metrics.jsonl").read_text().splitlines()[-1])
    assert got["overall"]["accuracy"] == final["test_accuracy"]
    assert got["groups"]["hard"]["accuracy"] == final["test_hard"]


@pytest.mark.parametrize("name", list(INPUTS))
def test_logits_are_those_of_the_run_bit_for_bit(place: Path, tmp_path: Path, name: str) -> None:
    own = load_file(place / name / "predictions.safetensors")
    new = np.load(predict(place, name, tmp_path / "new.npz"))
    assert np.array_equal(new["logits"], own["logits"].numpy())
    assert np.array_equal(new["targets"], own["targets"].numpy())
    expected = own["logits"].double().softmax(dim=1).numpy()
    assert np.abs(new["probabilities"] - expected).max() < 1e-7
    assert np.array_equal(new["train_counts"], own["train_counts"].numpy())


def test_a_run_predicts_its_own_test_samples_without_input(place: Path, tmp_path: Path) -> None:
    run("predict", place / "photos", "--out", tmp_path / "own.npz", "--device", "cpu")
    own = load_file(place / "photos" / "predictions.safetensors")
    assert np.array_equal(np.load(tmp_path / "own.npz")["logits"], own["logits"].numpy())


def test_csv_lists_names_and_the_best_classes(place: Path, tmp_path: Path) -> None:
    with predict(place, "photos", tmp_path / "new.csv", "--top-k", "2").open(newline="") as file:
        rows = list(csv.DictReader(file))
    own = load_file(place / "photos" / "predictions.safetensors")
    order = own["logits"].argsort(dim=1, descending=True)
    for row, best, target, logits in zip(rows, order, own["targets"], own["logits"], strict=True):
        assert row["target"] == CLASSES[target] == Path(row["filename"]).parent.name
        assert [row["top1"], row["top2"]] == [CLASSES[k] for k in best[:2]]
        assert row["prediction"] == row["top1"]
        assert [np.float32(row[f"logit:{name}"]) for name in CLASSES] == logits.tolist()
        total = sum(float(row[f"probability:{name}"]) for name in CLASSES)
        assert total == pytest.approx(1, abs=1e-6)


def test_workers_and_batch_size_change_nothing_but_rounding(place: Path, tmp_path: Path) -> None:
    one = np.load(predict(place, "photos", tmp_path / "one.npz"))
    other = np.load(predict(place, "photos", tmp_path / "other.npz", "--workers", "2", "--batch-size", "5"))
    assert list(one["filenames"]) == list(other["filenames"])
    np.testing.assert_allclose(one["logits"], other["logits"], rtol=1e-5, atol=1e-5)


def printed_by_main(words: list[str]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        assert main(words) == 0
    return output.getvalue()


def test_two_processes_write_what_one_writes(place: Path, tmp_path: Path, processes: Processes) -> None:
    size = "5"  # 21 images: the second process gets fewer
    one = np.load(predict(place, "photos", tmp_path / "one.npz", "--batch-size", size))
    words = [str(place / "photos"), str(place / "my photos/test"), "--batch-size", size, "--device", "cpu"]
    printed = processes.run(printed_by_main, ["predict", *words, "--out", str(tmp_path / "two.npz")])
    assert [text.count("accuracy") for text in printed] == [1, 0]  # the first process prints
    two = np.load(tmp_path / "two.npz")
    assert set(one.files) == set(two.files)
    assert all(np.array_equal(one[key], two[key]) for key in one.files)


def test_targets_come_from_folders_only_if_all_have_one(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = place / "my photos" / "test"
    Image.new("RGB", (9, 9)).save(tmp_path / "new.png")
    run("predict", place / "photos", tmp_path / "new.png", photos / "dog", "--out", tmp_path / "mixed.npz")
    assert "1 of 8 images" in capsys.readouterr().out
    assert "targets" not in np.load(tmp_path / "mixed.npz")
    run("predict", place / "photos", photos / "dog", "--out", tmp_path / "dog.npz")
    assert np.load(tmp_path / "dog.npz")["targets"].tolist() == [2] * 7


def test_features_come_from_npy_csv_and_safetensors(place: Path, tmp_path: Path) -> None:
    arrays = np.load(place / "features.npz")
    x, y = arrays["test_features"].astype(np.float32), arrays["test_targets"]
    np.save(tmp_path / "x.npy", x)
    torch_file = tmp_path / "x.safetensors"
    from safetensors.numpy import save_file

    save_file({"features": x, "targets": y}, torch_file)
    with (tmp_path / "x.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "target", "c", "d", "e", "f"])
        for row, k in zip(x.tolist(), y, strict=True):
            writer.writerow([*row[:2], arrays["class_names"][k], *row[2:]])
    expected = load_file(place / "features" / "predictions.safetensors")["logits"].numpy()
    for name, has_targets in {"x.npy": False, "x.safetensors": True, "x.csv": True}.items():
        run("predict", place / "features", tmp_path / name, "--out", tmp_path / "out.npz", "--device", "cpu")
        got = np.load(tmp_path / "out.npz")
        assert np.array_equal(got["logits"], expected)
        assert ("targets" in got) == has_targets
        if has_targets:
            assert np.array_equal(got["targets"], y)


def test_classes_are_printed_without_a_file(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("predict", place / "photos", place / "my photos" / "test", "--top-k", "2", "--device", "cpu")
    out = capsys.readouterr().out
    assert "and 1 more" in out
    final = json.loads((place / "photos" / "metrics.jsonl").read_text().splitlines()[-1])
    assert f"{100 * final['test_accuracy']:.2f} % accuracy" in out


BAD = {
    "no run": (["cache", "features.npz"], "not a run directory"),
    "missing input": (["features", "nothing.npz"], "nothing.npz"),
    "wrong type": (["features", "notes.txt"], "notes.txt"),
    "images for vectors": (["features", "my photos"], "not on images"),
    "wrong width": (["features", "narrow.npy"], "(N, 6)"),
    "not finite": (["features", "nan.npy"], "1 of 2"),
    "pickle": (["features", "object.npy"], "object.npy"),
    "empty folder": (["photos", "empty"], "no images"),
    "broken image": (["photos", "broken"], "broken.png"),
    "broken image in a worker": (["photos", "broken", "--workers", "1"], "broken.png"),
    "text in a table": (["features", "text.csv"], "'b'"),
    "ragged table": (["features", "ragged.csv"], "line 3"),
    "unknown target": (["features", "target.csv"], "'fly'"),
    "other classes": (["digits", "two-moons"], "two-moons"),
    "no validation": (["digits", "--split", "val"], "validation"),
    "top-k": (["features", "features.npz", "--top-k", "9"], "--top-k"),
    "batch size": (["features", "features.npz", "--batch-size", "0"], "--batch-size"),
    "no fix": (["features", "features.npz", "--fix", "empty"], "fix.json"),
}


@pytest.fixture(scope="module")
def bad(place: Path) -> Path:
    (place / "empty").mkdir()
    (place / "broken").mkdir()
    (place / "broken" / "broken.png").write_bytes(b"\x89PNG nothing")
    (place / "notes.txt").write_text("hello")
    np.save(place / "narrow.npy", np.zeros((2, 5)))
    np.save(place / "nan.npy", np.array([[0.0] * 6, [np.nan] * 6]))
    np.save(place / "object.npy", np.array([{}], dtype=object))
    (place / "text.csv").write_text("a,b,c,d,e,f\n1,x,3,4,5,6\n")
    (place / "ragged.csv").write_text("a,b,c,d,e,f\n1,2,3,4,5,6\n1,2\n")
    (place / "target.csv").write_text("a,b,c,d,e,f,target\n1,2,3,4,5,6,fly\n")
    return place


@pytest.mark.parametrize("case", list(BAD))
def test_bad_input_is_one_line_and_nothing_is_written(
    bad: Path, tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    monkeypatch.chdir(bad)
    words, fact = BAD[case]
    assert main(["predict", *words, "--out", str(tmp_path / "out.npz")]) == 2
    err = capsys.readouterr().err
    assert fact in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_outputs_are_checked_before_any_work(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    features = str(place / "features.npz")
    for out, fact in (("x.txt", ".npz"), ("none/x.npz", "does not exist"), (features, "overwrite an input")):
        assert main(["predict", str(place / "features"), features, "--out", out]) == 2
        assert fact in capsys.readouterr().err


def test_a_moved_run_needs_neither_its_data_nor_its_place(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "photos", tmp_path / "moved")
    (tmp_path / "moved" / "checksums.json").unlink()
    config = (tmp_path / "moved" / "config.yaml").read_text()
    (tmp_path / "moved" / "config.yaml").write_text(config.replace("my photos", "gone"))
    expected = load_file(place / "photos" / "predictions.safetensors")["logits"]
    folder = place / "my photos" / "test"
    files = [file for name in CLASSES for file in sorted((folder / name).iterdir(), key=str)]  # in the run's batches
    found = cg.load_run(tmp_path / "moved", device="cpu").predict(files, batch_size=16).logits
    assert torch.equal(found, expected)


def test_broken_images_are_skipped_if_asked(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "dog"
    shutil.copytree(place / "my photos" / "test" / "dog", folder)
    whole = (folder / "3.png").read_bytes()
    (folder / "2b.png").write_bytes(whole[: len(whole) // 2])  # the header is fine, the pixels end early
    words = ["predict", place / "photos", folder, "--device", "cpu", "--out"]
    assert main([*map(str, words), str(tmp_path / "out.npz")]) == 2
    assert "--on-error skip" in capsys.readouterr().err
    run(*words, tmp_path / "out.npz", "--on-error", "skip")
    assert "1 of 8 images" in (out := capsys.readouterr().out)
    assert "2b.png" in out
    got, expected = np.load(tmp_path / "out.npz"), load_file(place / "photos" / "predictions.safetensors")
    assert [Path(name).name for name in got["filenames"]] == [f"{i}.png" for i in range(7)]
    assert got["targets"].tolist() == [2] * 7
    np.testing.assert_allclose(
        got["logits"], expected["logits"][expected["targets"] == 2].numpy(), rtol=1e-5, atol=1e-5
    )
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "x.png").write_bytes(b"")
    assert main(["predict", str(place / "photos"), str(tmp_path / "none"), "--on-error", "skip"]) == 2
    assert "1 of 1 images" in capsys.readouterr().err


def test_a_folder_with_training_images_is_noted(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("predict", place / "photos", place / "my photos", "--device", "cpu")
    out = capsys.readouterr().out
    assert str(place / "my photos" / "test") in out.splitlines()[0]
    assert "57 samples" in out  # 3 classes of 12 training and 7 test images


def test_a_single_image_is_one_row_with_its_classes(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = place / "my photos" / "test" / "dog" / "0.png"
    run("predict", place / "photos", file, "--top-k", "3", "--device", "cpu")
    header, row, count = capsys.readouterr().out.splitlines()
    logits = load_file(place / "photos" / "predictions.safetensors")
    probabilities = logits["logits"][logits["targets"] == 2][0].double().softmax(dim=0)
    best = [f"{CLASSES[k]} {probabilities[k]:.3f}" for k in probabilities.argsort(descending=True)]
    assert header.split("  ")[0] == "sample"
    assert [cell.strip() for cell in row.split("  ") if cell] == [str(file), "dog", *best]
    assert count.startswith("1 sample,")


def test_a_fix_of_a_moved_run_gives_the_proven_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, arrays = np.random.default_rng(1), {"class_names": np.array(["ant", "bee", "cow"])}
    for split, counts in {"train": (200, 20, 10), "val": (40, 40, 40), "test": (40, 40, 40)}.items():
        targets = np.repeat(np.arange(3), counts)
        arrays[f"{split}_features"] = rng.normal(size=(len(targets), 5)) + 1.5 * np.eye(3, 5)[targets]
        arrays[f"{split}_targets"] = targets
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", **arrays)
    run("train", "--data", "data.npz", "--model", "linear", "--out", "run", *SMALL)
    run("fix", "run", "--out", "fixed", "--json", "fix.json")
    Path("elsewhere").mkdir()
    for name in ("run", "fixed", "data.npz"):
        shutil.move(name, f"elsewhere/{name}")
    run("predict", "elsewhere/run", "elsewhere/data.npz", "--fix", "elsewhere/fixed", "--out", "new.csv")
    run("audit", "new.csv", "--json", "audit.json")
    proof, got = json.loads(Path("fix.json").read_text())["proof"], json.loads(Path("audit.json").read_text())
    assert proof["overall"]["change"] > 0
    assert got["overall"]["accuracy"] == pytest.approx(proof["overall"]["after"], abs=1e-12)
