"""Data sets whose splits are text files of ``PATH LABEL`` lines, and ImageNet-LT and RSCD, which are such or nearly."""

from __future__ import annotations

import os
from pathlib import Path

from classgap.data.dataset import Dataset
from classgap.data.sources.folder import images_below, part_list
from classgap.data.sources.image_lists import ImageList, image_dataset

Lines = list[tuple[str, str]]


def list_files(
    files: str,
    *,
    images: str = "",
    classes: str = "",
    size: int | None = None,
    test: float | None = None,
    broken: str = "stop",
    memory: float = 4.0,
    data_seed: int = 0,
) -> Dataset:
    """``list:TRAIN.txt,TEST.txt``, or one file that is parted in two: a line an image, its path and its class.

    A class is a number from 0, or a name; then classes are in alphabetical order.

    Args:
        files: the list of the training split, a comma, and the list of the test split; or one list.
        images: the folder that paths are relative to; the first list's own unless given.
        classes: a file with a class name a line, where lists have numbers.
        size: as in ``folder``.
        test: share of each class in the test split, where there is one list; 0.2 unless given.
        broken: "stop" at images that cannot be read, or "skip" them.
        memory: gigabytes up to which decoded images are kept.
        data_seed: of the draw of a test split.
    """
    parts = [Path(part).expanduser() for part in files.split(",")]
    if len(parts) > 2:
        raise ValueError(f"list takes one file, or two with a comma between; got {files!r}.")
    if len(parts) == 2 and test is not None:
        raise ValueError(f"list:{files} has a test list; leave out test={test}.")
    base = Path(images).expanduser() if images else parts[0].parent
    lines = [_lines(part) for part in parts]
    numbers, names = _numbering(lines[0], _class_names(Path(classes).expanduser()) if classes else ())
    lists = [_image_list(each, base, numbers) for each in lines]
    remarks: tuple[str, ...] = ()
    if len(lists) == 1:
        lists = list(part_list(lists[0], base, 0.2 if test is None else test, data_seed, len(names)))
        remarks = (f"list:{files}: {len(lists[1].paths)} images, drawn from each class alike, are the test split.",)
    return image_dataset(
        f"list:{files}", lists[0], lists[1], names, size=size, broken=broken, memory=memory, remarks=remarks
    )


def imagenet_lt(path: str, *, images: str = "", size: int = 256, broken: str = "stop", memory: float = 4.0) -> Dataset:
    """ImageNet-LT (Liu et al. 2019): a folder with ``ImageNet_LT_train.txt`` and ``ImageNet_LT_test.txt``.

    Their lines are such as ``train/n01440764/n01440764_190.JPEG 0``; classes are named by the folders, which are
    WordNet's numbers.

    Args:
        path: the folder with the lists.
        images: the folder with ImageNet's ``train`` and ``val``, which has a folder a class too; that of the lists
            unless given.
        size: as in ``folder``.
        broken: "stop" at images that cannot be read, or "skip" them.
        memory: gigabytes up to which decoded images are kept.
    """
    place = Path(path).expanduser()
    base = Path(images).expanduser() if images else place
    lines = [_lines(place / f"ImageNet_LT_{split}.txt") for split in ("train", "test")]
    numbers, names = _numbering(lines[0])
    folders = {label: Path(file).parent.name for file, label in lines[0]}
    names = tuple(folders.get(name, name) for name in names)
    train, test = (_image_list(each, base, numbers) for each in lines)
    return image_dataset(f"imagenet-lt:{path}", train, test, names, size=size, broken=broken, memory=memory)


def rscd(path: str, *, size: int = 256, broken: str = "stop", memory: float = 4.0) -> Dataset:
    """Road Surface Classification Dataset (Zhao and Wei 2022): ``train/CLASS/*`` and ``test_50k/*-CLASS.jpg``.

    The test folder has no folders: the class is what follows the first hyphen of a name, as in
    ``2022012523413511-wet-asphalt-smooth.jpg`` for ``wet_asphalt_smooth``. The validation folder is not used. Another
    arrangement of the data can be given as ``list:``.

    Args:
        path: the folder that has ``train`` and ``test_50k``.
        size: as in ``folder``.
        broken: "stop" at images that cannot be read, or "skip" them.
        memory: gigabytes up to which decoded images are kept.
    """
    place = Path(path).expanduser()
    for needed in (place / "train", place / "test_50k"):
        if not needed.is_dir():
            raise ValueError(f"rscd: there is no folder {str(needed)!r}; give the one that has train and test_50k.")
    lines = [(file, Path(file).parent.name) for file in images_below(place / "train")]
    held = [(file, Path(file).stem.partition("-")[2].replace("-", "_")) for file in images_below(place / "test_50k")]
    if not lines or not held:
        raise ValueError(f"rscd: there are no images in {place / ('train' if not lines else 'test_50k')}.")
    numbers, names = _numbering(lines)
    train, test = (_image_list(each, place, numbers) for each in (lines, held))
    return image_dataset(f"rscd:{path}", train, test, names, size=size, broken=broken, memory=memory)


def _text(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the list {str(file)!r} cannot be read ({error}).") from error


def _class_names(file: Path) -> tuple[str, ...]:
    return tuple(line.strip() for line in _text(file) if line.strip())


def _lines(file: Path) -> Lines:
    lines: Lines = []
    for number, line in enumerate(_text(file), 1):
        if line.strip():
            parts = line.rsplit(maxsplit=1)  # paths may have blanks
            if len(parts) < 2:
                raise ValueError(f"{file}, line {number}: must be a path, a blank and a class; got {line!r}.")
            lines.append((parts[0].strip(), parts[1]))
    if not lines:
        raise ValueError(f"the list {str(file)!r} has no lines.")
    return lines


def _numbering(train: Lines, given: tuple[str, ...] = ()) -> tuple[dict[str, int], tuple[str, ...]]:
    """Each label's number, and the classes' names in order."""
    labels = {label for _, label in train}
    if not all(map(_is_number, labels)):
        names = given or tuple(sorted(labels))
        return {name: number for number, name in enumerate(names)}, names
    total = max(map(int, labels)) + 1
    if given and len(given) < total:
        raise ValueError(f"there are {len(given)} class names and a class {total - 1} in the training list.")
    names = given or tuple(str(number) for number in range(total))
    return {str(number): number for number in range(len(names))}, names


def _is_number(label: str) -> bool:
    return label.isascii() and label.isdigit()


def _image_list(lines: Lines, base: Path, numbers: dict[str, int]) -> ImageList:
    labels = [str(int(label)) if _is_number(label) and label not in numbers else label for _, label in lines]
    unknown = sorted(set(labels) - numbers.keys())
    if unknown:
        raise ValueError(
            f"the training split has no class {', '.join(unknown[:5])}, as in {lines[labels.index(unknown[0])][0]!r}."
        )
    paths = tuple(os.path.join(base, path) for path, _ in lines)
    return ImageList(paths, tuple(numbers[label] for label in labels))
