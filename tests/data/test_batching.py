import pytest
import torch

from classgap.data.sampling.batching import count_batches, shard_slice, split_batches


@pytest.mark.parametrize(
    ("samples", "size", "world_size", "wanted"),
    [
        (10, 4, 1, [4, 4, 2]),
        (9, 4, 1, [4, 4]),
        (8, 4, 1, [4, 4]),
        (1, 4, 1, [1]),
        (11, 4, 2, [4, 4, 3]),
        (14, 6, 2, [6, 6, 2]),
        (14, 6, 1, [6, 6, 2]),  # the independent of world_size
        (33, 16, 2, [16, 16]),
        (35, 16, 1, [16, 16]),  # less than a quarter
        (36, 16, 8, [16, 16, 4]),
        (16, 6, 2, [6, 6, 4]),
        (3, 8, 2, [3]),
        (0, 8, 2, []),
    ],
)
def test_short_last_batches_are_dropped(samples: int, size: int, world_size: int, wanted: list[int]) -> None:
    batches = split_batches(torch.arange(samples), size, world_size)
    assert [len(batch) for batch in batches] == wanted
    assert count_batches(samples, size, world_size) == len(wanted)
    assert all(each.equal(torch.arange(samples)[i * size :][: len(each)]) for i, each in enumerate(batches))


@pytest.mark.parametrize(("samples", "world_size"), [(10, 1), (10, 3), (11, 4), (2, 4)])
def test_shards_are_even_and_complete(samples: int, world_size: int) -> None:
    parts = [torch.arange(samples)[shard_slice(samples, rank, world_size)] for rank in range(world_size)]
    assert torch.cat(parts).tolist() == list(range(samples))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_a_batch_smaller_than_the_world_raises() -> None:
    with pytest.raises(ValueError, match="batch_size"):
        split_batches(torch.arange(3), 1, 2)
