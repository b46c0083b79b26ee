"""Recipes in experiments/ are valid and can be run, and their samples are held out."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from classgap import methods
from classgap.data import load
from classgap.models import MODELS
from classgap.registry import Spec
from classgap.reproduce.catalog import load_recipe
from classgap.reproduce.cells import make_plan
from classgap.reproduce.store import ResultStore

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "experiments").glob("*.yaml"))


@pytest.fixture(scope="module")
def samples() -> ModuleType:
    spec = importlib.util.spec_from_file_location("held_out_samples", ROOT / "experiments" / "held_out_samples.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
@pytest.mark.parametrize("scale", ["tiny", "cpu", "full"])
def test_settings_are_valid(forms, path: Path, scale: str) -> None:
    for cell in make_plan(load_recipe(str(path)), scale).cells:
        settings = cell.to_dict()
        methods.build(
            settings.get("method", "erm"), num_classes=3, class_counts=[1, 1, 1], feature_dim=2, num_samples=3
        )
        spec = Spec.parse(str(settings["model"]))
        assert set(spec.options) <= set(MODELS.entry(spec.name).options())


def test_workers_know_the_forms(tmp_path: Path) -> None:
    recipe, store = ROOT / "experiments" / "mr2-forms.yaml", tmp_path / "store"
    command = [sys.executable, str(ROOT / "experiments" / "reproduce.py"), str(recipe), "--results-dir", str(store)]
    subprocess.run([*command, "--cells", "MR², label smoothing / MNIST*"], check=True, capture_output=True)
    stored = [ResultStore(store).get(key) for key in ResultStore(store).keys()]  # noqa: SIM118 - no mapping
    assert {entry["settings"].get("method", "erm") for entry in stored} == {"smoothed", "erm"}
    assert {entry["seed"] for entry in stored} == {110}


def test_the_search_never_sees_test_images(samples: ModuleType, tmp_path: Path) -> None:
    for i in range(10):
        for part in ("train", "test"):
            image = tmp_path / "images" / part / "cat" / f"{part}{i}.png"
            image.parent.mkdir(parents=True, exist_ok=True)
            image.write_text(part)
    made = samples.split_training_images(tmp_path / "images")
    held_out, trained = (sorted((made / part / "cat").iterdir()) for part in ("test", "train"))
    assert [path.name for path in held_out] == ["train0.png", "train5.png"]
    assert len(trained) == 8
    assert {path.read_text() for path in held_out + trained} == {"train"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images", "images-search"]


def test_new_samples_were_never_trained_on(samples: ModuleType, tmp_path: Path) -> None:
    count = {"train": 200, "test": 4}
    arrays = {f"{part}_x": np.arange(n, dtype=np.float32)[:, None] + n for part, n in count.items()}
    arrays |= {f"{part}_y": np.arange(n) % 2 for part, n in count.items()}
    np.savez(tmp_path / "file.npz", **arrays)
    made = samples.add_new_samples(tmp_path / "file.npz")
    drawn: set[float] = set()
    for seed in samples.DATA_SEEDS:
        data = load(f"features:{made}:test_split=new:fraction=0.2:data_seed={seed}")
        drawn |= set(data.train.inputs[torch.arange(len(data.train))].flatten().tolist())
    new = set(data.test.inputs[torch.arange(len(data.test))].flatten().tolist())
    assert new == set(arrays["train_x"].flatten().tolist()) - drawn
    assert 80 < len(new) < 160  # three draws of 40 among 200 overlap


def test_the_draws_are_those_of_the_recipes(samples: ModuleType) -> None:
    texts = [path.read_text() for path in [*RECIPES, ROOT / "src" / "classgap" / "recipes" / "question-tuned.yaml"]]
    drawn = {
        text.split("data_seed=")[1].split('"')[0]
        for each in texts
        for text in each.splitlines()
        if "test_split" in text
    }
    assert {int(seed) for seed in drawn} == set(samples.DATA_SEEDS)
