import itertools

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

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
        (lambda: balanced().load_state_dict({"epoch": 0, "position": 68}), "position"),
    ],
)
def test_invalid_arguments_raise(make, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make()
