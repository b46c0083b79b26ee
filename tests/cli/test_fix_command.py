"""``classgap fix`` on prediction files with a known bias."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import classgap as cg
from biased_predictions import NAMES, biased, save
from classgap.cli import main


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fitting and test predictions of a biased model and of two noisy ones."""
    folder = tmp_path_factory.mktemp("files")
    for name, n, seed in (("val", 900, 0), ("test", 900, 1)):
        save(folder / f"{name}.npz", **biased(n, seed))
        save(folder / f"{name}_a.npz", **biased(n, seed, bias=0, noise=0.9))
        save(folder / f"{name}_b.npz", **biased(n, seed, bias=0, noise=0.91))
    return folder


@pytest.fixture(scope="module")
def fixed(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All outputs of one fix."""
    out = tmp_path_factory.mktemp("outputs")
    arguments = [str(files / "val.npz"), "--test", str(files / "test.npz"), "--max-easy-loss", "100"]
    outputs = ["--out", str(out / "fixed"), "--json", str(out / "fix.json"), "--html", str(out / "fix.html")]
    assert main(["fix", *arguments, *outputs]) == 0
    return out


def third_accuracies(predictions: np.ndarray, targets: np.ndarray, ranking: np.ndarray) -> dict[str, float]:
    accuracy = np.array([(predictions[targets == k] == k).mean() for k in range(len(ranking))])
    parts = np.array_split(np.argsort(-ranking, kind="stable"), 3)
    return {name: accuracy[part].mean() for name, part in zip(("easy", "medium", "hard"), parts, strict=True)}


def test_proof_is_the_accuracy_of_the_saved_fix_on_the_test_samples(files: Path, fixed: Path):
    result = json.loads((fixed / "fix.json").read_text(encoding="utf-8"))
    fit, test = np.load(files / "val.npz"), np.load(files / "test.npz")
    ranking = np.array([(fit["logits"].argmax(1)[fit["targets"] == k] == k).mean() for k in range(9)])
    before = third_accuracies(test["logits"].argmax(1), test["targets"], ranking)
    after_predictions = cg.load_fix(fixed / "fixed").predict(test["logits"])
    after = third_accuracies(after_predictions, test["targets"], ranking)
    for name in ("easy", "medium", "hard"):
        proof = result["proof"][name]
        assert proof["before"] == pytest.approx(before[name])
        assert proof["after"] == pytest.approx(after[name])
        assert proof["change"] == pytest.approx(after[name] - before[name])
        assert proof["interval"][0] <= proof["change"] <= proof["interval"][1]
    assert result["proof"]["overall"]["after"] == pytest.approx((after_predictions == test["targets"]).mean())
    assert after["hard"] - before["hard"] > 0.1  # the bias costs the last classes most


def test_json_has_remedies_chosen_and_proof(fixed: Path):
    result = json.loads((fixed / "fix.json").read_text(encoding="utf-8"))
    names = [remedy["name"] for remedy in result["remedies"]]
    assert result["chosen"] in names
    assert {"overall", "easy", "medium", "hard"} <= result["remedies"][0]["change"].keys()
    (chosen,) = [remedy for remedy in result["remedies"] if remedy["chosen"]]
    assert chosen["change"]["hard"] == pytest.approx(result["proof"]["hard"]["change"])
    assert result["n_test"] == 900
    assert not result["nested"]


def test_fix_takes_numpy_and_torch(files: Path, fixed: Path):
    fix = cg.load_fix(fixed / "fixed")
    logits = np.load(files / "test.npz")["logits"]
    assert fix.inputs == "logits"
    np.testing.assert_allclose(fix(logits), fix(torch.from_numpy(logits)).detach().numpy())


def test_printed_numbers_are_those_of_the_json(files: Path, tmp_path: Path, capsys):
    saved = tmp_path / "fix.json"
    assert main(["fix", str(files / "val.npz"), "--test", str(files / "test.npz"), "--json", str(saved)]) == 0
    out, result = capsys.readouterr().out, json.loads(saved.read_text(encoding="utf-8"))
    for remedy in result["remedies"]:
        (line,) = [line for line in out.splitlines() if re.search(rf"  {re.escape(remedy['name'])}  .* to ", line)]
        assert f"{100 * remedy['change']['hard']:+.1f}".replace("-", "−") in line
        assert line.startswith("●") == remedy["chosen"]
        assert line.startswith("×") == (not remedy["within_limits"])
    assert "900 test samples" in out


def test_one_file_is_proven_by_nested_cross_fitting(files: Path, tmp_path: Path, capsys):
    assert main(["fix", str(files / "val.npz"), "--json", str(tmp_path / "f.json"), "--max-easy-loss", "100"]) == 0
    result = json.loads((tmp_path / "f.json").read_text(encoding="utf-8"))
    assert result["nested"]
    assert result["n_test"] == 0
    assert result["proof"]["hard"]["change"] > 0.1
    assert "approximate" in capsys.readouterr().out


def test_several_files_are_averaged(files: Path, tmp_path: Path, capsys):
    fit, test = ([str(files / f"{name}_{model}.npz") for model in "ab"] for name in ("val", "test"))
    arguments = ["fix", *fit, "--test", *test, "--json", str(tmp_path / "f.json"), "--out", str(tmp_path / "fixed")]
    assert main(arguments) == 0
    result = json.loads((tmp_path / "f.json").read_text(encoding="utf-8"))
    assert result["chosen"].startswith("ensemble")
    assert "2 models" in capsys.readouterr().out
    fix = cg.load_fix(tmp_path / "fixed")
    assert (fix.inputs, fix.members) == ("ensemble", ("val_a", "val_b"))
    stacked = np.stack([np.load(path)["logits"] for path in test])
    targets = np.load(test[0])["targets"]
    assert (fix.predict(stacked) == targets).mean() == pytest.approx(result["proof"]["overall"]["after"])


def test_hint_names_a_limit_that_allows_the_remedy(files: Path, tmp_path: Path, capsys):
    arguments = ["fix", str(files / "val.npz"), "--test", str(files / "test.npz"), "--json", str(tmp_path / "f.json")]
    assert main([*arguments, "--max-easy-loss", "0"]) == 0
    strict = json.loads((tmp_path / "f.json").read_text(encoding="utf-8"))
    limit = re.search(r"--max-easy-loss (\d+\.\d)", capsys.readouterr().out)
    assert limit is not None
    assert float(limit[1]) / 100 >= -strict["excluded"]["estimate"]["easy"]
    assert main([*arguments, "--max-easy-loss", limit[1]]) == 0
    wide = json.loads((tmp_path / "f.json").read_text(encoding="utf-8"))
    gain = {remedy["name"]: remedy["estimate"]["hard"] for remedy in wide["remedies"]}
    assert gain[wide["chosen"]] >= strict["excluded"]["estimate"]["hard"]


def test_nothing_helps_an_accurate_model(tmp_path: Path, capsys):
    for name, seed in (("val", 0), ("test", 1)):
        arrays = biased(450, seed, bias=0)
        save(
            tmp_path / f"{name}.npz", **(arrays | {"logits": 9 * arrays["logits"] + 60 * np.eye(9)[arrays["targets"]]})
        )
    arguments = [str(tmp_path / "val.npz"), "--test", str(tmp_path / "test.npz"), "--out", str(tmp_path / "fixed")]
    assert main(["fix", *arguments, "--json", str(tmp_path / "f.json")]) == 0
    result = json.loads((tmp_path / "f.json").read_text(encoding="utf-8"))
    assert (result["chosen"], result["proof"]) == (None, None)
    assert "Nothing helped" in capsys.readouterr().out
    assert not (tmp_path / "fixed").exists()


def test_costs_by_name_lower_the_mean_cost(files: Path, tmp_path: Path):
    (tmp_path / "costs.json").write_text(json.dumps({NAMES[8]: {NAMES[0]: 20.0}}))
    arguments = [str(files / "val.npz"), "--test", str(files / "test.npz"), "--costs", str(tmp_path / "costs.json")]
    outputs = ["--json", str(tmp_path / "f.json"), "--out", str(tmp_path / "fixed")]
    assert main(["fix", *arguments, "--goal", "cost", *outputs]) == 0
    proof = json.loads((tmp_path / "f.json").read_text(encoding="utf-8"))["proof"]["cost"]
    test, costs = np.load(files / "test.npz"), 1 - np.eye(9)
    costs[8, 0] = 20
    for side, predictions in (
        ("before", test["logits"].argmax(1)),
        ("after", cg.load_fix(tmp_path / "fixed").predict(test["logits"])),
    ):
        assert proof[side] == pytest.approx(-costs[test["targets"], predictions].mean())
    assert proof["change"] > 0


def without(arrays: dict, *names: str) -> dict:
    return {name: value for name, value in arrays.items() if name not in names}


def replaced(arrays: dict, name: str, at: object, value: object) -> dict:
    changed = arrays[name].copy()
    changed[at] = value
    return arrays | {name: changed}


BAD = {
    "labels only": (without(biased(90, 0), "logits") | {"predictions": np.zeros(90, dtype=int)}, None, "no scores"),
    "nan": (replaced(biased(90, 0), "logits", (3, 2), np.nan), None, "NaN"),
    "one sample in a class": (
        {key: value if key == "class_names" else value[:80] for key, value in biased(90, 0).items()}
        | {"targets": np.append(np.arange(79) % 8, 8)},
        None,
        "1 sample",
    ),
    "other classes": (biased(90, 0), biased(90, 1, names=[*NAMES[:8], "other"]), "'other'"),
    "fewer classes": (biased(90, 0), biased(90, 1, names=NAMES[:8]), "9 and 8 classes"),
    "shared samples": (
        biased(90, 0),
        {
            key: value if key == "class_names" else np.concatenate([value, biased(90, 0)[key][:20]])
            for key, value in biased(90, 1).items()
        },
        "20 samples",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_writes_nothing(case: str, tmp_path: Path, capsys):
    fit, test, fact = BAD[case]
    arguments = [save(tmp_path / "val.npz", **fit)]
    if test is not None:
        arguments += ["--test", save(tmp_path / "test.npz", **test)]
    before = sorted(tmp_path.iterdir())
    outputs = ["--out", str(tmp_path / "fixed"), "--json", str(tmp_path / "f.json"), "--html", str(tmp_path / "f.html")]
    assert main(["fix", *arguments, *outputs]) == 2
    printed = capsys.readouterr()
    assert fact in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("flags", "fact"),
    [
        (["--out", "{files}"], "contains an input"),
        (["--out", "{files}/val.npz"], "is a file"),
        (["--out", "{tmp}/no/such"], "does not exist"),
        (["--out", "{tmp}/full"], "notes.txt"),
        (["--out", "{tmp}/fixed", "--json", "{tmp}/fixed/f.json"], "f.json"),
        (["--json", "{files}/val.npz"], "overwrite an input"),
        (["--costs", "{tmp}/costs.csv"], "costs.csv"),
        (["--goal", "cost"], "--goal cost needs --costs"),
        (["--goal", "easy"], "--goal"),
        (["--max-easy-loss", "-1"], "-1"),
        (["--test", "{files}/test.npz", "{files}/test_a.npz"], "1 and 2 files"),
    ],
)
def test_bad_arguments_are_named(flags: list[str], fact: str, files: Path, tmp_path: Path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    (tmp_path / "fixed").mkdir()
    filled = [flag.format(files=files, tmp=tmp_path) for flag in flags]
    assert main(["fix", str(files / "val.npz"), *filled]) == 2
    assert fact in capsys.readouterr().err


def test_earlier_fix_is_replaced(files: Path, fixed: Path, tmp_path: Path):
    out = tmp_path / "fixed"
    cg.Fix("old", "logits", [], NAMES).save(out)
    assert main(["fix", str(files / "val.npz"), "--out", str(out), "--max-easy-loss", "100"]) == 0
    assert cg.load_fix(out).name != "old"
    assert [path.name for path in tmp_path.iterdir()] == ["fixed"]  # no temporary directories are left
