"""Small data that need no download: MNIST-1D, the digits of scikit-learn, and two moons."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from classgap.data.dataset import Dataset, Split
from classgap.data.sources.pixels import pixel_statistics
from classgap.data.splits import hold_out


def mnist1d(*, train: int = 1000, test: int = 10000, seed: int = 42) -> Dataset:
    """MNIST-1D (Greydanus and Kobak 2020): ten digits drawn as noisy series of 40 values, generated on the spot.

    Args:
        train: training samples.
        test: test samples.
        seed: of the generation; 42 is the package's own.
    """
    _positive("mnist1d", train=train, test=test)
    from mnist1d.data import get_dataset_args, make_dataset

    settings = get_dataset_args()
    settings.num_samples, settings.seed = -(-(train + test) // 10) * 10, seed  # it makes equally many of each digit
    with _undisturbed_randomness():
        made = make_dataset(settings)
    inputs = torch.from_numpy(np.concatenate([made["x"], made["x_test"]])).float()[:, None]
    targets = torch.from_numpy(np.concatenate([made["y"], made["y_test"]]))
    return Dataset(
        name="mnist1d",
        train=Split.from_arrays(inputs[:train], targets[:train]),
        test=Split.from_arrays(inputs[train : train + test], targets[train : train + test]),
        class_names=tuple("0123456789"),
        kind="signal",
        shape=(1, 40),
    )


@contextmanager
def _undisturbed_randomness() -> Iterator[None]:
    """Give the global generators back as they were: mnist1d seeds them all."""
    python, numpy, torch_state = random.getstate(), np.random.get_state(), torch.get_rng_state()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(torch_state)
        if cuda:
            torch.cuda.set_rng_state_all(cuda)


def digits(*, test: float = 0.5, data_seed: int = 0) -> Dataset:
    """Scikit-learn's 1,797 handwritten digits of 8×8 pixels; the grey values 0 … 16 become 0 … 255.

    Args:
        test: share of each digit in the test split, which is drawn: the source has none.
        data_seed: of that draw.
    """
    from sklearn.datasets import load_digits

    made = load_digits()
    images = torch.from_numpy(np.round(made.images * (255 / 16)).astype(np.uint8))[:, None]
    train, held = hold_out(Split.from_arrays(images, torch.from_numpy(made.target)), test, data_seed, 10)
    mean, std = pixel_statistics(images[train.index])
    return Dataset("digits", train, held, tuple("0123456789"), "image", (1, 8, 8), mean, std, mirrored=False)


def two_moons(
    *, train: int = 2000, test: int = 2000, tail: float = 0.05, spread: float = 0.1, seed: int = 0
) -> Dataset:
    """Two moons with a rare one, as in ELM Sec. 2.3: P(Tail) = 5 % in training; half and half in the test split.

    The paper gives the share of the tail; sizes, spread and the balanced test split are this program's choice.

    Args:
        train: training samples.
        test: test samples.
        tail: share of the rare moon in training.
        spread: standard deviation of the noise on both coordinates.
        seed: of the generation.
    """
    _positive("two-moons", train=train, test=test)
    if not 0 < tail < 1 or not 0 < round(tail * train) < train:
        raise ValueError(f"two-moons: tail must leave samples on both moons; got {tail} of {train}.")
    from sklearn.datasets import make_moons

    state = np.random.RandomState(seed)

    def moons(total: int, rare: int) -> Split:
        inputs, targets = make_moons((total - rare, rare), noise=spread, random_state=state)
        return Split.from_arrays(torch.from_numpy(inputs).float(), torch.from_numpy(targets))

    learned, held = moons(train, round(tail * train)), moons(test, test // 2)
    return Dataset("two-moons", learned, held, ("Head", "Tail"), "vector", (2,))


def _positive(name: str, **sizes: int) -> None:
    for size, value in sizes.items():
        if value < 1:
            raise ValueError(f"{name}: {size} must be 1 or more; got {value}.")
