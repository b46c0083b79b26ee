"""Images listed in text files of ``PATH LABEL`` lines; ImageNet-LT and RSCD."""

from __future__ import annotations

import os
import reprlib
from pathlib import Path

from classgap._regular_files import check_regular_file
from classgap.data.dataset import Dataset
from classgap.data.sources.folder import TEST_FRACTION, find_images, split_list
from classgap.data.sources.image_dataset import ImageList, load_image_dataset

Lines = list[tuple[str, str]]


def load_list(
    files: str,
    *,
    image_dir: str = "",
    class_names: str = "",
    size: int | None = None,
    test_fraction: float | None = None,
    on_error: str = "raise",
    cache_gb: float = 4.0,
    crops: str = "stored",
    data_seed: int = 0,
) -> Dataset:
    """Load ``list:TRAIN.txt,TEST.txt``, or draw a test split from one list. Each line has a path and a class.

    A class is a number from 0, or a name; names are sorted alphabetically.

    Args:
        files: Training list and test list, separated by a comma, or one list.
        image_dir: Directory that paths are relative to. Defaults to the directory of the first list.
        class_names: File with one class name per line, for lists with class indices.
        size: As in ``folder``.
        test_fraction: Fraction of each class to hold out as the test split if there is none, 0.2 by default.
        on_error: How to handle unreadable images: "raise" an error, or "skip" them.
        cache_gb: Keep decoded images in memory and on disk if they take at most this many gigabytes.
        crops: Source of random resized crops in training: the "stored" squares, or the "original" files (slower).
        data_seed: Random seed of the held-out test split.
    """
    parts = [Path(os.path.expanduser(part)) for part in files.split(",")]
    if len(parts) > 2:
        raise ValueError(f"list takes one file, or two separated by a comma, got {files!r}.")
    if len(parts) == 2 and test_fraction is not None:
        raise ValueError(f"list:{files} has a test list; remove test_fraction={test_fraction}.")
    base = Path(os.path.expanduser(image_dir)) if image_dir else parts[0].parent
    lines = [_read_lines(part) for part in parts]
    numbers, names = _number_classes(lines[0], _read_class_names(class_names))
    lists = [_make_image_list(each, base, numbers) for each in lines]
    notes: tuple[str, ...] = ()
    if len(lists) == 1:
        fraction = TEST_FRACTION if test_fraction is None else test_fraction
        lists = list(split_list(lists[0], base, fraction, data_seed, len(names)))
        notes = (
            f"list:{files} has no test list: {len(lists[1].paths)} images were drawn for testing, stratified by class.",
        )
    return load_image_dataset(
        f"list:{files}",
        lists[0],
        lists[1],
        names,
        size=size,
        on_error=on_error,
        cache_gb=cache_gb,
        crops=crops,
        notes=notes,
    )


def load_imagenet_lt(
    path: str,
    *,
    image_dir: str = "",
    size: int = 256,
    on_error: str = "raise",
    cache_gb: float = 4.0,
    crops: str = "stored",
) -> Dataset:
    """Load ImageNet-LT (Liu et al., 2019) from ``ImageNet_LT_train.txt`` and ``ImageNet_LT_test.txt``.

    A line looks like ``train/n01440764/n01440764_190.JPEG 0``. Class names are the WordNet IDs of the folders.

    Args:
        path: Directory of the lists.
        image_dir: Directory with ImageNet's ``train`` and ``val``, both with one folder per class. Defaults to
            ``path``.
        size: As in ``folder``.
        on_error: How to handle unreadable images: "raise" an error, or "skip" them.
        cache_gb: Keep decoded images in memory and on disk if they take at most this many gigabytes.
        crops: Source of random resized crops in training: the "stored" squares, or the "original" files (slower).
    """
    directory = Path(os.path.expanduser(path))
    base = Path(os.path.expanduser(image_dir)) if image_dir else directory
    lines = [_read_lines(directory / f"ImageNet_LT_{split}.txt") for split in ("train", "test")]
    numbers, names = _number_classes(lines[0])
    folders = {label: Path(file).parent.name for file, label in lines[0]}
    names = tuple(folders.get(name, name) for name in names)
    train, test = (_make_image_list(each, base, numbers) for each in lines)
    return load_image_dataset(
        f"imagenet-lt:{path}", train, test, names, size=size, on_error=on_error, cache_gb=cache_gb, crops=crops
    )


def load_rscd(
    path: str, *, size: int = 256, on_error: str = "raise", cache_gb: float = 4.0, crops: str = "stored"
) -> Dataset:
    """Load the Road Surface Classification Dataset (Zhao and Wei, 2022): ``train/CLASS/*``, ``test_50k/*-CLASS.jpg``.

    The class of a test image follows the first hyphen of its name: ``2022012523413511-wet-asphalt-smooth.jpg`` is
    ``wet_asphalt_smooth``. Images in ``vali_20k``, named alike, are validation samples. For other layouts, use
    ``list:``.

    Args:
        path: Directory with ``train``, ``test_50k`` and optionally ``vali_20k``.
        size: As in ``folder``.
        on_error: How to handle unreadable images: "raise" an error, or "skip" them.
        cache_gb: Keep decoded images in memory and on disk if they take at most this many gigabytes.
        crops: Source of random resized crops in training: the "stored" squares, or the "original" files (slower).
    """
    directory = Path(os.path.expanduser(path))
    for needed in (directory / "train", directory / "test_50k"):
        if not needed.is_dir():
            raise ValueError(f"rscd: directory not found: {str(needed)!r}; PATH must contain train and test_50k.")
    train_lines = [(file, Path(file).parent.name) for file in find_images(directory / "train")]
    test_lines, val_lines = (
        [(file, Path(file).stem.partition("-")[2].replace("-", "_")) for file in find_images(directory / folder)]
        for folder in ("test_50k", "vali_20k")
    )
    if not train_lines or not test_lines:
        raise ValueError(f"rscd: no images in {directory / ('test_50k' if train_lines else 'train')}.")
    numbers, names = _number_classes(train_lines)
    train, test, validation = (
        _make_image_list(each, directory, numbers) for each in (train_lines, test_lines, val_lines)
    )
    return load_image_dataset(
        f"rscd:{path}",
        train,
        test,
        names,
        size=size,
        on_error=on_error,
        cache_gb=cache_gb,
        crops=crops,
        validation=validation if val_lines else None,
    )


def _read_text(file: Path) -> list[str]:
    check_regular_file(file)
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read the list {str(file)!r} ({error}).") from error


def _read_class_names(file: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in _read_text(Path(os.path.expanduser(file))) if line.strip()) if file else ()


def _read_lines(file: Path) -> Lines:
    lines: Lines = []
    for number, line in enumerate(_read_text(file), 1):
        if line.strip():
            parts = line.rsplit(maxsplit=1)  # paths may contain spaces
            if len(parts) < 2 or "\0" in line:
                got = reprlib.repr(line)
                raise ValueError(f"{file}, line {number}: expected a path, a space and a class, got {got}.")
            lines.append((parts[0].strip(), parts[1]))
    if not lines:
        raise ValueError(f"the list {str(file)!r} is empty.")
    return lines


def _number_classes(train: Lines, given: tuple[str, ...] = ()) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the number of each label, and the class names in order."""
    labels = {label for _, label in train}
    if not all(map(_is_number, labels)):
        names = given or tuple(sorted(labels))
        return {name: number for number, name in enumerate(names)}, names
    total = max(map(int, labels)) + 1
    if given and len(given) < total:
        raise ValueError(f"class_names has {len(given)} names, but the training list has class {total - 1}.")
    names = given or tuple(str(number) for number in range(total))
    return {str(number): number for number in range(len(names))}, names


def _is_number(label: str) -> bool:
    return label.isascii() and label.isdigit()


def _make_image_list(lines: Lines, base: Path, numbers: dict[str, int]) -> ImageList:
    labels = [str(int(label)) if _is_number(label) and label not in numbers else label for _, label in lines]
    unknown = sorted(set(labels) - numbers.keys())
    if unknown:
        example = lines[labels.index(unknown[0])][0]
        raise ValueError(f"the training split has no class {', '.join(unknown[:5])}, needed by {example!r}.")
    paths = tuple(os.path.join(base, path) for path, _ in lines)
    return ImageList(paths, tuple(numbers[label] for label in labels))
