"""Images in one folder per class."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import torch

from classgap.data.dataset import Dataset
from classgap.data.sources.image_dataset import ImageList, load_image_dataset
from classgap.data.sources.images import is_image_name
from classgap.data.splits import draw_per_class, holdout_counts, other_rows

MAX_FOLDERS = 250_000  # below one class; a wrong path may hold a whole file system
TEST_FRACTION = 0.2  # of a drawn test split
VALIDATION = ("val", "valid", "validation")  # usual names of a folder of validation files


def load_folder(
    path: str,
    *,
    size: int | None = None,
    test_fraction: float | None = None,
    on_error: str = "raise",
    cache_gb: float = 4.0,
    crops: str = "stored",
    data_seed: int = 0,
) -> Dataset:
    """Load ``PATH/train/CLASS/*`` and ``PATH/test/CLASS/*``, or draw a test split from ``PATH/CLASS/*``.

    ``PATH/val/CLASS/*`` (or ``valid``, ``validation``) is the validation split, and the test split if there is no
    ``test`` folder.

    Classes are the folders of the training tree in alphabetical order. Images in subfolders are included; hidden files
    and files without an image extension are not.

    Args:
        path: Folder.
        size: Resize the short side to this many pixels and center-crop to a square. By default, images that share one
            size of at most 256 pixels keep it, and others become 256×256 squares.
        test_fraction: Fraction of each class to hold out as the test split if there is none, 0.2 by default.
        on_error: How to handle unreadable images: "raise" an error, or "skip" them.
        cache_gb: Keep decoded images in memory and on disk if they take at most this many gigabytes.
        crops: Source of random resized crops in training: the "stored" squares, or the "original" files (slower).
        data_seed: Random seed of the held-out test split, which otherwise depends only on file names.
    """
    name = f"folder:{path}"
    lists, class_names, notes = list_class_folders(name, path, find_images, "images", test_fraction, data_seed)
    train, test, *validation = lists
    return load_image_dataset(
        name,
        train,
        test,
        class_names,
        size=size,
        on_error=on_error,
        cache_gb=cache_gb,
        notes=notes,
        validation=validation[0] if validation else None,
        crops=crops,
    )


def list_class_folders(
    name: str, path: str, find: Callable[[Path], list[str]], kind: str, test_fraction: float | None, data_seed: int
) -> tuple[list[ImageList], tuple[str, ...], tuple[str, ...]]:
    """List the files of ``PATH/train/CLASS``, ``PATH/test/CLASS`` and ``PATH/val/CLASS``, or draw a test list.

    Args:
        name: Name of the dataset, for messages.
        path: Folder.
        find: Returns the files in a folder.
        kind: What the files are, for messages: "images".
        test_fraction: Fraction of each class in the drawn test list, 0.2 by default.
        data_seed: Random seed of the drawn test list.

    Returns:
        Training files, test files and, if there are any, validation files; class names; notes.
    """
    source, base = name.partition(":")[0], Path(os.path.expanduser(path))
    if not base.is_dir():
        raise ValueError(f"{source}: directory not found: {path!r}.")
    if base.resolve() == Path(base.resolve().anchor):
        raise ValueError(f"{source}: {path!r} is the root of the file system; name the folder that holds the classes.")
    # Without a folder "train", "valid" may well be a class.
    known = ("test", *VALIDATION) if (base / "train").is_dir() else ("test", "val")
    tests = [base / each for each in known if (base / each).is_dir()]
    if len(tests) > 1 and (tests[0].name != "test" or len(tests) > 2):
        names = " and ".join(f"{tree.name}/" for tree in tests if tree.name != "test")
        raise ValueError(f"{name} has {names}; keep one folder of validation {kind}.")
    train_tree = base / "train" if (base / "train").is_dir() else base
    if train_tree is base and tests:
        raise ValueError(f"{name} has {tests[0].name}/ but no train/; put the training {kind} there.")
    class_names = _class_names(train_tree)
    train = _list_files(train_tree, class_names, find, kind)
    notes: tuple[str, ...] = ()
    if tests:
        if test_fraction is not None:
            raise ValueError(f"{name} has a test split in {tests[0].name}/; remove test_fraction={test_fraction}.")
        lists = [train, *(_list_files(tree, class_names, find, kind, allow_empty=True) for tree in tests)]
    else:
        fraction = TEST_FRACTION if test_fraction is None else test_fraction
        lists = list(split_list(train, train_tree, fraction, data_seed, len(class_names)))
        drawn = len(lists[1].paths)
        notes = (f"{name} has no test folder: {drawn} {kind} were drawn for testing, stratified by class.",)
    return lists, class_names, notes


def split_list(
    images: ImageList, base: Path, fraction: float, seed: int, num_classes: int
) -> tuple[ImageList, ImageList]:
    """Draw a stratified test list. The draw of a file depends only on its name relative to ``base`` and the seed."""
    names = (Path(os.path.relpath(path, base)).as_posix() for path in images.paths)
    digests = (hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).digest() for name in names)
    identity = torch.tensor([int.from_bytes(digest, "little", signed=True) for digest in digests])
    targets = torch.tensor(images.targets)
    counts = holdout_counts(torch.bincount(targets, minlength=num_classes), fraction)
    rows = draw_per_class(targets, identity, counts, seed, "test split")
    return images.subset(other_rows(rows, len(targets))), images.subset(rows)


def _class_names(tree: Path) -> tuple[str, ...]:
    names = tuple(sorted(each.name for each in tree.iterdir() if each.is_dir() and not each.name.startswith(".")))
    if not names:
        raise ValueError(f"folder: {tree} has no class folders.")
    return names


def _list_files(
    tree: Path,
    class_names: tuple[str, ...],
    find: Callable[[Path], list[str]],
    kind: str,
    *,
    allow_empty: bool = False,
) -> ImageList:
    """List the files of each class. ``allow_empty`` accepts classes without files, but not an empty tree."""
    unknown = sorted(set(_class_names(tree)) - set(class_names))
    if unknown:
        raise ValueError(f"folder: {tree} has classes without a training folder: {', '.join(unknown[:5])}.")
    paths: list[str] = []
    targets: list[int] = []
    empty: list[str] = []
    for number, name in enumerate(class_names):
        found = find(tree / name)
        paths += found
        targets += [number] * len(found)
        if not found:
            empty.append(name)
    if empty and not (allow_empty and paths):
        texts = not paths and any(find_files(tree / name, lambda file: file.endswith(".txt")) for name in class_names)
        hint = f" It has text files: use text:{tree}." if texts and kind == "images" else ""
        raise ValueError(f"folder: {tree} has no {kind} for {', '.join(empty[:5])}.{hint}")
    return ImageList(tuple(paths), tuple(targets))


def find_images(directory: Path) -> list[str]:
    """List the image files in a directory and its subdirectories, sorted."""
    return find_files(directory, is_image_name)


def find_files(directory: Path, is_wanted: Callable[[str], bool]) -> list[str]:
    """List the files in a directory and its subdirectories whose names are wanted, sorted."""
    found: list[str] = []
    for number, (parent, folders, names) in enumerate(os.walk(directory, followlinks=True)):
        if number >= MAX_FOLDERS:
            raise ValueError(f"folder: {directory} has more than {MAX_FOLDERS:,} subfolders; is it the right one?")
        folders[:] = [each for each in folders if not _leads_back(parent, each)]
        found += [os.path.join(parent, name) for name in names if is_wanted(name)]
    return sorted(found)


def _leads_back(parent: str, name: str) -> bool:
    """Return whether a folder is a symbolic link to a folder that contains it."""
    link = os.path.join(parent, name)
    if not os.path.islink(link):
        return False
    target, inside = os.path.realpath(link), os.path.realpath(parent)
    return os.path.commonpath([target, inside]) == target
