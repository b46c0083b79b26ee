import threading

import pytest
import torch
from torch import Tensor

from classgap.data.batch import Batch
from classgap.data.dataset import Split
from classgap.data.loader import BatchLoader, evaluation_batches
from classgap.data.sampling.keyed_random import Keys
from classgap.data.sampling.orders import ClassBalancedOrder, RandomOrder, RepeatedOrder
from classgap.testing import Processes

MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)


def pictures(n: int = 30) -> Split:
    generator = torch.Generator().manual_seed(1)
    images = torch.randint(0, 256, (n, 3, 16, 16), generator=generator, dtype=torch.uint8)
    return Split.from_arrays(images, torch.arange(n) % 5)


class Slow:
    """Inputs that are not in memory."""

    def __init__(self, images: Tensor, broken: int = -1) -> None:
        self.images, self.broken, self.threads = images, broken, set()

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        self.threads.add(threading.current_thread().name)
        if self.broken in rows.tolist():
            raise OSError("sample 7 cannot be read")
        return self.images[rows]


def batches(split: Split | None = None, **options) -> BatchLoader:
    split = split or pictures()
    settings = {
        "batch_size": 8,
        "augment": "crop-flip:padding=2",
        "mean": MEAN,
        "std": STD,
        "num_classes": 5,
        "seed": 4,
    }
    return BatchLoader(split, options.pop("order", RandomOrder(len(split), 4)), **(settings | options))


def joined(parts: list[Batch]) -> Batch:
    names = ("inputs", "targets", "labels", "rows")
    other = None if parts[0].other_view is None else torch.cat([part.other_view for part in parts])
    return Batch(*(torch.cat([getattr(part, name) for part in parts]) for name in names), parts[0].total, other)


def assert_same(one: Batch, two: Batch) -> None:
    assert one.rows.equal(two.rows)
    assert one.labels.equal(two.labels)
    torch.testing.assert_close(one.targets, two.targets, rtol=0, atol=1e-6)
    torch.testing.assert_close(one.inputs, two.inputs, rtol=0, atol=1e-5)
    assert (one.other_view is None) == (two.other_view is None)
    if one.other_view is not None:
        torch.testing.assert_close(one.other_view, two.other_view, rtol=0, atol=1e-5)
    assert one.total == two.total


def test_batches_without_augmentation_are_normalized_samples_in_order() -> None:
    split = pictures()
    order = RandomOrder(30, 4)(2)
    for batch, rows in zip(batches(split, augment="none").epoch(2), order.split(8), strict=True):
        images = split.inputs[rows].double() / 255
        wanted = (images - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
        torch.testing.assert_close(batch.inputs.double(), wanted, rtol=0, atol=1e-5)
        assert batch.inputs.dtype == torch.float32
        assert batch.rows.equal(rows)
        assert batch.labels.equal(split.targets[rows])
        assert batch.targets.equal(batch.labels)
        assert batch.other_view is None
        assert len(batch) == batch.total == len(rows)


OPTIONS = pytest.mark.parametrize(
    "options",
    [
        {},
        {"views": 2},
        {"augment": "auto-augment"},
        {"augment": "rrc:size=12", "mix": "cutmix"},
        {"mix": "mixup", "views": 2},
        {"order": ClassBalancedOrder(pictures().targets, 1, 27)},
    ],
    ids=["plain", "two views", "auto-augment", "cutmix", "mixup", "balanced"],
)


@OPTIONS
@pytest.mark.parametrize("world_size", [2, 3])
def test_shards_concatenate_to_the_global_batch(options: dict, world_size: int) -> None:
    whole = batches(**options).epoch(1)
    parts = [batches(rank=rank, world_size=world_size, **options).epoch(1) for rank in range(world_size)]
    count = 0
    for one, *many in zip(whole, *parts, strict=False):
        assert_same(one, joined(many))
        count += 1
    assert count == len(batches(rank=0, world_size=world_size, **options)) >= 3


def first_epoch(options: dict) -> list[Batch]:
    return list(batches(**options).epoch(0))


def test_two_processes_load_the_batches_of_one(processes: Processes) -> None:
    options = {"mix": "mixup", "augment": "rand-augment"}
    one, two = processes.run(first_epoch, options)
    for whole, *parts in zip(first_epoch(options), one, two, strict=True):
        assert_same(whole, joined(parts))


@OPTIONS
@pytest.mark.parametrize("start", [0, 2, 4])
def test_an_epoch_resumes_at_any_step(options: dict, start: int) -> None:
    whole = list(batches(**options).epoch(3))
    assert len(whole) == len(batches(**options))
    rest = list(batches(**options).epoch(3, start))
    assert len(rest) == len(whole) - start
    for one, two in zip(whole[start:], rest, strict=True):
        assert_same(one, two)


def test_the_batch_size_does_not_change_a_sample() -> None:
    small, large = (joined(list(batches(batch_size=size).epoch(0))) for size in (5, 15))
    assert small.inputs.equal(large.inputs)


def test_a_subset_is_augmented_like_the_full_split() -> None:
    whole = joined(list(batches().epoch(0)))
    part = pictures().subset(torch.tensor([3, 20, 11]))
    some = joined(list(batches(part).epoch(0)))
    for row, inputs in zip(some.rows, some.inputs, strict=True):
        assert inputs.equal(whole.inputs[whole.rows == part.index[row]][0])


def test_epochs_views_and_repeats_of_a_sample_differ() -> None:
    order = RepeatedOrder(torch.tensor([3] + [0] * 29))
    first, second = (joined(list(batches(order=order, views=2).epoch(epoch))) for epoch in (0, 1))
    seen = torch.cat([first.inputs, first.other_view, second.inputs, second.other_view])
    assert first.rows.tolist() == [0, 0, 0]
    assert len(seen.unique(dim=0)) == 12


def test_mixed_batches_match_a_loop_over_pairs() -> None:
    plain = list(batches().epoch(0))
    mixing = batches(mix="mixup:alpha=1")
    for step, (before, after) in enumerate(zip(plain, mixing.epoch(0), strict=True)):
        params = mixing.mix.make_params(4, 0, step, len(before))
        for i, j in enumerate(params.partner.tolist()):
            wanted = params.lam * before.inputs[i] + (1 - params.lam) * before.inputs[j]
            torch.testing.assert_close(after.inputs[i], wanted, rtol=0, atol=1e-5)
            target = torch.zeros(5)
            target[before.labels[i]] += params.lam
            target[before.labels[j]] += 1 - params.lam
            torch.testing.assert_close(after.targets[i], target)
        assert after.labels.equal(before.labels)


def test_inputs_on_disk_are_prefetched_in_a_thread() -> None:
    images = pictures()
    inputs = Slow(images.inputs)
    slow = batches(Split.from_arrays(inputs, images.targets))
    for one, two in zip(batches().epoch(0), slow.epoch(0), strict=True):
        assert_same(one, two)
    assert any(name.startswith("classgap-prefetch") for name in inputs.threads)
    stream = slow.epoch(0)
    next(stream)
    assert "classgap-prefetch" in " ".join(each.name for each in threading.enumerate())
    stream.close()
    assert "classgap-prefetch" not in " ".join(each.name for each in threading.enumerate())


def test_building_a_batch_restores_the_number_of_threads() -> None:
    inside = []

    def watched(images: Tensor, keys: Keys) -> Tensor:
        inside.append(torch.get_num_threads())
        if len(inside) == 3:
            raise OSError("third batch")
        return images

    torch.set_num_threads(2)
    try:
        stream = batches(augment=watched).epoch(0)
        next(stream)
        assert torch.get_num_threads() == 2
        with pytest.raises(OSError, match="third"):
            list(stream)
        assert torch.get_num_threads() == 2
        assert inside == [1, 1, 1]
    finally:
        torch.set_num_threads(1)


def test_read_errors_are_raised_in_the_main_thread() -> None:
    split = Split.from_arrays(Slow(pictures().inputs, broken=7), pictures().targets)
    with pytest.raises(OSError, match="sample 7"):
        list(batches(split).epoch(0))
    assert "classgap-prefetch" not in " ".join(each.name for each in threading.enumerate())


def test_signals_and_vectors_are_unchanged() -> None:
    values = torch.randn(12, 1, 40)
    split = Split.from_arrays(values, torch.arange(12) % 3)
    found = joined(list(batches(split, augment="none", mean=None, std=None).epoch(0)))
    assert found.inputs.equal(values[found.rows])
    mixed = joined(list(batches(split, augment=None, mean=None, std=None, mix="mixup").epoch(0)))
    assert mixed.targets.shape == (12, 5)
    torch.testing.assert_close(mixed.targets.sum(dim=1), torch.ones(12))


def test_images_without_a_mean_are_scaled_to_one() -> None:
    found = joined(list(batches(augment="none", mean=None, std=None).epoch(0)))
    torch.testing.assert_close(found.inputs, pictures().inputs[found.rows] / 255)


def test_channels_last() -> None:
    batch = next(batches(channels_last=True, views=2).epoch(0))
    assert batch.inputs.is_contiguous(memory_format=torch.channels_last)
    assert batch.other_view.is_contiguous(memory_format=torch.channels_last)
    assert_same(batch, next(batches(views=2).epoch(0)))


def test_the_split_is_not_modified() -> None:
    split = pictures()
    before = split.inputs.clone()
    list(batches(split, augment="rand-augment", mix="cutmix").epoch(0))
    list(batches(Split.from_arrays(before.float(), split.targets), augment="none").epoch(0))
    assert split.inputs.equal(before)


@pytest.mark.parametrize("world_size", [1, 2, 3, 7])
def test_evaluation_sees_every_sample_once_in_order(world_size: int) -> None:
    split = pictures(31)
    parts = [
        list(evaluation_batches(split, batch_size=4, mean=MEAN, std=STD, rank=rank, world_size=world_size))
        for rank in range(world_size)
    ]
    found = joined([batch for part in parts for batch in part])
    assert found.rows.tolist() == list(range(31))
    assert found.labels.equal(split.targets)
    wanted = (split.inputs.double() / 255 - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
    torch.testing.assert_close(found.inputs.double(), wanted, rtol=0, atol=1e-5)


def test_evaluation_crops_the_center_and_prefetches() -> None:
    images = pictures()
    split = Split.from_arrays(Slow(images.inputs), images.targets)
    found = joined(list(evaluation_batches(split, batch_size=8, size=10)))
    torch.testing.assert_close(found.inputs, images.inputs[:, :, 3:13, 3:13] / 255)
    assert list(evaluation_batches(pictures(1), batch_size=8, rank=0, world_size=2)) == []


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: batches(views=3), "views"),
        (lambda: batches(augment="flip"), "augmentation"),
        (lambda: batches(mix="cut"), "mix"),
        (lambda: batches(mix="mixup:alpha=0"), "alpha"),
        (lambda: batches(mix="cutmix:p=2"), "p must"),
        (lambda: batches(num_classes=4), "num_classes"),
        (lambda: batches(rank=2, world_size=2), "rank"),
        (lambda: batches(batch_size=1, rank=0, world_size=2), "batch_size"),
        (lambda: batches(pictures(1), rank=0, world_size=2), "sample per process"),
        (lambda: batches(mean=(0.5,)), "mean"),
        (lambda: batches(std=(0.5, 0.0, 0.5)), "std"),
        (lambda: batches(Split.from_arrays(torch.rand(4, 9), torch.arange(4))), "augment='none'"),
        (
            lambda: batches(Split.from_arrays(torch.rand(4, 3), torch.arange(4)), augment=None, mix="cutmix"),
            "cutmix needs images",
        ),
        (lambda: batches().epoch(0, 5), "start"),
        (lambda: evaluation_batches(pictures(), batch_size=0), "batch_size"),
        (lambda: list(evaluation_batches(pictures(), batch_size=4, size=17)), "size"),
    ],
)
def test_invalid_arguments_raise(make, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make()


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_batches_reach_a_gpu() -> None:
    for one, two in zip(batches(views=2).epoch(0), batches(views=2, device="cuda").epoch(0), strict=True):
        assert two.inputs.is_cuda
        assert_same(one, two.map(Tensor.cpu))
