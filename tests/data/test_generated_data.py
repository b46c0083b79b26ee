import random

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from classgap.data import load
from classgap.data.sources.generated import digits, mnist1d, two_moons


def test_mnist1d_is_the_package_s_own() -> None:
    from mnist1d.data import get_dataset_args, make_dataset

    settings = get_dataset_args()
    settings.num_samples, settings.train_split = 60, 0.5
    made = make_dataset(settings)
    data = mnist1d(train=30, test=30)
    assert torch.equal(data.train.inputs[torch.arange(30)], torch.tensor(made["x"], dtype=torch.float32)[:, None])
    assert data.test.targets.tolist() == made["y_test"].tolist()
    assert (data.kind, data.shape, data.num_classes) == ("signal", (1, 40), 10)


def test_mnist1d_sizes_are_exact() -> None:
    data = mnist1d(train=13, test=4)
    assert (len(data.train), len(data.test)) == (13, 4)


def test_mnist1d_leaves_global_generators_alone() -> None:
    def drawn() -> list[float]:
        return [random.random(), float(np.random.rand()), float(torch.rand(()))]

    def seeded() -> None:
        random.seed(5)
        np.random.seed(5)
        torch.manual_seed(5)

    seeded()
    expected = drawn()
    seeded()
    mnist1d(train=10, test=10)
    assert drawn() == expected


def test_mnist1d_seed_makes_others() -> None:
    first, second = mnist1d(train=10, test=10), mnist1d(train=10, test=10, seed=1)
    assert not torch.equal(first.train.inputs[torch.arange(10)], second.train.inputs[torch.arange(10)])


def test_digits() -> None:
    data, source = digits(), load_digits()
    assert len(data.train) + len(data.test) == 1797
    assert (data.test.counts(10) - data.train_counts).abs().max() <= 1
    images = data.train.inputs[torch.arange(len(data.train))]
    assert images.dtype == torch.uint8
    assert torch.equal(images[3, 0], torch.tensor(source.images[data.train.index[3]] * 255 / 16).round().byte())
    assert data.mean == pytest.approx((images.double().mean().item() / 255,))
    assert data.std == pytest.approx((images.double().std(correction=0).item() / 255,))


def test_two_moons_have_a_rare_one() -> None:
    data = two_moons(train=400, test=100, spread=0.0)
    assert data.train_counts.tolist() == [380, 20]  # P(Tail) = 5 %, ELM Sec. 2.3
    assert data.test.counts(2).tolist() == [50, 50]
    x, y = data.train.inputs[torch.arange(400)].T
    head = data.train.targets == 0
    # Half circles of radius 1 about (0, 0) and (1, 0.5), the upper and the lower half.
    assert torch.allclose(x[head] ** 2 + y[head] ** 2, torch.ones(380))
    assert torch.allclose((x[~head] - 1) ** 2 + (y[~head] - 0.5) ** 2, torch.ones(20))
    assert (y[head] >= -1e-6).all()
    assert (y[~head] <= 0.5).all()


@pytest.mark.parametrize("text", ["two-moons:tail=0", "two-moons:train=5:tail=0.05", "mnist1d:train=0"])
def test_impossible_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"two-moons|mnist1d"):
        load(text)
