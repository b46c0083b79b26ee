import random

import numpy as np
import pytest
import torch
from sklearn import datasets

from classgap.data import load
from classgap.data.sources.generated import load_digits, make_mnist1d, make_two_moons


def test_mnist1d_matches_the_package() -> None:
    from mnist1d.data import get_dataset_args, make_dataset

    settings = get_dataset_args()
    settings.num_samples, settings.train_split = 60, 0.5
    made = make_dataset(settings)
    data = make_mnist1d(n_train=30, n_test=30)
    assert torch.equal(data.train.inputs[torch.arange(30)], torch.tensor(made["x"], dtype=torch.float32)[:, None])
    assert data.test.targets.tolist() == made["y_test"].tolist()
    assert (data.kind, data.shape, data.num_classes) == ("signal", (1, 40), 10)


def test_mnist1d_sizes_are_exact() -> None:
    data = make_mnist1d(n_train=13, n_test=4)
    assert (len(data.train), len(data.test)) == (13, 4)


def test_mnist1d_preserves_the_global_random_state() -> None:
    def drawn() -> list[float]:
        return [random.random(), float(np.random.rand()), float(torch.rand(()))]

    def seeded() -> None:
        random.seed(5)
        np.random.seed(5)
        torch.manual_seed(5)

    seeded()
    expected = drawn()
    seeded()
    make_mnist1d(n_train=10, n_test=10)
    assert drawn() == expected


def test_mnist1d_depends_on_the_seed() -> None:
    first, second = make_mnist1d(n_train=10, n_test=10), make_mnist1d(n_train=10, n_test=10, seed=1)
    assert not torch.equal(first.train.inputs[torch.arange(10)], second.train.inputs[torch.arange(10)])


def test_digits() -> None:
    data, source = load_digits(), datasets.load_digits()
    assert len(data.train) + len(data.test) == 1797
    assert (data.test.class_counts(10) - data.train_counts).abs().max() <= 1
    images = data.train.inputs[torch.arange(len(data.train))]
    assert images.dtype == torch.uint8
    assert torch.equal(images[3, 0], torch.tensor(source.images[data.train.index[3]] * 255 / 16).round().byte())
    assert data.mean == pytest.approx((images.double().mean().item() / 255,))
    assert data.std == pytest.approx((images.double().std(correction=0).item() / 255,))


def test_two_moons_are_imbalanced() -> None:
    data = make_two_moons(n_train=400, n_test=100, noise=0.0)
    assert data.train_counts.tolist() == [380, 20]  # P(Tail) = 5 %, ELM Sec. 2.3
    assert data.test.class_counts(2).tolist() == [50, 50]
    x, y = data.train.inputs[torch.arange(400)].T
    head = data.train.targets == 0
    # Half circles of radius 1 about (0, 0) and (1, 0.5), the upper and the lower half.
    assert torch.allclose(x[head] ** 2 + y[head] ** 2, torch.ones(380))
    assert torch.allclose((x[~head] - 1) ** 2 + (y[~head] - 0.5) ** 2, torch.ones(20))
    assert (y[head] >= -1e-6).all()
    assert (y[~head] <= 0.5).all()


@pytest.mark.parametrize(
    "text", ["two-moons:tail_fraction=0", "two-moons:n_train=5:tail_fraction=0.05", "mnist1d:n_train=0"]
)
def test_invalid_sizes_raise(text: str) -> None:
    with pytest.raises(ValueError, match=r"tail_fraction|n_train"):
        load(text)
