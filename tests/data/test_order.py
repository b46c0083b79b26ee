from collections import Counter

import pytest
import torch
from scipy import stats

from classgap.data.sampling.order import (
    ClassAware,
    ClassBalanced,
    Repeated,
    Shuffled,
    batches_of,
    count_batches,
    share_of,
)

LONG_TAIL = torch.tensor([0] * 50 + [3] * 20 + [1] * 7 + [5] * 3)  # classes 2 and 4 have no samples

ORDERS = {
    "shuffled": lambda seed: Shuffled(40, seed),
    "repeated": lambda seed: Repeated(torch.arange(10), seed),
    "balanced": lambda seed: ClassBalanced(LONG_TAIL, seed),
    "aware": lambda seed: ClassAware(LONG_TAIL, 3, 2, seed),
}


@pytest.mark.parametrize("name", ORDERS)
def test_a_function_of_seed_and_epoch(name: str) -> None:
    order = ORDERS[name](0)
    assert order(3).equal(ORDERS[name](0)(3))
    assert len(order(3)) == len(order)
    assert not order(3).equal(order(4))
    assert not order(3).equal(ORDERS[name](1)(3))


def test_shuffled_has_every_sample_once() -> None:
    assert Shuffled(100)(2).sort().values.tolist() == list(range(100))


def test_repeated_has_each_sample_as_often_as_asked() -> None:
    times = torch.tensor([2, 0, 5, 1])
    assert torch.bincount(Repeated(times)(0), minlength=4).equal(times)


def test_balanced_draws_all_present_classes_equally() -> None:
    drawn = LONG_TAIL[ClassBalanced(LONG_TAIL, length=8000)(0)]
    counts = torch.bincount(drawn, minlength=6)[[0, 1, 3, 5]]
    assert int(counts.sum()) == 8000
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


def test_balanced_uses_all_of_a_class_before_one_again() -> None:
    rows = ClassBalanced(LONG_TAIL, length=1000)(0)
    for k in (0, 1, 3, 5):
        of_class = rows[LONG_TAIL[rows] == k]
        size = LONG_TAIL.tolist().count(k)
        passes = of_class.split(size)
        assert all(len(set(each.tolist())) == len(each) for each in passes)
        if k == 1:
            assert not passes[0].equal(passes[1])  # another order in the second pass


def test_a_longer_balanced_epoch_begins_the_same() -> None:
    assert ClassBalanced(LONG_TAIL, length=500)(1)[:80].equal(ClassBalanced(LONG_TAIL)(1))


def test_aware_batches_have_m_of_each_class_and_no_sample_twice() -> None:
    order = ClassAware(LONG_TAIL, per_class=4, classes_per_batch=3)
    batches = order(0).split(order.batch_size)
    assert [len(each) for each in batches] == [12] * 6
    for batch in batches:
        counts = Counter(LONG_TAIL[batch].tolist())
        assert sorted(counts.values()) == [4, 4, 4]
        enough = batch[LONG_TAIL[batch] != 5]  # class 5 has three samples only
        assert len(enough.unique()) == len(enough)


def test_aware_chooses_classes_equally() -> None:
    targets = torch.arange(6).repeat(200)
    order = ClassAware(targets, per_class=2, classes_per_batch=2)
    chosen = torch.bincount(torch.cat([targets[order(epoch)] for epoch in range(3)])) // 2
    assert stats.chisquare(chosen.numpy()).pvalue > 1e-3


def test_aware_uses_all_samples_over_time() -> None:
    order = ClassAware(LONG_TAIL, per_class=2, classes_per_batch=4)
    assert len(torch.cat([order(epoch) for epoch in range(20)]).unique()) == len(LONG_TAIL)


def test_a_small_set_gives_one_aware_batch() -> None:
    order = ClassAware(torch.tensor([0, 1]), per_class=3, classes_per_batch=2)
    assert sorted(order(0).tolist()) == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("samples", "size", "world", "wanted"),
    [
        (10, 4, 1, [4, 4, 2]),
        (9, 4, 1, [4, 4]),
        (8, 4, 1, [4, 4]),
        (1, 4, 1, [1]),
        (11, 4, 2, [4, 4, 3]),
        (14, 6, 2, [6, 6, 2]),
        (14, 6, 1, [6, 6, 2]),  # the number of processes does not matter
        (33, 16, 2, [16, 16]),
        (35, 16, 1, [16, 16]),  # less than a quarter
        (36, 16, 8, [16, 16, 4]),
        (16, 6, 2, [6, 6, 4]),
        (3, 8, 2, [3]),
        (0, 8, 2, []),
    ],
)
def test_the_last_batch_is_kept_when_batch_norm_can_use_it(
    samples: int, size: int, world: int, wanted: list[int]
) -> None:
    batches = batches_of(torch.arange(samples), size, world)
    assert [len(batch) for batch in batches] == wanted
    assert count_batches(samples, size, world) == len(wanted)
    assert all(each.equal(torch.arange(samples)[i * size :][: len(each)]) for i, each in enumerate(batches))


@pytest.mark.parametrize(("samples", "world"), [(10, 1), (10, 3), (11, 4), (2, 4)])
def test_shares_join_to_the_whole_and_are_even(samples: int, world: int) -> None:
    parts = [torch.arange(samples)[share_of(samples, rank, world)] for rank in range(world)]
    assert torch.cat(parts).tolist() == list(range(samples))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Repeated(torch.tensor([0.5])), "times_N"),
        (lambda: Repeated(torch.tensor([-1])), "times_N"),
        (lambda: ClassBalanced(torch.rand(3)), "targets"),
        (lambda: ClassBalanced(torch.tensor([], dtype=torch.long)), "targets"),
        (lambda: ClassAware(LONG_TAIL, 0, 2), "per_class"),
        (lambda: ClassAware(LONG_TAIL, 2, 5), "classes_per_batch"),
        (lambda: batches_of(torch.arange(3), 1, 2), "batch_size"),
    ],
)
def test_what_cannot_be_is_refused_by_name(make, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make()
