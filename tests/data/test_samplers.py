import itertools
import pickle

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from classgap.data.sampling.orders import ClassAwareOrder, ClassBalancedOrder
from classgap.data.sampling.samplers import ClassAwareBatchSampler, ClassBalancedSampler, ClassQuotaSampler
from classgap.testing import Processes

TARGETS = torch.tensor([0] * 40 + [1] * 15 + [2] * 8 + [3] * 4)
DATA = TensorDataset(torch.arange(len(TARGETS)), TARGETS)


def balanced(**places: int) -> ClassBalancedSampler:
    return ClassBalancedSampler(TARGETS, seed=3, **places)


def aware(**places: int) -> ClassAwareBatchSampler:
    return ClassAwareBatchSampler(TARGETS, 2, 4, seed=3, **places)


def by_quota(**places: int) -> ClassQuotaSampler:
    return ClassQuotaSampler(TARGETS, torch.tensor([8, 8, 10, 8]), seed=3, **places)


MAKERS = pytest.mark.parametrize("make", [balanced, aware, by_quota])


def drawn(sampler: ClassBalancedSampler | ClassAwareBatchSampler, epoch: int = 0) -> list:
    sampler.set_epoch(epoch)
    return list(sampler)


def part(kind: str) -> list:
    sampler = {"balanced": balanced, "aware": aware}[kind]()  # the place comes from torch.distributed
    return drawn(sampler, 2)


def test_one_process_has_the_full_order() -> None:
    assert drawn(balanced(), 5) == ClassBalancedOrder(TARGETS, 3)(5).tolist()
    assert drawn(aware(), 5) == ClassAwareOrder(TARGETS, 2, 4, 3)(5).view(-1, 8).tolist()


@MAKERS
def test_epochs_differ(make) -> None:
    sampler = make()
    assert drawn(sampler, 0) != drawn(sampler, 1)
    assert drawn(sampler, 0) == drawn(make(), 0)
    assert len(drawn(sampler, 4)) == len(sampler)


def test_two_processes_share_the_order_of_one(processes: Processes) -> None:
    one, two = processes.run(part, "balanced")
    assert len(one) == len(two) == 33
    assert list(itertools.chain(*zip(one, two, strict=True))) == drawn(balanced(), 2)[:66]
    one, two = processes.run(part, "aware")
    assert [a + b for a, b in zip(one, two, strict=True)] == drawn(aware(), 2)
    assert all(set(TARGETS[a].tolist()).isdisjoint(TARGETS[b].tolist()) for a, b in zip(one, two, strict=True))


@MAKERS
@pytest.mark.parametrize("world", [2, 4])
def test_ranks_divide_the_draws_equally(make, world: int) -> None:
    parts = [make(num_replicas=world, rank=rank) for rank in range(world)]
    assert len({len(part) for part in parts}) == 1
    for epoch in (0, 1):
        drawn_by_rank = [drawn(part, epoch) for part in parts]
        assert {len(rows) for rows in drawn_by_rank} == {len(parts[0])}
        flat = [np.ravel(rows).tolist() for rows in drawn_by_rank]
        whole = np.ravel(drawn(make(), epoch)).tolist()
        assert sorted(itertools.chain(*flat)) == sorted(whole[: len(whole) // world * world])


def test_ranks_of_quotas_are_disjoint() -> None:
    """No quota exceeds its class but the last, so a sample is drawn once."""
    sampler = [ClassQuotaSampler(TARGETS, torch.tensor([8, 8, 8, 4]), num_replicas=2, rank=rank) for rank in (0, 1)]
    one, two = map(drawn, sampler)
    assert len(one) == len(two) == 14
    assert set(one).isdisjoint(two)


def late_parts() -> list:
    """Items of samplers that were created by one process alone."""
    return [drawn(pickle.loads(each), 1) for each in EARLY]


EARLY = [pickle.dumps(make()) for make in (balanced, aware, by_quota)]


def test_processes_are_counted_when_an_epoch_starts(processes: Processes) -> None:
    for early, one, two in zip(EARLY, *processes.run(late_parts), strict=True):
        alone = drawn(pickle.loads(early), 1)
        assert one != two
        joined = np.ravel(one).tolist() + np.ravel(two).tolist()
        assert sorted(joined) == sorted(np.ravel(alone)[: len(joined)].tolist())


@pytest.mark.parametrize("make", [balanced, by_quota])
def test_they_are_distributed_samplers(make) -> None:
    sampler = make(num_replicas=2, rank=1)
    assert isinstance(sampler, DistributedSampler)
    assert (sampler.num_samples, sampler.total_size) == (len(list(sampler)), 2 * len(sampler))


@MAKERS
def test_targets_may_be_lists_and_arrays(make, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = drawn(make())
    for targets in (TARGETS.tolist(), TARGETS.numpy()):
        monkeypatch.setitem(globals(), "TARGETS", targets)
        assert drawn(make()) == expected


def test_quotas_follow_errors() -> None:
    """By hand: half of the 67 samples; class 2 would exceed its 8 samples, so the others share the rest."""
    errors = [0.1, 0.2, 0.5, float("nan")]  # unknown: the mean, 0.2667
    sampler = ClassQuotaSampler.from_errors(TARGETS, errors, density=0.5, seed=1)
    scale = (0.5 * 67 - 8) / (40 * 0.1 + 15 * 0.2 + 4 * 0.8 / 3)  # class 2 is full with its 8 samples
    wanted = [round(40 * 0.1 * scale), round(15 * 0.2 * scale), 8, round(4 * 0.8 / 3 * scale)]
    assert TARGETS[drawn(sampler)].bincount().tolist() == wanted
    assert TARGETS[drawn(sampler, 3)].bincount().tolist() == wanted
    none = ClassQuotaSampler.from_errors(TARGETS.tolist(), np.array([0.0, 0.0, 1.0, 1.0]), density=0.1)
    assert TARGETS[drawn(none)].bincount().tolist() == [1, 1, 4, 2]  # no class is lost


@MAKERS
@pytest.mark.parametrize("used", [0, 1, 3])
def test_resumes_at_the_exact_item(make, used: int) -> None:
    whole = drawn(make(), 2)
    sampler = make()
    sampler.set_epoch(2)
    begun = list(itertools.islice(sampler, used))
    state = sampler.state_dict()
    assert state == {"epoch": 2, "position": used}
    resumed = make()
    resumed.load_state_dict(state)
    resumed.set_epoch(resumed.epoch)
    assert begun + list(resumed) == whole
    assert list(resumed) == whole  # only once
    resumed.load_state_dict(state)
    assert drawn(resumed, 3) == drawn(make(), 3)  # another epoch begins at its beginning


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_resumes_with_its_own_count(workers: int) -> None:
    def loader(sampler: ClassBalancedSampler) -> DataLoader:
        return DataLoader(DATA, batch_size=8, sampler=sampler, num_workers=workers)

    whole = [rows.tolist() for rows, _ in loader(balanced())]
    sampler = balanced()
    steps = iter(loader(sampler))
    begun = [next(steps)[0].tolist() for _ in range(3)]
    state = sampler.state_dict(position=3 * 8)
    resumed = balanced()
    resumed.load_state_dict(state)
    assert begun + [rows.tolist() for rows, _ in loader(resumed)] == whole


def test_a_loader_with_workers_takes_the_batches() -> None:
    loader = DataLoader(DATA, batch_sampler=aware(), num_workers=2)
    assert len(loader) == 8
    assert [rows.tolist() for rows, _ in loader] == drawn(aware())


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: balanced(num_replicas=2, rank=2), "rank"),
        (lambda: aware(num_replicas=3, rank=0), "classes_per_batch"),
        (lambda: ClassQuotaSampler.from_errors(TARGETS, [0.1, 0.2, 0.3]), "errors"),
        (lambda: ClassQuotaSampler.from_errors(TARGETS, [0.1, 0.2, 0.3, 1.5]), "1.5"),
        (lambda: ClassQuotaSampler.from_errors(TARGETS, [0.1] * 4, density=0), "density"),
        (lambda: balanced().load_state_dict({"epoch": 0, "position": 68}), "position"),
    ],
)
def test_invalid_arguments_raise(make, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make()
