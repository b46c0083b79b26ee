from collections import Counter

import pytest
import torch
from scipy import stats

from classgap.data.sampling.orders import ClassAwareOrder, ClassBalancedOrder, QuotaOrder, RandomOrder, RepeatedOrder

LONG_TAIL = torch.tensor([0] * 50 + [3] * 20 + [1] * 7 + [5] * 3)  # classes 2 and 4 have no samples

ORDERS = {
    "random": lambda seed: RandomOrder(40, seed),
    "repeated": lambda seed: RepeatedOrder(torch.arange(10), seed),
    "balanced": lambda seed: ClassBalancedOrder(LONG_TAIL, seed),
    "quota": lambda seed: QuotaOrder(LONG_TAIL, LONG_TAIL.bincount() // 2, seed),
    "aware": lambda seed: ClassAwareOrder(LONG_TAIL, 3, 2, seed),
}


@pytest.mark.parametrize("name", ORDERS)
def test_orders_depend_on_seed_and_epoch(name: str) -> None:
    order = ORDERS[name](0)
    assert order(3).equal(ORDERS[name](0)(3))
    assert len(order(3)) == len(order)
    assert not order(3).equal(order(4))
    assert not order(3).equal(ORDERS[name](1)(3))


def test_random_order_has_every_sample_once() -> None:
    assert RandomOrder(100)(2).sort().values.tolist() == list(range(100))


def test_repeated_order_repeats_each_sample() -> None:
    times = torch.tensor([2, 0, 5, 1])
    assert torch.bincount(RepeatedOrder(times)(0), minlength=4).equal(times)


def test_balanced_draws_all_present_classes_equally() -> None:
    drawn = LONG_TAIL[ClassBalancedOrder(LONG_TAIL, num_samples=8000)(0)]
    counts = torch.bincount(drawn, minlength=6)[[0, 1, 3, 5]]
    assert int(counts.sum()) == 8000
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


def test_balanced_draws_without_replacement_within_a_class() -> None:
    rows = ClassBalancedOrder(LONG_TAIL, num_samples=1000)(0)
    for k in (0, 1, 3, 5):
        of_class = rows[LONG_TAIL[rows] == k]
        size = LONG_TAIL.tolist().count(k)
        passes = of_class.split(size)
        assert all(len(set(each.tolist())) == len(each) for each in passes)
        if k == 1:
            assert not passes[0].equal(passes[1])  # another order in the second pass


def test_a_longer_balanced_epoch_begins_the_same() -> None:
    assert ClassBalancedOrder(LONG_TAIL, num_samples=500)(1)[:80].equal(ClassBalancedOrder(LONG_TAIL)(1))


def test_aware_batches_have_m_of_each_class_and_no_sample_twice() -> None:
    order = ClassAwareOrder(LONG_TAIL, per_class=4, classes_per_batch=3)
    batches = order(0).split(order.batch_size)
    assert [len(each) for each in batches] == [12] * 6
    for batch in batches:
        counts = Counter(LONG_TAIL[batch].tolist())
        assert sorted(counts.values()) == [4, 4, 4]
        enough = batch[LONG_TAIL[batch] != 5]  # class 5 has three samples only
        assert len(enough.unique()) == len(enough)


def test_aware_draws_classes_uniformly() -> None:
    targets = torch.arange(6).repeat(200)
    order = ClassAwareOrder(targets, per_class=2, classes_per_batch=2)
    chosen = torch.bincount(torch.cat([targets[order(epoch)] for epoch in range(3)])) // 2
    assert stats.chisquare(chosen.numpy()).pvalue > 1e-3


def test_aware_uses_all_samples_over_time() -> None:
    order = ClassAwareOrder(LONG_TAIL, per_class=2, classes_per_batch=4)
    assert len(torch.cat([order(epoch) for epoch in range(20)]).unique()) == len(LONG_TAIL)


def test_a_small_set_gives_one_aware_batch() -> None:
    order = ClassAwareOrder(torch.tensor([0, 1]), per_class=3, classes_per_batch=2)
    assert sorted(order(0).tolist()) == [0, 0, 0, 1, 1, 1]


def test_quotas_are_met_without_repeating_a_sample_before_its_class_is_used_up() -> None:
    targets = torch.tensor([0] * 9 + [2] * 3 + [3] * 5)
    rows = QuotaOrder(targets, torch.tensor([4, 0, 7, 0]), seed=2)(3)
    assert targets[rows].bincount(minlength=4).tolist() == [4, 0, 7, 0]
    repeats = rows.bincount(minlength=len(targets))
    assert repeats[:9].max() == 1
    assert sorted(repeats[9:12].tolist()) == [2, 2, 3]


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: RepeatedOrder(torch.tensor([0.5])), "repeats"),
        (lambda: RepeatedOrder(torch.tensor([-1])), "repeats"),
        (lambda: ClassBalancedOrder(torch.rand(3)), "targets"),
        (lambda: QuotaOrder(torch.tensor([0, 1]), torch.tensor([1])), "each of 2 classes"),
        (lambda: QuotaOrder(torch.tensor([0, 1]), torch.tensor([0.5, 1.0])), "quotas .* torch.float32"),
        (lambda: QuotaOrder(torch.tensor([0, 2]), torch.tensor([1, 4, 1])), "quotas .*got 4 for 1"),
        (lambda: ClassBalancedOrder(torch.tensor([], dtype=torch.long)), "targets"),
        (lambda: ClassAwareOrder(LONG_TAIL, 0, 2), "per_class"),
        (lambda: ClassAwareOrder(LONG_TAIL, 2, 5), "classes_per_batch"),
    ],
)
def test_invalid_arguments_raise(make, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make()
