"""Small datasets that need no download: MNIST-1D, scikit-learn's digits, two moons."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
import torch

from classgap.data.dataset import Dataset, Split
from classgap.data.splits import hold_out
from classgap.data.transforms.normalize import channel_stats

MAX_SAMPLES = 10_000_000  # of a split; more would fill the memory before the first epoch


def make_mnist1d(*, n_train: int = 1000, n_test: int = 10000, seed: int = 42) -> Dataset:
    """Generate MNIST-1D (Greydanus and Kobak, 2020): ten digits as noisy signals of 40 values.

    Args:
        n_train: Number of training samples.
        n_test: Number of test samples.
        seed: Random seed of the generator; 42 is the package's default.
    """
    _check_sizes("mnist1d", n_train=n_train, n_test=n_test)
    _check_seed("mnist1d", seed)
    # The package generates the same number of samples of each digit.
    inputs, targets = (each.clone() for each in _generate_mnist1d(-(-(n_train + n_test) // 10) * 10, seed))
    test = slice(n_train, n_train + n_test)
    return Dataset(
        name="mnist1d",
        train=Split.from_arrays(inputs[:n_train], targets[:n_train]),
        test=Split.from_arrays(inputs[test], targets[test]),
        class_names=tuple("0123456789"),
        kind="signal",
        shape=(1, 40),
    )


@lru_cache(maxsize=2)  # generating takes seconds, and several runs of one process mostly share a dataset
def _generate_mnist1d(n_samples: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    from mnist1d.data import get_dataset_args, make_dataset

    settings = get_dataset_args()
    settings.num_samples, settings.seed = n_samples, seed
    with _preserve_random_state():
        made = make_dataset(settings)
    inputs = torch.from_numpy(np.concatenate([made["x"], made["x_test"]])).float()[:, None]
    return inputs, torch.from_numpy(np.concatenate([made["y"], made["y_test"]]))


@contextmanager
def _preserve_random_state() -> Iterator[None]:
    """Restore the global random generators, because mnist1d seeds them all."""
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


def load_digits(*, test_fraction: float = 0.5, data_seed: int = 0) -> Dataset:
    """Load scikit-learn's 1,797 handwritten digits of 8×8 pixels, with gray values scaled from 0–16 to 0–255.

    Args:
        test_fraction: Fraction of each digit in the test split, which is drawn at random.
        data_seed: Random seed of that draw.
    """
    from sklearn import datasets

    made = datasets.load_digits()
    images = torch.from_numpy(np.round(made.images * (255 / 16)).astype(np.uint8))[:, None]
    train, test = hold_out(Split.from_arrays(images, torch.from_numpy(made.target)), test_fraction, data_seed, 10)
    mean, std = channel_stats(images[train.index])
    return Dataset("digits", train, test, tuple("0123456789"), "image", (1, 8, 8), mean, std, allow_flip=False)


def make_two_moons(
    *, n_train: int = 2000, n_test: int = 2000, tail_fraction: float = 0.05, noise: float = 0.1, seed: int = 0
) -> Dataset:
    """Generate two moons, one of them rare, as in ELM Sec. 2.3; the test split is balanced.

    The paper gives P(Tail) = 5 %. It does not give the sizes, the noise or the test split.

    Args:
        n_train: Number of training samples.
        n_test: Number of test samples.
        tail_fraction: Fraction of the rare moon in the training split.
        noise: Standard deviation of the noise on both coordinates.
        seed: Random seed of the generator.
    """
    _check_sizes("two-moons", n_train=n_train, n_test=n_test)
    _check_seed("two-moons", seed)
    if not 0 < tail_fraction < 1 or not 0 < round(tail_fraction * n_train) < n_train:
        raise ValueError(
            f"two-moons: tail_fraction must leave samples in both classes, got {tail_fraction} of {n_train}."
        )
    from sklearn.datasets import make_moons

    state = np.random.RandomState(seed)

    def moons(total: int, rare: int) -> Split:
        inputs, targets = make_moons((total - rare, rare), noise=noise, random_state=state)
        return Split.from_arrays(torch.from_numpy(inputs).float(), torch.from_numpy(targets))

    train, test = moons(n_train, round(tail_fraction * n_train)), moons(n_test, n_test // 2)
    return Dataset("two-moons", train, test, ("Head", "Tail"), "vector", (2,))


def _check_sizes(name: str, **sizes: int) -> None:
    for size, value in sizes.items():
        if value < 1:
            raise ValueError(f"{name}: {size} must be at least 1, got {value}.")
        if value > MAX_SAMPLES:
            raise ValueError(f"{name}: {size} must be at most {MAX_SAMPLES:,}, got {value}.")


def _check_seed(name: str, seed: int) -> None:
    if not 0 <= seed < 2**32:  # the range of NumPy's RandomState
        raise ValueError(f"{name}: seed must be from 0 to 4294967295, got {seed}.")
