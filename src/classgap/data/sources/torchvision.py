"""Torchvision's datasets, downloaded on first use."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from classgap.data.dataset import Dataset, Split
from classgap.data.sources.cache_dirs import data_root, file_lock
from classgap.data.sources.image_dataset import ImageList, load_image_dataset, unique_names
from classgap.data.transforms.normalize import CIFAR10, CIFAR100, MNIST, SVHN, ChannelStats
from classgap.registry import Entry

Arguments = dict[str, Any]
Samples = list[tuple[str, int]]


@dataclass(frozen=True)
class _PhotoDataset:
    """How to load a torchvision dataset of image files.

    Attributes:
        name: Name that users type.
        summary: One line for listings.
        class_name: Torchvision's class.
        train: Arguments for each part of the training split.
        test: Arguments for the test split.
        get_samples: Returns paths and labels of a torchvision object.
        get_class_names: Returns class names of a torchvision object.
    """

    name: str
    summary: str
    class_name: str
    train: tuple[Arguments, ...]
    test: Arguments
    get_samples: Callable[[Any], Samples]
    get_class_names: Callable[[Any], Sequence[str]] = lambda source: source.classes

    def load(self, root: Path | None, **options: Any) -> Dataset:
        """Download the dataset if needed and load its images with options of :func:`load_image_dataset`."""
        *train_parts, test_part = _open(self.name, self.class_name, root, [*self.train, self.test])
        train = [sample for part in train_parts for sample in self.get_samples(part)]
        lists = [
            ImageList(tuple(path for path, _ in samples), tuple(label for _, label in samples))
            for samples in (train, self.get_samples(test_part))
        ]
        names = tuple(self.get_class_names(train_parts[0]))
        return load_image_dataset(self.name, lists[0], lists[1], names, **options)


def _from_attributes(files: str) -> Callable[[Any], Samples]:
    def get_samples(source: Any) -> Samples:
        return [(str(path), int(label)) for path, label in zip(getattr(source, files), source._labels, strict=True)]

    return get_samples


def _naturalist_samples(source: Any) -> Samples:
    """List samples sorted; torchvision lists them in the order of the file system."""
    return sorted(
        (os.path.join(source.root, source.all_categories[label], name), label) for label, name in source.index
    )


def _species(source: Any) -> Sequence[str]:
    """Shorten ``00000_Animalia_…_Lumbricus_terrestris`` to Lumbricus terrestris."""
    return unique_names([" ".join(name.split("_")[-2:]) for name in source.all_categories], source.all_categories)


def _synsets(source: Any) -> Sequence[str]:
    """Take the first synonym of each class. Two cranes and two maillots also get their WordNet IDs."""
    return unique_names([words[0] for words in source.classes], source.wnids)


_PHOTO_DATASETS = (
    _PhotoDataset(
        "flowers",
        "Oxford Flowers: 102 classes (trains on train + val).",
        "Flowers102",
        ({"split": "train"}, {"split": "val"}),
        {"split": "test"},
        _from_attributes("_image_files"),
    ),
    _PhotoDataset(
        "pets",
        "Oxford-IIIT Pets: 37 breeds.",
        "OxfordIIITPet",
        ({"split": "trainval"},),
        {"split": "test"},
        _from_attributes("_images"),
    ),
    _PhotoDataset(
        "food",
        "Food-101: 101 dishes.",
        "Food101",
        ({"split": "train"},),
        {"split": "test"},
        _from_attributes("_image_files"),
    ),
    _PhotoDataset(
        "cars",
        "Stanford Cars: 196 models (download manually).",
        "StanfordCars",
        ({"split": "train"},),
        {"split": "test"},
        lambda source: [(str(path), int(label)) for path, label in source._samples],
    ),
    _PhotoDataset(
        "aircraft",
        "FGVC Aircraft: 100 variants.",
        "FGVCAircraft",
        ({"split": "trainval"},),
        {"split": "test"},
        _from_attributes("_image_files"),
    ),
    _PhotoDataset(
        "imagenet",
        "ImageNet 2012: 1,000 classes (download manually).",
        "ImageNet",
        ({"split": "train"},),
        {"split": "val"},
        lambda source: [(str(path), int(label)) for path, label in source.samples],
        _synsets,
    ),
    _PhotoDataset(
        "inaturalist",
        "iNaturalist 2021: 10,000 species.",
        "INaturalist",
        ({"version": "2021_train"},),
        {"version": "2021_valid"},
        _naturalist_samples,
        _species,
    ),
)


def _make_entry(photos: _PhotoDataset) -> Entry[Dataset]:
    def make(
        *,
        size: int = 256,
        on_error: str = "raise",
        cache_gb: float = 4.0,
        crops: str = "stored",
        root: Path | None = None,
    ) -> Dataset:
        """Load the photos.

        Args:
            size: Resize the short side to this many pixels and center-crop to a square.
            on_error: How to handle unreadable images: "raise" an error, or "skip" them.
            cache_gb: Keep decoded images in memory and on disk if they take at most this many gigabytes.
            crops: Source of random resized crops in training: the "stored" squares, or the "original" files (slower).
            root: Directory of the data.
        """
        return photos.load(root, size=size, on_error=on_error, cache_gb=cache_gb, crops=crops)

    return Entry(photos.name, photos.summary, make, given=("root",), extra="vision")


def load_cifar10(*, root: Path | None = None) -> Dataset:
    """Load CIFAR-10: 50,000 training and 10,000 test images of 32×32 pixels."""
    return _load_cifar("cifar10", "CIFAR10", root, CIFAR10)


def load_cifar100(*, root: Path | None = None) -> Dataset:
    """Load CIFAR-100: 50,000 training and 10,000 test images of 32×32 pixels."""
    return _load_cifar("cifar100", "CIFAR100", root, CIFAR100)


def _load_cifar(name: str, class_name: str, root: Path | None, stats: ChannelStats) -> Dataset:
    sources = _open(name, class_name, root, [{"train": True}, {"train": False}])
    train, test = (_make_split(source.data.transpose(0, 3, 1, 2), source.targets) for source in sources)
    return Dataset(name, train, test, tuple(sources[0].classes), "image", (3, 32, 32), *stats)


def load_mnist(*, root: Path | None = None) -> Dataset:
    """Load MNIST: 60,000 training and 10,000 test digits of 28×28 pixels, in gray."""
    sources = _open("mnist", "MNIST", root, [{"train": True}, {"train": False}])
    train, test = (_make_split(source.data[:, None].numpy(), source.targets) for source in sources)
    return Dataset("mnist", train, test, tuple("0123456789"), "image", (1, 28, 28), *MNIST, allow_flip=False)


def load_svhn(*, root: Path | None = None) -> Dataset:
    """Load Street View House Numbers: 73,257 training and 26,032 test digits of 32×32 pixels."""
    sources = _open("svhn", "SVHN", root, [{"split": "train"}, {"split": "test"}])
    train, test = (_make_split(source.data, source.labels) for source in sources)
    return Dataset("svhn", train, test, tuple("0123456789"), "image", (3, 32, 32), *SVHN, allow_flip=False)


def _make_split(images: NDArray[np.uint8], targets: Any) -> Split:
    return Split.from_arrays(torch.from_numpy(np.ascontiguousarray(images)), torch.as_tensor(targets))


def _open(name: str, class_name: str, root: Path | None, parts: list[Arguments]) -> list[Any]:
    """Create torchvision's objects. One process downloads while the others wait.

    CIFAR's files are pickles: torchvision verifies their checksums before it opens them.
    """
    try:
        from torchvision import datasets
    except ImportError as error:
        raise ValueError(f"dataset {name} needs torchvision: pip install 'classgap[vision]'.") from error
    root = data_root() if root is None else root
    # Torchvision expects ImageNet's archives in their own folder, and can download neither them nor Stanford Cars.
    directory = root / "imagenet" if class_name == "ImageNet" else root
    if class_name not in ("ImageNet", "StanfordCars"):
        parts = [{**part, "download": True} for part in parts]
    with file_lock(root / f".{name}.lock"), redirect_stdout(sys.stderr):
        try:
            return [getattr(datasets, class_name)(directory, **part) for part in parts]
        except (OSError, RuntimeError, ValueError) as error:
            raise ValueError(
                f"{name} was not found in {directory} and could not be downloaded ({error}). Put its files there as "
                f"torchvision's {class_name} expects them, or set CLASSGAP_DATA to the directory that has them."
            ) from error


ENTRIES: tuple[Entry[Dataset], ...] = (
    Entry("cifar10", "CIFAR-10: 10 classes, 32×32 pixels.", load_cifar10, given=("root",), extra="vision"),
    Entry("cifar100", "CIFAR-100: 100 classes, 32×32 pixels.", load_cifar100, given=("root",), extra="vision"),
    Entry("mnist", "MNIST: 10 digits, 28×28 pixels.", load_mnist, given=("root",), extra="vision"),
    Entry("svhn", "Street View House Numbers: 10 digits, 32×32 pixels.", load_svhn, given=("root",), extra="vision"),
    *map(_make_entry, _PHOTO_DATASETS),
)
