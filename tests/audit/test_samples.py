"""Packed labels come back as they were, and differ when anything in them does."""

import numpy as np
import pytest

from classgap.audit.samples import Samples


@pytest.mark.parametrize("largest", [1, 255, 256, 70_000, 2**33])
def test_round_trip_in_the_smallest_integers(largest):
    values = np.array([0, largest // 2, largest])
    samples = Samples(values, values[::-1].copy(), values)
    packed = samples.to_plain()
    assert np.iinfo(np.dtype(packed["targets"]["dtype"])).max >= largest
    assert Samples.from_plain(packed) == samples


@pytest.mark.parametrize("array", ["targets", "predictions", "index"])
@pytest.mark.parametrize("damage", [lambda packed: packed | {"extra": 1}, lambda packed: {"dtype": "|u1"}, list, str])
def test_packed_arrays_have_exactly_their_two_keys(array, damage):
    values = np.array([0, 1])
    plain = Samples(values, values, values).to_plain()
    assert Samples.from_plain(plain).index.tolist() == [0, 1]
    with pytest.raises(ValueError, match="packed labels"):
        Samples.from_plain(plain | {array: damage(plain[array])})


def test_any_difference_counts():
    base = Samples(np.array([0, 1]), np.array([1, 1]), np.array([4, 5]))
    assert base != Samples(np.array([0, 0]), base.predictions, base.index)
    assert base != Samples(base.targets, np.array([1, 0]), base.index)
    assert base != Samples(base.targets, base.predictions, np.array([4, 6]))
    assert base != Samples(base.targets, base.predictions, None)


def test_fifty_thousand_samples_stay_small():
    rng = np.random.default_rng(0)
    samples = Samples(rng.integers(0, 1000, 50_000), rng.integers(0, 1000, 50_000), np.arange(50_000))
    size = sum(len(part["data"]) for part in samples.to_plain().values())
    assert size < 400_000
