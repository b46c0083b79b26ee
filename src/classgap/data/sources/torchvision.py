"""Data sets that torchvision knows, with its download: a table of how each is opened and where its labels are."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from classgap.data.dataset import Dataset, Split
from classgap.data.sources.cache_dirs import data_root, one_process
from classgap.data.sources.image_lists import ImageList, image_dataset
from classgap.data.sources.pixels import CIFAR10, CIFAR100, SVHN, Statistics
from classgap.registry import Entry

Arguments = dict[str, Any]
Samples = list[tuple[str, int]]


@dataclass(frozen=True)
class Photographs:
    """A data set of image files.

    Attributes:
        name: what people type.
        summary: one line.
        kind: torchvision's class.
        train: arguments for each part of the training split.
        test: arguments for the test split.
        samples: paths and labels of an opened one.
        class_names: of an opened one.
    """

    name: str
    summary: str
    kind: str
    train: tuple[Arguments, ...]
    test: Arguments
    samples: Callable[[Any], Samples]
    class_names: Callable[[Any], Sequence[str]] = lambda opened: opened.classes

    def load(self, root: Path | None, size: int, broken: str, memory: float) -> Dataset:
        """Open it, downloading it if need be, and read its images."""
        opened = _open(self.name, self.kind, root, [*self.train, self.test])
        train, test = [each for part in opened[:-1] for each in self.samples(part)], self.samples(opened[-1])
        lists = [
            ImageList(tuple(path for path, _ in part), tuple(label for _, label in part)) for part in (train, test)
        ]
        names = tuple(self.class_names(opened[0]))
        return image_dataset(self.name, lists[0], lists[1], names, size=size, broken=broken, memory=memory)


def _files_and_labels(files: str) -> Callable[[Any], Samples]:
    def samples(opened: Any) -> Samples:
        return [(str(path), int(label)) for path, label in zip(getattr(opened, files), opened._labels, strict=True)]

    return samples


def _naturalist_samples(opened: Any) -> Samples:
    """Sorted, because torchvision lists them as the file system does."""
    return sorted(
        (os.path.join(opened.root, opened.all_categories[label], name), label) for label, name in opened.index
    )


def _species(opened: Any) -> Sequence[str]:
    """``00000_Animalia_…_Lumbricus_terrestris`` is Lumbricus terrestris."""
    return _unique([" ".join(name.split("_")[-2:]) for name in opened.all_categories], opened.all_categories)


def _synsets(opened: Any) -> Sequence[str]:
    """The first word of each; two cranes and two maillots need their WordNet numbers."""
    return _unique([words[0] for words in opened.classes], opened.wnids)


def _unique(names: Sequence[str], keys: Sequence[str]) -> Sequence[str]:
    often = Counter(names)
    return [name if often[name] == 1 else f"{name} ({key})" for name, key in zip(names, keys, strict=True)]


_PHOTOGRAPHS = (
    Photographs(
        "flowers",
        "Oxford Flowers, 102 classes; training is its train and val split, 2,040 images.",
        "Flowers102",
        ({"split": "train"}, {"split": "val"}),
        {"split": "test"},
        _files_and_labels("_image_files"),
    ),
    Photographs(
        "pets",
        "Oxford-IIIT Pets, 37 breeds.",
        "OxfordIIITPet",
        ({"split": "trainval"},),
        {"split": "test"},
        _files_and_labels("_images"),
    ),
    Photographs(
        "food",
        "Food-101, 101 dishes.",
        "Food101",
        ({"split": "train"},),
        {"split": "test"},
        _files_and_labels("_image_files"),
    ),
    Photographs(
        "cars",
        "Stanford Cars, 196 models; to be placed by hand, its address is gone.",
        "StanfordCars",
        ({"split": "train"},),
        {"split": "test"},
        lambda opened: [(str(path), int(label)) for path, label in opened._samples],
    ),
    Photographs(
        "aircraft",
        "FGVC Aircraft, 100 variants.",
        "FGVCAircraft",
        ({"split": "trainval"},),
        {"split": "test"},
        _files_and_labels("_image_files"),
    ),
    Photographs(
        "imagenet",
        "ImageNet 2012, 1,000 classes, tested on its validation images; archives to be placed by hand.",
        "ImageNet",
        ({"split": "train"},),
        {"split": "val"},
        lambda opened: [(str(path), int(label)) for path, label in opened.samples],
        _synsets,
    ),
    Photographs(
        "inaturalist",
        "iNaturalist 2021, 10,000 species, tested on its validation images; for 2018 use list: with its files.",
        "INaturalist",
        ({"version": "2021_train"},),
        {"version": "2021_valid"},
        _naturalist_samples,
        _species,
    ),
)


def _photograph_entry(table: Photographs) -> Entry[Dataset]:
    def make(*, size: int = 256, broken: str = "stop", memory: float = 4.0, root: Path | None = None) -> Dataset:
        return table.load(root, size, broken, memory)

    return Entry(table.name, table.summary, make, given=("root",), extra="vision")


def cifar10(*, root: Path | None = None) -> Dataset:
    """CIFAR-10: 50,000 and 10,000 images of 32×32."""
    return _cifar("cifar10", "CIFAR10", root, CIFAR10)


def cifar100(*, root: Path | None = None) -> Dataset:
    """CIFAR-100: 50,000 and 10,000 images of 32×32."""
    return _cifar("cifar100", "CIFAR100", root, CIFAR100)


def _cifar(name: str, kind: str, root: Path | None, statistics: Statistics) -> Dataset:
    opened = _open(name, kind, root, [{"train": True}, {"train": False}])
    train, test = (_in_memory(part.data.transpose(0, 3, 1, 2), part.targets) for part in opened)
    return Dataset(name, train, test, tuple(opened[0].classes), "image", (3, 32, 32), *statistics)


def _in_memory(images: NDArray[np.uint8], targets: Any) -> Split:
    return Split.from_arrays(torch.from_numpy(np.ascontiguousarray(images)), torch.as_tensor(targets))


def svhn(*, root: Path | None = None) -> Dataset:
    """Street View House Numbers: 73,257 and 26,032 digits of 32×32."""
    opened = _open("svhn", "SVHN", root, [{"split": "train"}, {"split": "test"}])
    train, test = (_in_memory(part.data, part.labels) for part in opened)
    return Dataset("svhn", train, test, tuple("0123456789"), "image", (3, 32, 32), *SVHN, mirrored=False)


def _open(name: str, kind: str, root: Path | None, parts: list[Arguments]) -> list[Any]:
    """Torchvision's objects, after its download; one process downloads while the others wait.

    CIFAR's files are pickles: torchvision compares them with the sums it knows before it opens them.
    """
    try:
        from torchvision import datasets
    except ImportError as error:
        raise ValueError(f"data set {name} needs torchvision: pip install 'classgap[vision]'.") from error
    place = data_root() if root is None else root
    # Torchvision wants ImageNet's archives in a folder of their own, and cannot download them or the cars.
    where = place / "imagenet" if kind == "ImageNet" else place
    if kind not in ("ImageNet", "StanfordCars"):
        parts = [{**part, "download": True} for part in parts]
    with one_process(place / f".{name}.lock"), redirect_stdout(sys.stderr):
        try:
            return [getattr(datasets, kind)(where, **part) for part in parts]
        except (OSError, RuntimeError, ValueError) as error:
            raise ValueError(
                f"{name} is not in {where} and could not be downloaded ({error}); put its files there as torchvision's "
                f"{kind} expects them, or set CLASSGAP_DATA to the folder that has them."
            ) from error


ENTRIES: tuple[Entry[Dataset], ...] = (
    Entry("cifar10", "CIFAR-10, 10 classes of 32×32 pixels.", cifar10, given=("root",), extra="vision"),
    Entry("cifar100", "CIFAR-100, 100 classes of 32×32 pixels.", cifar100, given=("root",), extra="vision"),
    Entry("svhn", "Street View House Numbers, 10 digits of 32×32 pixels.", svhn, given=("root",), extra="vision"),
    *map(_photograph_entry, _PHOTOGRAPHS),
)
