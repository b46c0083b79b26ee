from pathlib import Path

import numpy as np
import pytest
import torch
from image_files import as_tensor_layout, pixels, write
from PIL import Image

from classgap.data import load


@pytest.fixture
def images(tmp_path: Path) -> Path:
    for seed in range(6):
        write(tmp_path / "images" / "some folder" / f"{seed}.png", seed)
    return tmp_path


def lines(*rows: tuple[int, object]) -> str:
    return "".join(f"some folder/{seed}.png {label}\n" for seed, label in rows)


def test_two_lists_of_numbers(images: Path) -> None:
    (images / "train.txt").write_text(lines((4, 1), (0, 0), (2, 2)) + "\n")
    (images / "test.txt").write_text(lines((5, 2), (1, 0)))
    (images / "classes.txt").write_text("ant\nbee\nclam\n")
    text = f"list:{images}/train.txt,{images}/test.txt:image_dir={images}/images"
    data = load(text)
    assert data.train.targets.tolist() == [1, 0, 2]
    assert data.test.targets.tolist() == [2, 0]
    assert data.class_names == ("0", "1", "2")
    assert np.array_equal(data.train.inputs[torch.tensor([0])][0].numpy(), as_tensor_layout(pixels(4)))
    assert np.array_equal(data.test.inputs[torch.tensor([1])][0].numpy(), as_tensor_layout(pixels(1)))
    assert load(f"{text}:class_names={images}/classes.txt").class_names == ("ant", "bee", "clam")


def test_a_test_split_is_drawn_from_one_list(images: Path) -> None:
    (images / "images" / "all.txt").write_text(lines(*((seed, "xy"[seed % 2]) for seed in range(6))))
    data = load(f"list:{images}/images/all.txt:test_fraction=0.34")
    assert data.class_names == ("x", "y")
    assert data.train_counts.tolist() == data.test.class_counts(2).mul(2).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        (lines((0, 0), (1, 1)), lines((2, 2)), r"no class 2, .*'some folder/2\.png'"),
        (lines((0, "a")), lines((1, "b")), "no class b"),
        ("some.png\n", lines((1, 0)), r"train\.txt, line 1: expected a path"),
        ("\n", lines((1, 0)), "is empty"),
        (lines((0, 0), (9, 0)), lines((1, 0)), r"1 of 3 images: .*9\.png \(file not found\)"),
    ],
)
def test_invalid_lists_raise(images: Path, train: str, test: str, message: str) -> None:
    (images / "train.txt").write_text(train)
    (images / "test.txt").write_text(test)
    with pytest.raises(ValueError, match=message):
        load(f"list:{images}/train.txt,{images}/test.txt:image_dir={images}/images")


def test_imagenet_lt(tmp_path: Path) -> None:
    train = [
        f"train/{name}/{name}_{number}.JPEG" for name, count in (("n02", 3), ("n01", 1)) for number in range(count)
    ]
    test = [f"val/{name}/{number}.JPEG" for number, name in enumerate(("n02", "n01"))]
    for seed, path in enumerate(train + test):
        write(tmp_path / "imagenet" / path, seed)
    (tmp_path / "ImageNet_LT_train.txt").write_text("".join(f"{path} {int('n01' in path)}\n" for path in train))
    (tmp_path / "ImageNet_LT_test.txt").write_text("".join(f"{path} {int('n01' in path)}\n" for path in test))
    data = load(f"imagenet-lt:{tmp_path}:image_dir={tmp_path}/imagenet:size=8")
    assert data.class_names == ("n02", "n01")
    assert data.train_counts.tolist() == [3, 1]
    assert data.test.targets.tolist() == [0, 1]
    assert data.shape == (3, 8, 8)


def test_rscd(tmp_path: Path) -> None:
    for seed, path in enumerate(
        (
            "train/wet_asphalt_smooth/202-wet-asphalt-smooth.jpg",
            "train/fresh_snow/203-fresh_snow.jpg",
            "test_50k/204-wet-asphalt-smooth.jpg",
            "test_50k/205-fresh_snow.jpg",
            "vali_20k/206-fresh_snow.jpg",
        )
    ):
        write(tmp_path / path, seed)
    data = load(f"rscd:{tmp_path}:size=6")
    assert data.class_names == ("fresh_snow", "wet_asphalt_smooth")
    assert data.train_counts.tolist() == [1, 1]
    assert data.test.targets.tolist() == [1, 0]
    assert data.validation is not None
    assert data.validation.targets.tolist() == [0]
    assert data.validation.index.tolist() == [0]
    wanted = Image.open(tmp_path / "vali_20k" / "206-fresh_snow.jpg")
    assert np.array_equal(data.validation.inputs[torch.tensor([0])][0].numpy(), as_tensor_layout(np.asarray(wanted)))
    (tmp_path / "vali_20k" / "206-fresh_snow.jpg").write_bytes(b"no image")
    assert load(f"rscd:{tmp_path}:size=6:on_error=skip").validation is None
    write(tmp_path / "test_50k" / "207-dry-mud.jpg", 9)
    with pytest.raises(ValueError, match="no class dry_mud"):
        load(f"rscd:{tmp_path}")
