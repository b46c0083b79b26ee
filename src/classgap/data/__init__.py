"""Datasets by name, their splits, and loaders and samplers for training.

A dataset is typed ``NAME[:ARGUMENT][:option=value …]``, or ``PATH[:option=value …]`` for a folder of images,
a feature file or a table. Besides its own options, every dataset takes options that modify the training split, in
this order:

* ``fraction=0.1`` keeps a tenth of each class;
* ``imbalance=100`` makes it long-tailed (Cao et al., 2019) with this imbalance factor;
* ``label_noise=0.1`` replaces a tenth of the labels with any other class, and with
  ``label_noise_type=asymmetric`` with the next class;
* ``data_seed=1`` changes these random draws, and the test split where the source draws one.

The training seed does not affect the data: runs with different seeds see the same samples.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from classgap.data.batch import Batch
from classgap.data.dataset import Dataset, Split
from classgap.data.loader import BatchLoader, evaluation_batches
from classgap.data.modifiers import Modifiers
from classgap.data.sampling.orders import ClassAwareOrder, ClassBalancedOrder, QuotaOrder, RandomOrder, RepeatedOrder
from classgap.data.sampling.samplers import ClassAwareBatchSampler, ClassBalancedSampler, ClassQuotaSampler
from classgap.data.sources.features import load_features
from classgap.data.sources.folder import load_folder
from classgap.data.sources.generated import load_digits, make_mnist1d, make_two_moons
from classgap.data.sources.huggingface import is_saved_dataset, load_huggingface
from classgap.data.sources.inaturalist2018 import load_inaturalist2018
from classgap.data.sources.list_files import load_imagenet_lt, load_list, load_rscd
from classgap.data.sources.table import load_table
from classgap.data.sources.text_folder import load_text_folder
from classgap.data.sources.torchvision import ENTRIES
from classgap.data.splits import hold_out
from classgap.registry import Entry, Registry, Spec, convert, suggestion

__all__ = [
    "DATASETS",
    "Batch",
    "BatchLoader",
    "ClassAwareBatchSampler",
    "ClassAwareOrder",
    "ClassBalancedOrder",
    "ClassBalancedSampler",
    "ClassQuotaSampler",
    "Dataset",
    "QuotaOrder",
    "RandomOrder",
    "RepeatedOrder",
    "Split",
    "evaluation_batches",
    "hold_out",
    "load",
    "names",
]

_MODIFIERS = Entry("modifiers", "Options of every dataset.", Modifiers)
_SEED = ("data_seed",)
SOURCES = {
    ".npz": "features",
    ".safetensors": "features",
    ".csv": "csv",
    ".parquet": "parquet",
    ".arrow": "hf",
}  # of files given by their path alone

DATASETS: Registry[Dataset] = Registry(
    "dataset",
    [
        Entry("mnist1d", "MNIST-1D: 10 digits as signals of 40 values.", make_mnist1d),
        Entry("digits", "Scikit-learn's digits: 10 classes, 8×8 pixels.", load_digits, given=_SEED),
        Entry("two-moons", "Two moons, one of them rare (ELM, Sec. 2.3).", make_two_moons),
        Entry("features", "Feature vectors in .npz or .safetensors.", load_features, argument="FILE", given=_SEED),
        Entry("csv", "A CSV table of numbers, categories and texts.", load_table, argument="FILE", given=_SEED),
        Entry(
            "parquet",
            "A Parquet table of numbers, categories and texts.",
            load_table,
            argument="FILE",
            given=_SEED,
            extra="parquet",
        ),
        Entry("folder", "Images in one folder per class.", load_folder, argument="PATH", given=_SEED),
        Entry("text", "Text files in one folder per class.", load_text_folder, argument="PATH", given=_SEED),
        Entry("hf", "Images, texts or tables from Hugging Face datasets.", load_huggingface, "NAME", _SEED, extra="hf"),
        Entry("list", "Images listed in text files.", load_list, argument="TRAIN.txt,TEST.txt", given=_SEED),
        *ENTRIES,
        Entry("imagenet-lt", "ImageNet-LT: 1,000 classes, long-tailed.", load_imagenet_lt, argument="PATH"),
        Entry("inaturalist2018", "iNaturalist 2018: 8,142 species.", load_inaturalist2018, argument="PATH"),
        Entry("rscd", "Road Surface Classification: 27 classes.", load_rscd, argument="PATH"),
    ],
)


def names() -> list[str]:
    """Names of all datasets.

    >>> names()[:3]
    ['mnist1d', 'digits', 'two-moons']
    """
    return DATASETS.names()


def load(text: str, *, root: Path | None = None, seed: int = 0) -> Dataset:
    """Load a dataset by name.

    Args:
        text: ``NAME[:ARGUMENT][:option=value …]``, or ``PATH[:option=value …]`` of a folder of images, a
            feature file or a table.
        root: Directory of torchvision's datasets. Defaults to ``$CLASSGAP_DATA``.
        seed: Seed of random draws from the data, unless ``text`` has ``data_seed``. It is not the training seed: keep
            the default to use the same samples in all runs.

    Raises:
        ValueError: If the name or an option is unknown, or the data are missing or invalid.

    >>> data = load("two-moons:n_train=100:fraction=0.5")
    >>> data.train_counts.tolist(), data.class_names
    ([48, 3], ('Head', 'Tail'))
    """
    spec = _find_path(Spec.parse(text))
    own, general = DATASETS.entry(spec.name).options(), _MODIFIERS.options()
    for key in spec.options:
        if key not in own and key not in general:
            raise ValueError(f"dataset {spec.name} has no option {key!r}; {suggestion(key, [*own, *general])}")
    changed = {key: convert(key, value, general[key].kind) for key, value in spec.options.items() if key in general}
    modifiers = _MODIFIERS.make(**{"data_seed": seed, **changed})  # checks values before any data are read
    rest = {key: value for key, value in spec.options.items() if key in own}
    data = DATASETS.build(replace(spec, options=rest), root=root, data_seed=modifiers.data_seed)
    return replace(modifiers.apply(data), name=text)


def _find_path(spec: Spec) -> Spec:
    """Complete the path of an existing folder or file to ``folder:PATH``, ``features:PATH``, …; names come first."""
    text = spec.name if spec.argument is None else f"{spec.name}:{spec.argument}"
    path = Path(os.path.expanduser(text))
    if spec.name in DATASETS.entries:
        return spec
    if os.path.isdir(path):  # methods of Path raise errors for names that are too long
        return Spec("hf" if is_saved_dataset(path) else "folder", text, spec.options)
    if os.path.isfile(path) and path.suffix.lower() in SOURCES:
        return Spec(SOURCES[path.suffix.lower()], text, spec.options)
    return spec
