"""Data sets by name, splits, orders of samples, and batches of tensors.

A data set is typed ``NAME[:ARGUMENT][:option=value …]``. Besides a source's own options every one takes these, which
change the training split only, in this order:

* ``fraction=0.1``: a tenth of each class;
* ``lt=100``: the exponential long tail of Cao et al., the first class 100 times the last;
* ``noise=0.1``: a tenth of the labels wrong;
* ``data_seed=1``: draws all this, and a source's own test split, differently.

The seed of the training is not the seed of the data: runs that differ in it see the same samples unless ``data_seed``
says otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from classgap.data.batches import Batches, evaluation_batches
from classgap.data.dataset import Dataset, Split
from classgap.data.sampling.samplers import ClassAwareBatchSampler, ClassBalancedSampler
from classgap.data.sources.features import features
from classgap.data.sources.folder import folder
from classgap.data.sources.generated import digits, mnist1d, two_moons
from classgap.data.sources.list_files import imagenet_lt, list_files, rscd
from classgap.data.sources.torchvision import ENTRIES
from classgap.data.splits import hold_out
from classgap.data.subsample import Changes
from classgap.registry import Entry, Registry, Spec, convert, suggestion

__all__ = [
    "CHANGES",
    "DATASETS",
    "Batches",
    "ClassAwareBatchSampler",
    "ClassBalancedSampler",
    "Dataset",
    "Split",
    "evaluation_batches",
    "hold_out",
    "load",
    "names",
]

CHANGES = Entry("changes", "What every data set takes, for its training split.", Changes)
_SEED = ("data_seed",)

DATASETS: Registry[Dataset] = Registry(
    "data set",
    [
        Entry("mnist1d", "MNIST-1D, 10 digits as series of 40 values, generated.", mnist1d),
        Entry("digits", "Scikit-learn's handwritten digits, 10 classes of 8×8 pixels.", digits, given=_SEED),
        Entry("two-moons", "Two moons in the plane, one of them rare (ELM Sec. 2.3), generated.", two_moons),
        Entry("features", "Frozen features from .npz or .safetensors.", features, argument="FILE", given=_SEED),
        Entry("folder", "Images in a folder a class.", folder, argument="PATH", given=_SEED),
        Entry("list", "Images by lists of path and class.", list_files, argument="TRAIN.txt,TEST.txt", given=_SEED),
        *ENTRIES,
        Entry("imagenet-lt", "ImageNet-LT, by the lists of Liu et al.", imagenet_lt, argument="PATH"),
        Entry("rscd", "Road Surface Classification Dataset, 27 classes.", rscd, argument="PATH"),
    ],
)


def names() -> list[str]:
    """The sources there are.

    >>> names()[:3]
    ['mnist1d', 'digits', 'two-moons']
    """
    return DATASETS.names()


def load(text: str, *, root: Path | None = None, seed: int = 0) -> Dataset:
    """The data set that ``text`` names.

    Args:
        text: ``NAME[:ARGUMENT][:option=value …]``.
        root: where torchvision's data are, or go; ``$CLASSGAP_DATA`` unless given.
        seed: of what is drawn of the data, unless the text has ``data_seed``. It is not the training's: leave it, and
            all runs see the same samples.

    Raises:
        ValueError: if there is no such source or option, or the data are not there or not right.

    >>> data = load("two-moons:train=100:fraction=0.5")
    >>> data.train_counts.tolist(), data.class_names
    ([48, 3], ('Head', 'Tail'))
    """
    spec = Spec.parse(text)
    own, general = DATASETS.entry(spec.name).options(), CHANGES.options()
    for key in spec.options:
        if key not in own and key not in general:
            raise ValueError(f"data set {spec.name} has no option {key!r}; {suggestion(key, [*own, *general])}")
    changed = {key: convert(key, value, general[key].kind) for key, value in spec.options.items() if key in general}
    changes = CHANGES.make(**{"data_seed": seed, **changed})  # refuses wrong values before any data are read
    rest = {key: value for key, value in spec.options.items() if key in own}
    made = DATASETS.build(replace(spec, options=rest), root=root, data_seed=changes.data_seed)
    return replace(changes.applied(made), name=text)
