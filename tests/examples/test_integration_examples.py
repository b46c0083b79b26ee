"""The examples of the integrations run, and leave an audit behind."""

import argparse
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import classgap as cg
from scripts import load_script

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("task", ["text", "image"])
def test_hugging_face(task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load_script("examples/huggingface_trainer.py").main(["--task", task, "--epochs", "1", "--out", str(tmp_path)])
    audit = cg.Audit.load(tmp_path / "eval" / "audit.json")
    assert audit.class_names == ("plain", "mixed", "noisy")
    assert audit.overall.accuracy > 0.4  # chance is 0.33
    assert "noisy" in capsys.readouterr().out


def test_lightning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load_script("examples/lightning_module.py").main(["--epochs", "2", "--out", str(tmp_path)])
    for stage in ("val", "test"):
        audit = cg.Audit.load(tmp_path / stage / "audit.json")
        assert audit.class_names == ("near", "middle", "far")
        assert audit.overall.accuracy > 0.5  # chance is 0.33
    assert "near" in capsys.readouterr().out


def test_torchmetrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load_script("examples/torchmetrics_loop.py").main(["--epochs", "3", "--out", str(tmp_path)])
    audit = cg.Audit.load(tmp_path / "audit.json")
    assert audit.overall.n_samples == 900
    assert audit.overall.accuracy > 0.5  # chance is 0.33
    printed = capsys.readouterr().out
    for each in audit.classes:
        assert f"{each.name} {each.accuracy:.3f}" in printed
    assert (tmp_path / "report.html").exists()


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Images in three colors, in the layout that timm reads."""
    random = np.random.default_rng(0)
    for split, size in (("train", 8), ("validation", 4)):
        for place, color in enumerate(("red", "green", "blue")):
            folder = tmp_path / "photos" / split / color
            folder.mkdir(parents=True)
            for number in range(size):
                pixels = random.integers(0, 120, (32, 32, 3), dtype=np.uint8)
                pixels[:, :, place] += 100
                Image.fromarray(pixels).save(folder / f"{number}.png")
    return tmp_path / "photos"


def test_timm_stopped_after_an_epoch_and_resumed(photos: Path, tmp_path: Path) -> None:
    words = f"--data-dir {photos} --model test_resnet --img-size 32 -b 8 --epochs 3 --lr 0.05 --clip-grad 1".split()
    words += ["--loss", "mr2:memory_size=8", "--eval-metric", "worst_class_accuracy"]
    example = load_script("examples/timm_train.py")
    example.main([*words, "--output", str(tmp_path / "whole")])
    example.main(
        [*words, "--output", str(tmp_path / "resumed"), "--resume", str(tmp_path / "whole" / "checkpoint-0.pth.tar")]
    )
    with torch.serialization.safe_globals([argparse.Namespace]):
        whole, resumed = (
            torch.load(tmp_path / name / "last.pth.tar", weights_only=True) for name in ("whole", "resumed")
        )
    assert whole["epoch"] == resumed["epoch"] == 2
    for part in (lambda each: each["state_dict"], lambda each: each["task_state"]["class_loss"]):
        assert part(whole).keys() == part(resumed).keys()
        assert all(torch.equal(part(resumed)[name], value) for name, value in part(whole).items())
    assert whole["optimizer"]["param_groups"] == resumed["optimizer"]["param_groups"]
    assert cg.Audit.load(tmp_path / "resumed" / "audit.json").class_names == ("blue", "green", "red")


@pytest.mark.parametrize("word", ["--mixup=0.2", "--amp", "--warmup=1"])
def test_arguments_that_the_timm_script_does_not_have_are_errors(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        load_script("examples/timm_train.py").main(["--data-dir", "photos", word])
    assert f"unrecognized arguments: {word}" in capsys.readouterr().err


def test_the_timm_script_lists_its_arguments() -> None:
    example = load_script("examples/timm_train.py")
    listed = set(re.findall(r"--[a-z-]+", example.__doc__))
    source = (EXAMPLES / "timm_train.py").read_text()
    assert listed == set(re.findall(r'add_argument\((?:"-\w", )?"(--[a-z-]+)"', source))
