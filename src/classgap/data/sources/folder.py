"""A data set from folders of images: a folder a class."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import torch

from classgap.data.dataset import Dataset
from classgap.data.sources.image_lists import ImageList, image_dataset
from classgap.data.sources.images import is_image_name
from classgap.data.splits import draw, held_counts

_SHARE = 0.2


def folder(
    path: str,
    *,
    size: int | None = None,
    test: float | None = None,
    broken: str = "stop",
    memory: float = 4.0,
    data_seed: int = 0,
) -> Dataset:
    """``PATH/train/CLASS/*`` and ``PATH/test/CLASS/*`` (or ``val``); or ``PATH/CLASS/*``, parted in two.

    Classes are the folders of the training tree in alphabetical order; images may lie in folders below them. Files that
    are hidden or have no image's extension are passed over.

    Args:
        path: the folder.
        size: images are scaled so that the short side has this many pixels, and cropped to squares at the centre.
            Without it they stay as they are if all have one size, of at most 256; otherwise they become squares of 256.
        test: share of each class in the test split, where there is no test folder; 0.2 unless given.
        broken: "stop" at images that cannot be read, or "skip" them.
        memory: gigabytes up to which decoded images are kept in memory (and in a cache on disk).
        data_seed: of the draw of a test split; it depends on file names only.
    """
    base = Path(path).expanduser()
    if not base.is_dir():
        raise ValueError(f"folder: there is no folder {path!r}.")
    name = f"folder:{path}"
    tests = [tree for tree in (base / "test", base / "val") if tree.is_dir()]
    train_tree = base / "train" if (base / "train").is_dir() else base
    if train_tree is base and tests:
        raise ValueError(f"{name} has {tests[0].name}/ but no train/; name the training folder so.")
    class_names = _class_names(train_tree)
    train = _list_images(train_tree, class_names)
    remarks: tuple[str, ...] = ()
    if tests:
        if test is not None:
            raise ValueError(f"{name} has a test split in {tests[0].name}/; leave out test={test}.")
        held = _list_images(tests[0], class_names, partly=True)
    else:
        train, held = part_list(train, train_tree, _SHARE if test is None else test, data_seed, len(class_names))
        remarks = (
            f"{name} has no test folder: {len(held.paths)} images, drawn from each class alike, are its test split.",
        )
    return image_dataset(name, train, held, class_names, size=size, broken=broken, memory=memory, remarks=remarks)


def part_list(whole: ImageList, base: Path, share: float, seed: int, num_classes: int) -> tuple[ImageList, ImageList]:
    """Part a list in two in each class alike; a file's fate depends on its name under ``base`` and the seed only."""
    names = (Path(os.path.relpath(path, base)).as_posix() for path in whole.paths)
    digests = (hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).digest() for name in names)
    identity = torch.tensor([int.from_bytes(digest, "little", signed=True) for digest in digests])
    targets = torch.tensor(whole.targets)
    wanted = held_counts(torch.bincount(targets, minlength=num_classes), share)
    rows = draw(targets, identity, wanted, seed, "test split")
    rest = torch.ones(len(targets), dtype=torch.bool)
    rest[rows] = False
    return whole.part(rest.nonzero().flatten()), whole.part(rows)


def _class_names(tree: Path) -> tuple[str, ...]:
    names = tuple(sorted(each.name for each in tree.iterdir() if each.is_dir() and not each.name.startswith(".")))
    if not names:
        raise ValueError(f"folder: {tree} has no folders, one a class.")
    return names


def _list_images(tree: Path, class_names: tuple[str, ...], *, partly: bool = False) -> ImageList:
    """All images below the class folders; ``partly`` if a class may have none."""
    unknown = sorted(set(_class_names(tree)) - set(class_names))
    if unknown:
        raise ValueError(f"folder: {tree} has classes that the training folder has not: {', '.join(unknown[:5])}.")
    paths: list[str] = []
    targets: list[int] = []
    empty: list[str] = []
    for number, name in enumerate(class_names):
        found = images_below(tree / name)
        paths += found
        targets += [number] * len(found)
        if not found:
            empty.append(name)
    if empty and not (partly and paths):
        raise ValueError(f"folder: there are no images in {tree} for {', '.join(empty[:5])}.")
    return ImageList(tuple(paths), tuple(targets))


def images_below(place: Path) -> list[str]:
    """Image files in a folder and those below it, sorted."""
    return sorted(
        os.path.join(parent, name)
        for parent, _, names in os.walk(place, followlinks=True)
        for name in names
        if is_image_name(name)
    )
