"""iNaturalist 2018 (Van Horn et al., 2018): images listed in COCO-style JSON files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from classgap.data.dataset import Dataset
from classgap.data.sources.image_dataset import ImageList, load_image_dataset, unique_names


def load_inaturalist2018(
    path: str,
    *,
    image_dir: str = "",
    size: int = 256,
    on_error: str = "raise",
    cache_gb: float = 4.0,
    crops: str = "stored",
) -> Dataset:
    """Load iNaturalist 2018 from ``train2018.json`` and ``val2018.json``; its validation images are the test split.

    A file has ``images`` with ``id`` and ``file_name`` (``train_val2018/Plantae/7477/….jpg``), ``annotations`` with
    ``image_id`` and ``category_id``, and ``categories`` with ``id`` and ``name``. Classes are the categories of the
    training file by id. Their names in the published files are numbers; ``categories.json`` in the same directory, if
    there is one, has those of the species.

    Args:
        path: Directory of the files.
        image_dir: Directory that contains ``train_val2018``. Defaults to ``path``.
        size: As in ``folder``.
        on_error: How to handle unreadable images: "raise" an error, or "skip" them.
        cache_gb: Keep decoded images in memory and on disk if they take at most this many gigabytes.
        crops: Source of random resized crops in training: the "stored" squares, or the "original" files (slower).
    """
    directory = Path(os.path.expanduser(path))
    base = Path(os.path.expanduser(image_dir)) if image_dir else directory
    content = {split: _read_json(directory / f"{split}2018.json") for split in ("train", "val")}
    try:
        names = {int(each["id"]): str(each["name"]) for each in content["train"]["categories"]}
        if (directory / "categories.json").is_file():
            species = {int(each["id"]): str(each["name"]) for each in _read_json(directory / "categories.json")}
            names = {number: species.get(number, name) for number, name in names.items()}
        ids = sorted(names)
        numbers = {number: position for position, number in enumerate(ids)}
        train, test = (_image_list(content[split], base, numbers, f"{split}2018.json") for split in content)
    except (KeyError, TypeError) as error:
        raise ValueError(f"inaturalist2018: a file in {directory} lacks {error}; expected COCO-style lists.") from error
    class_names = unique_names([names[number] for number in ids], [str(number) for number in ids])
    return load_image_dataset(
        f"inaturalist2018:{path}",
        train,
        test,
        class_names,
        size=size,
        on_error=on_error,
        cache_gb=cache_gb,
        crops=crops,
    )


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(
            f"inaturalist2018: cannot read {str(file)!r} ({error}); PATH must contain train2018.json and val2018.json."
        ) from error


def _image_list(content: Any, base: Path, numbers: dict[int, int], name: str) -> ImageList:
    files = {each["id"]: each["file_name"] for each in content["images"]}
    labels = {each["image_id"]: int(each["category_id"]) for each in content["annotations"]}
    if missing := sorted(files.keys() - labels.keys()):
        raise ValueError(f"inaturalist2018: {name} has no category for image {missing[0]} and {len(missing) - 1} more.")
    if unknown := sorted({labels[image] for image in files} - numbers.keys()):
        raise ValueError(f"inaturalist2018: {name} has category {unknown[0]}, which train2018.json does not list.")
    if not files:
        raise ValueError(f"inaturalist2018: {name} lists no images.")
    return ImageList(
        tuple(os.path.join(base, file) for file in files.values()), tuple(numbers[labels[image]] for image in files)
    )
