import csv
import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file
from sklearn.metrics import accuracy_score, balanced_accuracy_score, recall_score

from classgap.audit import Audit
from classgap.cli import main
from forked import run_command


def predictions(classes: int = 4, samples: int = 80) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    targets = np.arange(samples) % classes
    logits = rng.normal(size=(samples, classes)) + 1.5 * np.eye(classes)[targets]
    return {"logits": logits.astype(np.float32), "targets": targets, "class_names": np.array(["a", "b", "c", "d"])}


@pytest.fixture
def npz(tmp_path: Path) -> Path:
    path = tmp_path / "model.npz"
    np.savez(path, **predictions())
    return path


def test_all_outputs_have_the_same_metrics(npz: Path, tmp_path: Path, capsys):
    html, saved, table = tmp_path / "r.html", tmp_path / "a.json", tmp_path / "c.csv"
    assert main(["audit", str(npz), "--html", str(html), "--json", str(saved), "--csv", str(table)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    data = predictions()
    guess = data["logits"].argmax(axis=1)
    assert f"Accuracy {100 * accuracy_score(data['targets'], guess):.1f} %" in out
    assert "80 samples" in out
    assert all(f"Wrote {path}" in out for path in (html, saved, table))
    audit = json.loads(saved.read_text())
    assert audit["overall"]["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(data["targets"], guess))
    with table.open(newline="") as file:
        accuracies = [float(row["accuracy"]) for row in csv.DictReader(file)]
    assert accuracies == pytest.approx(recall_score(data["targets"], guess, average=None).tolist())
    assert html.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_every_kind_of_source_yields_the_same_audit(npz: Path, tmp_path: Path, capsys):
    data = predictions()
    names = [str(name) for name in data.pop("class_names")]
    sources = [npz, tmp_path / "model.safetensors", tmp_path / "model.csv", tmp_path / "run", tmp_path / "saved.json"]
    arrays = {key: np.ascontiguousarray(value) for key, value in data.items()}
    save_file(arrays, sources[1], metadata={"class_names": json.dumps(names)})
    with sources[2].open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["target", *names])
        writer.writerows(
            [names[t], *map(repr, map(float, row))] for t, row in zip(*reversed(data.values()), strict=True)
        )
    sources[3].mkdir()
    np.savez(sources[3] / "predictions.npz", **predictions())
    Audit.from_file(npz).save(sources[4])
    groups = []
    for source in sources:
        assert main(["audit", str(source), "--json", str(tmp_path / "out.json")]) == 0, source
        groups.append(json.loads((tmp_path / "out.json").read_text())["groups"])
    assert all(group == groups[0] for group in groups)
    assert "classgap audit: run" in capsys.readouterr().out


def test_a_run_without_predictions_shows_its_saved_audit(npz: Path, tmp_path: Path, capsys):
    (tmp_path / "run").mkdir()
    Audit.from_file(npz).save(tmp_path / "run" / "audit.json")
    assert main(["audit", str(tmp_path / "run")]) == 0
    assert "model" in capsys.readouterr().out.splitlines()[0]


def test_groups_and_rank_by(npz: Path, tmp_path: Path):
    groups, baseline, out = tmp_path / "groups.json", tmp_path / "base.npz", tmp_path / "out.json"
    groups.write_text('{"vowels": ["a"], "others": ["b", "c", "d"]}')
    data = predictions()
    order = np.array([1, 1, 1, 0])  # class d is wrong, all others are right
    np.savez(
        baseline,
        targets=data["targets"],
        predictions=data["targets"] * order[data["targets"]],
        class_names=list("abcd"),
    )
    words = ["audit", str(npz), "--groups", str(groups), "--rank-by", str(baseline), "--json", str(out)]
    assert main([*words, "--confidence-level", "0.9", "--seed", "3"]) == 0
    audit = Audit.load(out)
    assert audit.groups["vowels"].members == ("a",)
    assert audit.groups["hard"].members == ("d",)
    assert (audit.rank_by, audit.confidence_level) == ("baseline", 0.9)


def write(path: Path, **changes: Any) -> None:
    np.savez(path, **{key: value for key, value in (predictions() | changes).items() if value is not None})


def damage(case: str, folder: Path) -> list[str]:
    """Return arguments of ``audit`` with one defect."""
    path, logits = folder / "bad.npz", predictions()["logits"]
    match case:
        case "wrong lengths":
            write(path, targets=np.zeros(79, dtype=int))
        case "unknown labels":
            write(path, targets=np.full(80, 9))
        case "NaN logits":
            write(path, logits=np.where(np.arange(4) == 2, np.nan, logits))
        case "targets missing":
            write(path, targets=None)
        case "nothing predicted":
            write(path, logits=None)
        case "duplicate class names":
            write(path, class_names=np.array(["a", "b", "a", "d"]))
        case "too few class names":
            write(path, class_names=np.array(["a", "b"]))
        case "features of other samples":
            write(path, features=np.zeros((5, 3)))
        case "negative probabilities":
            write(path, logits=None, probabilities=logits)
        case "empty file":
            path.touch()
        case "truncated npz":
            write(path)
            path.write_bytes(path.read_bytes()[:700])
        case "not an npz":
            path.write_text("hello")
        case "pickled objects":
            write(path, targets=np.array([{}] * 80))
        case "truncated safetensors":
            path = folder / "bad.safetensors"
            save_file({"targets": np.arange(99)}, path)
            path.write_bytes(path.read_bytes()[:100])
        case "csv without target":
            path = folder / "bad.csv"
            path.write_text("truth,prediction\na,b\n")
        case "csv without prediction":
            path = folder / "bad.csv"
            path.write_text("target\na\n")
        case "csv with twice the same class":
            path = folder / "bad.csv"
            path.write_text("target,a,a\na,1,2\n")
        case "csv with a word for a score":
            path = folder / "bad.csv"
            path.write_text("target,a,b\na,1,much\n")
        case "csv with a short line":
            path = folder / "bad.csv"
            path.write_text("target,prediction\na,b\na\n")
        case "csv without lines":
            path = folder / "bad.csv"
            path.write_text("target,prediction\n")
        case "csv that is binary":
            path = folder / "bad.csv"
            path.write_bytes(bytes(range(256)))
        case "json of something else":
            path = folder / "bad.json"
            path.write_text("[1, 2]")
        case "comparison":
            path = folder / "diff.json"
            audit = Audit.from_predictions(**predictions())
            audit.diff(audit).save(path)
        case "several comparisons":
            path = folder / "diff.json"
            audit = Audit.from_predictions(**predictions())
            path.write_text(json.dumps({"schema": 1, "comparisons": [audit.diff(audit).to_dict()] * 2}))
        case "cut json":
            path = folder / "bad.json"
            path.write_text('{"schema": 1, "na')
        case "deep json":
            path = folder / "bad.json"
            path.write_text("[" * 200_000)
        case "audit with missing classes":
            path = folder / "bad.json"
            audit = Audit.from_predictions(**predictions()).to_dict()
            path.write_text(json.dumps(audit | {"classes": audit["classes"][:2]}))
        case "unknown ending":
            path = folder / "bad.txt"
            path.write_text("hello")
        case "no such file":
            path = folder / "nowhere.npz"
        case "empty directory":
            path = folder / "run"
            path.mkdir()
        case "level":
            write(path)
            return [str(path), "--confidence-level", "95"]
        case "seed":
            write(path)
            return [str(path), "--seed", "-1"]
        case "groups of unknown classes":
            write(path)
            (folder / "groups.json").write_text('{"g": ["nobody"]}')
            return [str(path), "--groups", str(folder / "groups.json")]
        case "groups of lists":
            write(path)
            (folder / "groups.json").write_text('{"g": [["a"]]}')
            return [str(path), "--groups", str(folder / "groups.json")]
        case "groups that are a list":
            write(path)
            (folder / "groups.json").write_text('["a"]')
            return [str(path), "--groups", str(folder / "groups.json")]
        case (
            "saved audit with groups"
            | "saved audit with rank-by"
            | "saved audit with confidence-level"
            | "saved audit with seed"
        ):
            write(path)
            (folder / "g.json").write_text('{"g": ["a"]}')
            Audit.from_predictions(**predictions()).save(folder / "saved.json")
            flag = case.rsplit(" ", 1)[1]
            value = {"groups": str(folder / "g.json"), "rank-by": str(path), "confidence-level": "0.95", "seed": "0"}[
                flag
            ]
            return [str(folder / "saved.json"), f"--{flag}", value]
        case "baseline of other classes":
            write(path)
            np.savez(folder / "other.npz", targets=[0, 1], predictions=[0, 1])
            return [str(path), "--rank-by", str(folder / "other.npz")]
        case "shards of other classes":
            write(folder / "bad-0.npz")
            write(folder / "bad-1.npz", logits=np.zeros((80, 5)))
            path = folder / "bad-*.npz"
        case "pattern without files":
            path = folder / "bad-*.npz"
        case "parquet without predictions":
            path = folder / "bad.parquet"
            pd.DataFrame({"target": [0, 1]}).to_parquet(path)
        case "parquet that is something else":
            path = folder / "bad.parquet"
            path.write_text("hello")
        case "timm without targets":
            path = folder / "bad.csv"
            path.write_text("filename,label,prob\na.jpg,cat,0.9\n")
        case "array without targets":
            path = folder / "bad.npy"
            np.save(path, logits)
        case "features of another length":
            write(path)
            np.save(folder / "f.npy", np.zeros((79, 3)))
            return [str(path), "--features", str(folder / "f.npy")]
        case "no such companion":
            write(path)
            return [str(path), "--train-counts", str(folder / "c.txt")]
        case "saved audit with features":
            path = folder / "audit.json"
            Audit.from_predictions(**predictions()).save(path)
            np.save(folder / "f.npy", np.zeros((80, 3)))
            return [str(path), "--features", str(folder / "f.npy")]
        case _:
            raise AssertionError(case)
    return [str(path)]


CASES = {
    "wrong lengths": "79",
    "unknown labels": "9",
    "NaN logits": "NaN",
    "targets missing": "targets",
    "nothing predicted": "logits",
    "duplicate class names": "'a'",
    "too few class names": "class_names",
    "features of other samples": "features",
    "negative probabilities": "probabilities",
    "empty file": "empty",
    "truncated npz": "truncated",
    "not an npz": "truncated or damaged",
    "pickled objects": "pickled objects",
    "truncated safetensors": "truncated",
    "csv without target": "target",
    "csv without prediction": "bad.csv",
    "csv with twice the same class": "'a'",
    "csv with a word for a score": "line 2",
    "csv with a short line": "line 3",
    "csv without lines": "no samples",
    "csv that is binary": "UTF-8",
    "json of something else": "not an audit",
    "comparison": "diff.json",
    "several comparisons": "diff.json",
    "cut json": "not a valid JSON file",
    "deep json": "nested too deeply",
    "audit with missing classes": "bad.json: classes",
    "unknown ending": "got .txt",
    "no such file": "does not exist",
    "empty directory": "audit.json",
    "level": "level",
    "seed": "seed",
    "groups of unknown classes": "nobody",
    "groups of lists": "groups: 'g'",
    "groups that are a list": "groups",
    "saved audit with groups": "--groups",
    "saved audit with rank-by": "--rank-by",
    "saved audit with confidence-level": "--confidence-level",
    "saved audit with seed": "--seed",
    "baseline of other classes": "class",
    "shards of other classes": "same classes",
    "pattern without files": "matches no file",
    "parquet without predictions": "prediction, logits or probabilities is missing",
    "parquet that is something else": "Parquet",
    "timm without targets": "--targets",
    "array without targets": "--targets",
    "features of another length": "79 and 80",
    "no such companion": "c.txt does not exist",
    "saved audit with features": "--features",
}


@pytest.mark.parametrize("case", CASES)
def test_invalid_input_is_one_line_and_writes_no_file(case: str, tmp_path: Path, capfd):
    words = damage(case, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    outputs = ["--html", str(tmp_path / "r.html"), "--json", str(tmp_path / "r.json"), "--csv", str(tmp_path / "r.csv")]
    assert main(["audit", *words, *outputs]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("classgap: ")
    assert CASES[case] in err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("outputs", "reason"),
    [
        (["--html", "nowhere/r.html"], "nowhere does not exist"),
        (["--html", "."], "is a directory"),
        (["--json", "model.npz"], "would overwrite an input"),
        (["--html", "same", "--csv", "./same"], "name the same file"),
        (["--json", "-"], "--json must be a file, got -"),
    ],
)
def test_outputs_are_checked_before_the_work(
    outputs: list[str], reason: str, npz: Path, tmp_path: Path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    content = npz.read_bytes()
    assert main(["audit", "model.npz", *outputs]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert reason in err
    assert npz.read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


def test_files_of_a_run_are_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run = tmp_path / "run"
    flags = ["--data", "digits", "--model", "linear", "--epochs", "1", "--no-audit"]
    assert main(["train", *flags, "--out", str(run)]) == 0
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for name in ("predictions.safetensors", "config.yaml", "env.json", "metrics.jsonl", "checkpoints/last.pt"):
        capsys.readouterr()
        assert main(["audit", str(run), "--json", str(run / name)]) == 2
        assert "would overwrite a file of the run" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    for _ in range(2):
        assert main(["audit", str(run), "--json", str(run / "audit.json")]) == 0


def test_audit_can_be_written_to_a_pipe(npz: Path, tmp_path: Path, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    assert main(["audit", str(npz), "--json", str(pipe)]) == 0
    reader.join(timeout=20)
    assert main(["audit", str(npz), "--json", str(tmp_path / "a.json")]) == 0
    assert read == [(tmp_path / "a.json").read_text()]
    out = "".join(capsys.readouterr().out.split())  # long paths are wrapped
    assert f"Wrote{pipe}." in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "model.npz", "pipe"]


def test_redirected_standard_output_is_not_overwritten(npz: Path, tmp_path: Path):
    printed = tmp_path / "out.txt"
    errors = tmp_path / "err.txt"
    with printed.open("w") as out, errors.open("w") as err:
        assert run_command(["audit", str(npz), "--json", str(printed)], out.fileno(), err.fileno()) == 2
    assert "standard output" in errors.read_text()
    assert printed.read_text() == ""


def test_a_full_disk_is_a_failure_not_invalid_input(npz: Path, tmp_path: Path, capsys, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    assert main(["audit", str(npz), "--html", str(tmp_path / "r.html")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]
