"""``classgap train``, ``demo``, ``datasets`` and ``models`` as a user meets them."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from classgap.cli import main
from classgap.cli.main import _parse
from classgap.cli.train_command import TrainCommand
from classgap.data import DATASETS
from classgap.models import MODELS

SMALL = ["--data", "digits", "--model", "mlp:width=8", "--epochs", "1"]


def test_a_file_and_flags_give_the_same_settings(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("data: digits\nlr: 1e-2\nmilestones: [2, 3]\nnesterov: true\nsave-every: 5\nclip_grad: 1\n")
    flags = ["--data", "digits", "--lr", "0.01", "--milestones", "2", "3", "--nesterov"]
    flags += ["--save-every", "5", "--clip-grad", "1"]
    from_file = _parse("train", ["--config", str(file)])
    from_flags = _parse("train", flags)
    assert isinstance(from_file, TrainCommand)
    assert from_file.settings() == from_flags.settings()
    assert from_file.milestones == (2.0, 3.0)


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("data: digits\nlr: 0.5\nnesterov: true\n")
    parsed = _parse("train", [f"--config={file}", "--lr", "0.1", "--no-nesterov"])
    assert (parsed.lr, parsed.nesterov, parsed.data) == (0.1, False, "digits")


@pytest.mark.parametrize(
    ("text", "flags", "expected"),
    [
        ("monitor: hard", ["--val-fraction", "0.1"], {"monitor": "hard", "val_fraction": 0.1}),
        ("epochs: 3", ["--steps", "10"], {"epochs": None, "steps": 10}),
        ("epochs: 3", ["--steps=10"], {"epochs": None, "steps": 10}),
        ("epochs: 3", ["--steps", "None"], {"epochs": 3, "steps": None}),
        ("steps: 10", ["--epochs", "3"], {"epochs": 3, "steps": None}),
        ("warmup_epochs: 2", ["--warmup-steps", "5"], {"warmup_epochs": 0.0, "warmup_steps": 5}),
        ("warmup_epochs: 2", ["--warmup_steps", "5"], {"warmup_epochs": 0.0, "warmup_steps": 5}),
        ("warmup_steps: 5", ["--warmup-epochs", "2"], {"warmup_epochs": 2.0, "warmup_steps": 0}),
        ("steps: 0", ["--steps", "4"], {"steps": 4}),
    ],
)
def test_a_file_is_checked_together_with_the_flags(text: str, flags: list[str], expected: dict, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(f"data: digits\n{text}\n")
    found = _parse("train", ["--config", str(file), *flags]).settings()
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("text", "flags", "told"),
    [
        ("monitor: hard", ["--epochs", "1"], "val_fraction"),
        ("epochs: 3", ["--epochs", "2", "--steps", "10"], "epochs and steps cannot both be set; got 2 and 10"),
        ("{epochs: 3, steps: 10}", [], "epochs and steps cannot both be set; got 3 and 10"),
    ],
)
def test_what_a_file_and_flags_cannot_be_together_is_refused(
    text: str, flags: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "settings.yaml", tmp_path / "run"
    file.write_text(text)
    words = ["train", "--data", "digits", "--config", str(file), "--out", str(out), *flags]
    for more in ([], ["--dry-run"]):
        assert main([*words, *more]) == 2
        assert told in capsys.readouterr().err
    assert not out.exists()


def test_a_run_can_be_repeated_from_its_own_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *SMALL, "--out", str(tmp_path / "a"), "--no-report"]) == 0
    assert "classgap audit" in capsys.readouterr().out
    again = ["train", "--config", str(tmp_path / "a" / "config.yaml"), "--out", str(tmp_path / "b"), "--no-report"]
    assert main(again) == 0
    finals = [json.loads((tmp_path / name / "metrics.jsonl").read_text().splitlines()[-1]) for name in "ab"]
    assert finals[0] == finals[1]


def test_a_dry_run_shows_the_settings_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", *SMALL, "--dry-run"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "weight_decay" in told
    assert "0.0005" in told  # what suits the data
    assert "runs/digits-mlp-width-8-erm-seed0" in told
    assert "Nothing was trained." in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("method", "told"),
    [("erm", "updates an epoch, 42 in all."), ("jtt", "updates an epoch, 14 in stage find errors of find errors, ")],
)
def test_a_dry_run_names_a_stage_where_there_are_several(method: str, told: str, capsys) -> None:
    words = ["--data", "digits", "--model", "mlp:width=8", "--batch-size", "64", "--epochs", "3", "--method", method]
    assert main(["train", *words, "--dry-run"]) == 0
    assert told in " ".join(capsys.readouterr().out.split())


def test_what_was_left_out_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], recwarn
) -> None:
    monkeypatch.setenv("CLASSGAP_CACHE", str(tmp_path / "cache"))
    for number in range(8):
        place = tmp_path / "photos" / "ab"[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), 20 * number, np.uint8)).save(place / f"{number}.png")
    (tmp_path / "photos" / "a" / "bad.png").write_bytes(b"no image")
    words = ["train", "--data", f"folder:{tmp_path}/photos:broken=skip", "--model", "linear", "--epochs", "1"]
    words += ["--augment", "none", "--no-report", "--out", str(tmp_path / "run")]
    for more in (["--dry-run"], []):
        assert main([*words, *more]) == 0
        out, err = capsys.readouterr()
        assert (out + err).count("cannot be read") == 1
    assert not recwarn.list


@pytest.mark.parametrize("folder", ["[old]", "a[/old]"])  # in rich's markup a style, and the end of one
def test_a_dry_run_shows_brackets_as_they_are(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(folder).mkdir(parents=True)
    np.savez(Path(folder) / "f.npz", features=np.zeros((20, 3), np.float32), targets=np.arange(20) % 2)
    assert main(["train", "--data", f"features:{folder}/f.npz", "--epochs", "1", "--dry-run"]) == 0
    assert f"features:{folder}/f.npz" in capsys.readouterr().out


@pytest.mark.parametrize(("rank", "tells"), [("0", True), ("1", False)])
def test_of_several_processes_one_shows_the_plan(
    rank: str, tells: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")  # as torchrun does
    monkeypatch.setenv("RANK", rank)
    assert main(["train", *SMALL, "--dry-run"]) == 0
    assert ("Nothing was trained." in capsys.readouterr().out) == tells


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--data", "digit"], 2, "did you mean 'digits'?"),
        (["--data", "digits", "--method", "mr3"], 2, "did you mean 'mr2'?"),
        (["--data", "digits", "--method", "mr2:strenth=1"], 2, "did you mean 'strength'?"),
        (["--data", "digits", "--model", "conv1d"], 2, "conv1d"),
        (["--data", "digits", "--augment", "crop-flap"], 2, "did you mean 'crop-flip'?"),
        (["--data", "digits", "--device", "cuda"], 2, "torch sees no GPU here"),
        (["--epoch", "3", "--data", "digits"], 2, "did you mean --epochs?"),
        (["--model", "mlp"], 2, "--data"),
        (["--data", "digits", "--lr", "1e39"], 2, "lr must be at most 1e+30"),
        (
            ["--data", "digits", "--model", "mlp", "--lr", "1e30", "--epochs", "3"],
            1,
            "the loss is not finite at epoch 1",
        ),
    ],
)
def test_what_goes_wrong_is_one_line_and_a_code(
    words: list[str], code: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", *words]) == code
    err = capsys.readouterr().err
    assert told in err
    assert err.startswith("classgap: ")
    assert "Traceback" not in err


def test_the_demo_compares_and_says_what_happened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "demo"
    assert main(["demo", "--epochs", "1", "--seeds", "1", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "the hard classes: " in told
    assert "1 seed, 10,000 test samples." in told
    assert "what knows no classes: a penalty on the feature norm " in told
    assert "try it first (--method feature-norm" in told
    assert (out / "report.html").exists()
    before = (out / "mr2-seed0" / "metrics.jsonl").stat().st_mtime_ns
    assert main(["demo", "--epochs", "1", "--seeds", "1", "--out", str(out)]) == 0
    assert (out / "mr2-seed0" / "metrics.jsonl").stat().st_mtime_ns == before
    assert main(["demo", "--seeds", "0"]) == 2
    other = ["demo", "--epochs", "2", "--seeds", "1", "--out", str(out)]
    assert main(other) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert main([*other, "--overwrite"]) == 0
    assert len((out / "mr2-seed0" / "metrics.jsonl").read_text().splitlines()) == 3  # two epochs and the test


@pytest.mark.parametrize(("command", "registry"), [("datasets", DATASETS), ("models", MODELS)])
def test_listings_name_everything(command: str, registry, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in registry.names())
    assert "classgap[vision]" in told
