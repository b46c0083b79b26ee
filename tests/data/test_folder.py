import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from image_files import as_tensor_layout, pixels, write, write_tree
from PIL import Image

from classgap.data import load
from classgap.data.sources.images import ImageFiles


def test_two_trees(tmp_path: Path) -> None:
    write_tree(tmp_path / "train", {"bee": 3, "ant": 2})
    write_tree(tmp_path / "test", {"bee": 2}, seed=50)
    (tmp_path / "train" / "ant" / "notes.txt").write_text("no image")
    (tmp_path / "train" / "ant" / "._000.png").write_text("hidden")
    data = load(f"folder:{tmp_path}")
    assert data.class_names == ("ant", "bee")
    assert data.train.targets.tolist() == [0, 0, 1, 1, 1]
    assert data.test.targets.tolist() == [1, 1]
    assert (data.kind, data.shape, data.name) == ("image", (3, 6, 6), f"folder:{tmp_path}")
    expected = np.stack([as_tensor_layout(pixels(seed)) for seed in (1000, 1001, 0, 1, 2)])
    assert np.array_equal(data.train.inputs[torch.arange(5)].numpy(), expected)
    assert np.array_equal(data.test.inputs[torch.tensor([1])][0].numpy(), as_tensor_layout(pixels(51)))
    assert data.mean == pytest.approx(tuple(expected.mean(axis=(0, 2, 3)) / 255))
    assert data.std == pytest.approx(tuple(expected.std(axis=(0, 2, 3)) / 255))


def test_large_images_use_the_statistics_of_imagenet(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a": 2, "b": 2})
    assert load(f"folder:{tmp_path}:size=65").mean == (0.485, 0.456, 0.406)
    assert load(f"folder:{tmp_path}:size=64").mean != (0.485, 0.456, 0.406)


def test_a_test_split_is_drawn_by_file_name(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a": 20, "b": 5})
    data = load(f"folder:{tmp_path}:test_fraction=0.4")
    assert data.train_counts.tolist() == [12, 3]
    assert data.test.class_counts(2).tolist() == [8, 2]
    assert "10 images were drawn" in data.notes[0]
    tested = {row.numpy().tobytes() for row in data.test.inputs[torch.arange(8)]}
    write(tmp_path / "A" / "new.png", 7)  # another class, before the others
    write(tmp_path / "A" / "newer.png", 8)
    again = load(f"folder:{tmp_path}:test_fraction=0.4")
    kept = again.test.inputs[(again.test.targets == 1).nonzero().flatten()]
    assert {row.numpy().tobytes() for row in kept} == tested
    other = load(f"folder:{tmp_path}:test_fraction=0.4:data_seed=1")
    assert not torch.equal(other.test.inputs[torch.arange(11)], again.test.inputs[torch.arange(11)])


def test_val_is_used_as_the_test_split(tmp_path: Path) -> None:
    write_tree(tmp_path / "train", {"a": 1, "b": 1})
    write_tree(tmp_path / "val", {"a": 3})
    assert len(load(f"folder:{tmp_path}").test) == 3


@pytest.mark.parametrize("name", ["val", "valid", "validation"])
def test_val_is_the_validation_split_beside_a_test_folder(name: str, tmp_path: Path) -> None:
    for seed, (tree, counts) in enumerate({"train": {"a": 2, "b": 2}, "test": {"a": 1}, name: {"b": 3}}.items()):
        write_tree(tmp_path / tree, counts, seed=100 * seed)
    data = load(f"folder:{tmp_path}")
    assert data.validation is not None
    assert (len(data.train), len(data.test), len(data.validation)) == (4, 1, 3)
    assert data.validation.targets.tolist() == [1, 1, 1]
    expected = [as_tensor_layout(np.asarray(Image.open(file))) for file in sorted((tmp_path / name / "b").iterdir())]
    assert np.array_equal(data.validation.inputs[torch.arange(3)].numpy(), np.stack(expected))


def test_valid_may_be_a_class(tmp_path: Path) -> None:
    write_tree(tmp_path, {"invalid": 5, "valid": 5})
    assert load(f"folder:{tmp_path}").class_names == ("invalid", "valid")


def test_a_folder_of_texts_names_its_source(tmp_path: Path) -> None:
    for name in ("ham", "spam"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.txt").write_text("hello")
    with pytest.raises(ValueError, match="text:"):
        load(str(tmp_path))


@pytest.mark.parametrize(
    ("trees", "text", "message"),
    [
        ({"train": {"a": 1}, "test": {"a": 1, "zebra": 1}}, "", "without a training folder: zebra"),
        ({"train": {"a": 1, "b": 0}, "test": {"a": 1}}, "", "train has no images for b"),
        ({"train": {"a": 1}, "test": {"a": 1}}, ":test_fraction=0.5", "remove test_fraction=0.5"),
        ({"test": {"a": 1}}, "", "but no train"),
        ({"train": {"a": 2}, "val": {"a": 1}, "valid": {"a": 1}}, "", "val/ and valid/"),
        ({}, "", "has no class folders"),
        ({"train": {"a": 2}}, ":on_error=ignore", "on_error must be .*got 'ignore'"),
        ({"train": {"a": 2}}, ":size=0", "size must be at least 1"),
        ({"train": {"a": 2}}, ":fracton=0.5", "did you mean 'fraction'"),
    ],
)
def test_invalid_folders_raise(tmp_path: Path, trees: dict[str, dict[str, int]], text: str, message: str) -> None:
    for tree, counts in trees.items():
        for name in counts:
            (tmp_path / tree / name).mkdir(parents=True)
        write_tree(tmp_path / tree, counts)
    with pytest.raises(ValueError, match=message):
        load(f"folder:{tmp_path}{text}")


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    write_tree(tmp_path / "train", {"a": 4, "b": 4})
    write_tree(tmp_path / "test", {"a": 2, "b": 2}, seed=100)
    (tmp_path / "train" / "a" / "001.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    broken = tmp_path / "test" / "b" / "000.png"
    broken.write_bytes(broken.read_bytes()[:90])
    return tmp_path


def test_unreadable_images_raise(damaged: Path) -> None:
    with pytest.raises(ValueError, match=r"2 of 12 images: .*001\.png .*000\.png") as raised:
        load(f"folder:{damaged}")
    assert ":on_error=skip" in str(raised.value)


@pytest.mark.parametrize("cache_gb", ["4", "0"])
def test_unreadable_images_can_be_skipped(damaged: Path, cache_gb: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the note reports it
        data = load(f"folder:{damaged}:on_error=skip:cache_gb={cache_gb}")
    assert data.train_counts.tolist() == [3, 4]
    assert data.train.index.tolist() == [0, 2, 3, 4, 5, 6, 7]
    assert data.test.index.tolist() == [0, 1, 3]
    assert np.array_equal(data.train.inputs[torch.tensor([1])][0].numpy(), as_tensor_layout(pixels(2)))
    assert np.array_equal(data.test.inputs[torch.tensor([2])][0].numpy(), as_tensor_layout(pixels(1101)))
    (note,) = data.notes
    assert re.search(r"cannot read 2 of 12 images: .*001\.png .*; skipped\.$", note)


def test_no_images_left_raises(tmp_path: Path) -> None:
    write_tree(tmp_path / "train", {"a": 2})
    (tmp_path / "test" / "a").mkdir(parents=True)
    (tmp_path / "test" / "a" / "1.png").write_text("no image")
    with pytest.raises(ValueError, match="No test images are left"):
        load(f"folder:{tmp_path}:on_error=skip")


def test_large_data_sets_are_read_lazily(tmp_path: Path) -> None:
    write_tree(tmp_path / "train", {"a": 3, "b": 3})
    write_tree(tmp_path / "test", {"a": 3}, seed=100)
    eager, lazy = (load(f"folder:{tmp_path}:cache_gb={cache_gb}:fraction=0.7") for cache_gb in (1, 0))
    rows = torch.tensor([3, 0, 2])
    assert isinstance(load(f"folder:{tmp_path}:cache_gb=0").train.inputs, ImageFiles)
    assert torch.equal(eager.train.inputs[rows], lazy.train.inputs[rows])
    assert torch.equal(eager.test.inputs[torch.arange(3)], lazy.test.inputs[torch.arange(3)])


def test_gray_images_have_three_channels(tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / "a").mkdir(exist_ok=True)
        Image.fromarray(np.full((4, 4), 40 * number, np.uint8)).save(tmp_path / "a" / f"{number}.jpg")
    assert load(f"folder:{tmp_path}:test_fraction=0.5").shape == (3, 4, 4)


def test_a_cache_that_cannot_be_written_adds_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("CLASSGAP_CACHE", str(tmp_path / "file"))
    for seed, name in enumerate(("train/cat", "train/dog", "test/cat", "test/dog")):
        write(tmp_path / "images" / name / "0.png", seed)
    (note,) = load(f"folder:{tmp_path / 'images'}").notes
    assert "could not be cached" in note
