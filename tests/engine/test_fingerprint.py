"""A run is resumed only with the data it began with."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image

from classgap.data.dataset import Dataset, Split
from classgap.data.sources import images
from classgap.engine import TrainConfig, train
from classgap.engine.errors import TrainingInterrupted
from classgap.engine.storage import fingerprint as module
from classgap.engine.storage.fingerprint import changes, fingerprint
from stop_after import StopAfter


def write_images(folder: Path, seed: int = 0, count: int = 6) -> None:
    generator = torch.Generator().manual_seed(seed)
    for split in ("train", "test"):
        for name in ("cat", "dog"):
            (folder / split / name).mkdir(parents=True, exist_ok=True)
            for number in range(count):
                pixels = torch.randint(0, 256, (8, 8, 3), generator=generator, dtype=torch.uint8).numpy()
                Image.fromarray(pixels).save(folder / split / name / f"{number}.png")


def other_pixels(folder: Path) -> None:
    Image.new("RGB", (8, 8), (1, 2, 3)).save(folder / "train" / "cat" / "3.png")


def fewer_samples(folder: Path) -> None:
    (folder / "train" / "dog" / "5.png").unlink()


@pytest.mark.parametrize(
    ("change", "named"),
    [(other_pixels, "training inputs"), (fewer_samples, "training samples (12 before, 11 now)")],
)
def test_changed_data_is_refused_on_resume(change, named: str, tmp_path: Path):
    folder = tmp_path / "photos"
    write_images(folder)
    config = TrainConfig(data=f"folder:{folder}", model="mlp", epochs=3, batch_size=4, audit=False, out=tmp_path / "r")
    with pytest.raises(TrainingInterrupted):
        train(config, quiet=True, stop=StopAfter(4))
    before = {path: path.read_bytes() for path in (tmp_path / "r").rglob("*") if path.is_file()}
    change(folder)
    with pytest.raises(ValueError, match="changed since the run began") as caught:
        train(config, quiet=True)
    assert named in str(caught.value)
    assert {path: path.read_bytes() for path in (tmp_path / "r").rglob("*") if path.is_file()} == before


def test_copied_files_are_the_same_data(tmp_path: Path):
    folder = tmp_path / "photos"
    write_images(folder)
    config = TrainConfig(data=f"folder:{folder}", model="mlp", epochs=2, batch_size=4, audit=False, out=tmp_path / "r")
    with pytest.raises(TrainingInterrupted):
        train(config, quiet=True, stop=StopAfter(4))
    for path in folder.rglob("*.png"):
        os.utime(path, (1, 1))
    assert not train(config, quiet=True).was_finished


def in_memory(seed: int = 0, **changed) -> Dataset:
    generator = torch.Generator().manual_seed(seed)
    split = Split.from_arrays(torch.randn(20, 3, generator=generator), torch.arange(20) % 2)
    return replace(Dataset("mine", split, split, ("a", "b"), "vector", (3,)), **changed)


def test_each_part_of_the_data_counts():
    base = in_memory()
    same = fingerprint(base)
    assert changes(same, fingerprint(in_memory())) == []
    assert changes(same, fingerprint(in_memory(1))) == ["training inputs", "test inputs"]
    relabeled = Split.from_arrays(base.train.inputs, (torch.arange(20) + 1) % 2)
    assert changes(same, fingerprint(in_memory(train=relabeled))) == ["training labels"]
    assert changes(same, fingerprint(in_memory(class_names=("a", "c")))) == ["class names"]
    shuffled = base.train.subset(torch.arange(19, -1, -1))
    assert changes(same, fingerprint(in_memory(train=shuffled))) == ["training labels", "training inputs"]


def test_images_on_disk_and_large_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_images(tmp_path, count=4)
    paths = tuple(sorted(map(str, (tmp_path / "train").rglob("*.png"))))
    split = Split.from_arrays(images.ImageFiles(paths, 8, 8), torch.arange(8) % 2)
    data = Dataset("mine", split, split, ("a", "b"), "image", (3, 8, 8))
    before = fingerprint(data)
    content = bytearray(Path(paths[3]).read_bytes())
    content[-20] ^= 1
    Path(paths[3]).write_bytes(content)
    assert changes(before, fingerprint(data)) == ["training inputs", "test inputs"]
    monkeypatch.setattr(module, "MAX_BYTES", 1000)  # about five of the eight files
    partly = fingerprint(data)
    Path(paths[4]).write_bytes(Path(paths[4]).read_bytes() + b"more")
    assert changes(partly, fingerprint(data)) == ["training inputs", "test inputs"]  # sizes always count
