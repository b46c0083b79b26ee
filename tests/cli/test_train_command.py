import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from classgap.cli import main
from classgap.cli.parser import parse
from classgap.cli.train_command import TrainCommand

SMALL = ["--data", "digits", "--model", "mlp:width=8", "--epochs", "1"]


def parse_train(*words: str) -> TrainCommand:
    return parse("train", TrainCommand, words)


def test_config_file_and_flags_give_the_same_settings(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("data: digits\nlr: 1e-2\nmilestones: [2, 3]\nnesterov: true\nsave-every: 5\nclip_grad: 1\n")
    flags = ["--data", "digits", "--lr", "0.01", "--milestones", "2", "3", "--nesterov"]
    flags += ["--save-every", "5", "--clip-grad", "1"]
    from_file = parse_train("--config", str(file))
    from_flags = parse_train(*flags)
    assert from_file.settings() == from_flags.settings()
    assert from_file.milestones == (2.0, 3.0)


def test_flags_override_the_config_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("data: digits\nlr: 0.5\nnesterov: true\n")
    parsed = parse_train(f"--config={file}", "--lr", "0.1", "--no-nesterov")
    assert (parsed.lr, parsed.nesterov, parsed.data) == (0.1, False, "digits")


@pytest.mark.parametrize(
    ("text", "flags", "expected"),
    [
        ("monitor: hard", ["--val-fraction", "0.1"], {"monitor": "hard", "val_fraction": 0.1}),
        ("epochs: 3", ["--max-steps", "10"], {"epochs": None, "max_steps": 10}),
        ("epochs: 3", ["--max-steps=10"], {"epochs": None, "max_steps": 10}),
        ("epochs: 3", ["--max-steps", "None"], {"epochs": 3, "max_steps": None}),
        ("max_steps: 10", ["--epochs", "3"], {"epochs": 3, "max_steps": None}),
        ("warmup_epochs: 2", ["--warmup-steps", "5"], {"warmup_epochs": 0.0, "warmup_steps": 5}),
        ("warmup_epochs: 2", ["--warmup_steps", "5"], {"warmup_epochs": 0.0, "warmup_steps": 5}),
        ("warmup_steps: 5", ["--warmup-epochs", "2"], {"warmup_epochs": 2.0, "warmup_steps": 0}),
        ("max_steps: 0", ["--max-steps", "4"], {"max_steps": 4}),
    ],
)
def test_config_file_is_checked_together_with_the_flags(
    text: str, flags: list[str], expected: dict, tmp_path: Path
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(f"data: digits\n{text}\n")
    found = parse_train("--config", str(file), *flags).settings()
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        ("monitor: hard", ["--epochs", "1"], "val_fraction"),
        ("epochs: 3", ["--epochs", "2", "--max-steps", "10"], "got 2 and 10"),
        ("{epochs: 3, max_steps: 10}", [], "got 3 and 10"),
    ],
)
def test_contradictory_settings_are_rejected(
    text: str, flags: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "settings.yaml", tmp_path / "run"
    file.write_text(text)
    words = ["train", "--data", "digits", "--config", str(file), "--out", str(out), *flags]
    for more in ([], ["--dry-run"]):
        assert main([*words, *more]) == 2
        assert message in capsys.readouterr().err
    assert not out.exists()


def test_a_run_can_be_repeated_from_its_own_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *SMALL, "--out", str(tmp_path / "a"), "--no-audit"]) == 0
    assert "classgap audit" in capsys.readouterr().out
    again = ["train", "--config", str(tmp_path / "a" / "config.yaml"), "--out", str(tmp_path / "b"), "--no-audit"]
    assert main(again) == 0
    finals = [json.loads((tmp_path / name / "metrics.jsonl").read_text().splitlines()[-1]) for name in "ab"]
    assert finals[0] == finals[1]


def test_dry_run_prints_the_settings_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", *SMALL, "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if line != line.rstrip()] == []
    out = " ".join(printed.split())
    assert "weight_decay" in out
    assert "0.0005" in out  # the default for this dataset
    assert "runs/digits-mlp-width-8-erm-seed0" in out
    assert "nothing was trained" in out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("method", "message"),
    [("erm", "14 per epoch, 42 in total"), ("jtt", "14 in stage find errors (stages: find errors, ")],
)
def test_dry_run_names_the_stage_of_a_staged_method(method: str, message: str, capsys) -> None:
    words = ["--data", "digits", "--model", "mlp:width=8", "--batch-size", "64", "--epochs", "3", "--method", method]
    assert main(["train", *words, "--dry-run"]) == 0
    assert message in " ".join(capsys.readouterr().out.split())


def test_skipped_images_are_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], recwarn
) -> None:
    monkeypatch.setenv("CLASSGAP_CACHE", str(tmp_path / "cache"))
    for number in range(8):
        place = tmp_path / "photos" / "ab"[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), 20 * number, np.uint8)).save(place / f"{number}.png")
    (tmp_path / "photos" / "a" / "bad.png").write_bytes(b"no image")
    words = ["train", "--data", f"folder:{tmp_path}/photos:on_error=skip", "--model", "linear", "--epochs", "1"]
    words += ["--augment", "none", "--no-audit", "--out", str(tmp_path / "run")]
    for more in (["--dry-run"], []):
        assert main([*words, *more]) == 0
        out, err = capsys.readouterr()
        assert (out + err).count("cannot read 1 of 9 images") == 1
    assert not recwarn.list


@pytest.mark.parametrize("folder", ["[old]", "a[/old]"])  # opening and closing tags in rich's markup
def test_dry_run_does_not_read_brackets_as_markup(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(folder).mkdir(parents=True)
    np.savez(Path(folder) / "f.npz", features=np.zeros((20, 3), np.float32), targets=np.arange(20) % 2)
    assert main(["train", "--data", f"features:{folder}/f.npz", "--epochs", "1", "--dry-run"]) == 0
    assert f"features:{folder}/f.npz" in capsys.readouterr().out


@pytest.mark.parametrize(("rank", "prints"), [("0", True), ("1", False)])
def test_only_rank_zero_prints_the_plan(
    rank: str, prints: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")  # as torchrun does
    monkeypatch.setenv("RANK", rank)
    assert main(["train", *SMALL, "--dry-run"]) == 0
    assert ("nothing was trained" in capsys.readouterr().out) == prints


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--data", "digit"], 2, "did you mean 'digits'?"),
        (["--data", "digits", "--method", "mr3"], 2, "did you mean 'mr2'?"),
        (["--data", "digits", "--method", "mr2:strenth=1"], 2, "did you mean 'strength'?"),
        (["--data", "digits", "--model", "conv1d"], 2, "conv1d"),
        (["--data", "digits", "--augment", "crop-flap"], 2, "did you mean 'crop-flip'?"),
        (["--data", "digits", "--device", "cuda"], 2, "cuda"),
        (["--epoch", "3", "--data", "digits"], 2, "did you mean --epochs?"),
        (["--model", "mlp"], 2, "--data"),
        (["--data", "digits", "--lr", "1e39"], 2, "1e+30"),
        (
            ["--data", "digits", "--model", "mlp", "--lr", "1e30", "--epochs", "3"],
            1,
            "epoch 1",
        ),
    ],
)
def test_errors_are_one_line_with_an_exit_code(
    words: list[str], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", *words]) == code
    err = capsys.readouterr().err
    assert message in err
    assert err.startswith("classgap: ")
    assert "Traceback" not in err
