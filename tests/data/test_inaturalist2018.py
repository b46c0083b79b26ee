"""Tiny files in the layout of the published iNaturalist 2018."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from image_files import as_tensor_layout, pixels, write

from classgap.data import load

CATEGORIES = [{"id": 7, "name": "7", "supercategory": "Aves"}, {"id": 3, "name": "3", "supercategory": "Plantae"}]


def write_split(base: Path, split: str, rows: list[tuple[int, int]], **changes: Any) -> None:
    """Write images and annotations, which are listed in another order than the images."""
    images = [{"id": image, "file_name": f"train_val2018/x/{image}.png"} for image, _ in rows]
    annotations = [{"id": image, "image_id": image, "category_id": category} for image, category in reversed(rows)]
    content = {"info": {}, "images": images, "annotations": annotations, "categories": CATEGORIES, **changes}
    (base / f"{split}2018.json").write_text(json.dumps(content))
    for image, _ in rows:
        write(base / "train_val2018" / "x" / f"{image}.png", image)


@pytest.fixture
def published(tmp_path: Path) -> Path:
    write_split(tmp_path, "train", [(10, 7), (12, 3), (11, 7)])
    write_split(tmp_path, "val", [(21, 3), (20, 7)])
    return tmp_path


def test_it_reads_the_published_files(published: Path) -> None:
    data = load(f"inaturalist2018:{published}:size=6")
    assert data.class_names == ("3", "7")
    assert data.train.targets.tolist() == [1, 0, 1]
    assert data.test.targets.tolist() == [0, 1]
    assert np.array_equal(data.train.inputs[torch.tensor([1])][0].numpy(), as_tensor_layout(pixels(12)))
    assert np.array_equal(data.test.inputs[torch.tensor([0])][0].numpy(), as_tensor_layout(pixels(21)))


def test_names_of_species_and_another_directory_of_images(published: Path) -> None:
    species = [{"id": 3, "name": "Bellis perennis"}, {"id": 7, "name": "Parus major"}]
    (published / "categories.json").write_text(json.dumps(species))
    (published / "images").mkdir()
    (published / "train_val2018").rename(published / "images" / "train_val2018")
    data = load(f"inaturalist2018:{published}:image_dir={published}/images:size=6")
    assert data.class_names == ("Bellis perennis", "Parus major")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"annotations": []}, "val2018.json has no category for image 20 and 1 more"),
        ({"annotations": [{"image_id": i, "category_id": 9} for i in (20, 21)]}, "category 9"),
        ({"images": []}, "lists no images"),
        ({"images": [{"id": 20}]}, "lacks 'file_name'"),
    ],
)
def test_damaged_files_raise(published: Path, changes: dict[str, Any], message: str) -> None:
    write_split(published, "val", [(21, 3), (20, 7)], **changes)
    with pytest.raises(ValueError, match=message):
        load(f"inaturalist2018:{published}")


def test_missing_files_raise(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"train2018\.json.*PATH must contain"):
        load(f"inaturalist2018:{tmp_path}")
