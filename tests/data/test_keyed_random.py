import pytest
import torch
from scipy import stats

from classgap.data.sampling.keyed_random import (
    Keys,
    cumcount,
    keyed_bits,
    keyed_permutation,
    keyed_uniform,
    sample_keys,
    stream_key,
)

WORD = 2**64


def slow_bits(seed: int, epoch: int, index: int, draw: int, stream: int) -> int:
    """SplitMix64 in Python integers."""

    def mix(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % WORD
        return z ^ (z >> 31)

    golden, word = 0x9E3779B97F4A7C15, 0
    for part in (seed, epoch, stream):
        word = mix((word + (part + 1) * golden) % WORD)
    sample = mix((index * golden + word) % WORD)
    return mix((sample + (draw + 1) * golden) % WORD)


def test_bits_are_those_of_exact_integer_arithmetic() -> None:
    index = torch.tensor([0, 1, 49_999, 2**40 + 3, 2**62])
    bits = keyed_bits(11, 7, index, 3, stream=5)
    wanted = [[slow_bits(11, 7, int(i), draw, 5) for draw in range(3)] for i in index]
    assert [[int(word) % WORD for word in row] for row in bits] == wanted


def test_the_numbers_never_change() -> None:
    values = keyed_uniform(0, 0, torch.tensor([0, 1]), 2, stream="crop")
    assert (values * 2**24).long().tolist() == [[4476279, 14242945], [8801865, 14194839]]


def test_the_first_outputs_are_splitmix64() -> None:
    # A well-known reference sequence: SplitMix64 seeded with 0 begins so.
    from classgap.data.sampling.keyed_random import _GOLDEN, _finalize

    wanted = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]
    assert [_finalize(n * _GOLDEN) % WORD for n in (1, 2)] == wanted
    words = torch.tensor([n * _GOLDEN % WORD for n in (1, 2)], dtype=torch.uint64).view(torch.int64)
    assert [word % WORD for word in _finalize(words).tolist()] == wanted


def test_keys_of_any_seed_are_those_of_exact_integer_arithmetic() -> None:
    for seed in (0, 1, -1, 2**63, 2**64 - 1, -(2**63)):
        bits = keyed_bits(seed, 7, torch.tensor([3]), 1, stream=5)
        assert int(bits) % WORD == slow_bits(seed, 7, 3, 0, 5)
        assert 0 <= stream_key(seed, 7, 5) < WORD


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_uniform(dtype: torch.dtype) -> None:
    values = keyed_uniform(3, 1, torch.arange(50_000), 4, stream="crop", dtype=dtype)
    assert values.dtype == dtype
    assert float(values.min()) >= 0
    assert float(values.max()) < 1
    for column in values.double().T.numpy():
        assert stats.kstest(column, "uniform").pvalue > 1e-3


def test_integers_are_uniform_and_in_range() -> None:
    counts = torch.bincount((keyed_uniform(0, 0, torch.arange(90_000), 1, stream=0)[:, 0] * 9).long(), minlength=9)
    assert len(counts) == 9
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1},
        {"epoch": 1},
        {"stream": "flip"},
        {"index": torch.arange(1, 20_001)},
        {"index": sample_keys(torch.arange(20_000), torch.ones(20_000, dtype=torch.long))},
    ],
    ids=["seed", "epoch", "stream", "next sample", "second use"],
)
def test_independent_of_every_other_key(other: dict) -> None:
    def draw(seed: int = 0, epoch: int = 0, index: torch.Tensor | None = None, stream: str = "crop") -> torch.Tensor:
        index = torch.arange(20_000) if index is None else index
        return keyed_uniform(seed, epoch, index, 1, stream=stream)[:, 0]

    one, two = draw(), draw(**other)
    cells = (one * 8).long() * 8 + (two * 8).long()
    assert stats.chisquare(torch.bincount(cells, minlength=64).numpy()).pvalue > 1e-3


def test_draws_of_a_sample_are_independent() -> None:
    one, two = keyed_uniform(0, 0, torch.arange(20_000), 2, stream="crop").T
    cells = (one * 8).long() * 8 + (two * 8).long()
    assert stats.chisquare(torch.bincount(cells, minlength=64).numpy()).pvalue > 1e-3


def test_batches_do_not_matter() -> None:
    index = torch.randperm(1000)
    whole = keyed_uniform(0, 5, index, 3, stream="crop")
    parts = [keyed_uniform(0, 5, part, 3, stream="crop") for part in index.split(7)]
    assert whole.equal(torch.cat(parts))


def test_views_and_streams_of_keys_differ() -> None:
    keys = Keys(0, 0, torch.arange(5))
    assert not keys.uniform(2, "crop").equal(keys.uniform(2, "flip"))
    assert not keys.uniform(2, "crop").equal(Keys(0, 0, torch.arange(5), view=1).uniform(2, "crop"))


def test_a_name_is_no_number_of_a_stream() -> None:
    assert stream_key(0, 0, "a") != stream_key(0, 0, 0xE8B7BE43)  # its checksum


def test_permutations_are_uniform() -> None:
    seen: dict[tuple[int, ...], int] = {}
    for epoch in range(2400):
        order = tuple(keyed_permutation(0, epoch, 4, stream="shuffle").tolist())
        seen[order] = seen.get(order, 0) + 1
    assert len(seen) == 24
    assert stats.chisquare(list(seen.values())).pvalue > 1e-3


def test_cumcount_matches_a_loop() -> None:
    rows = torch.randint(0, 10, (200,))
    seen: dict[int, int] = {}
    wanted = []
    for row in rows.tolist():
        wanted.append(seen.get(row, 0))
        seen[row] = wanted[-1] + 1
    assert cumcount(rows).tolist() == wanted
    assert cumcount(torch.empty(0, dtype=torch.long)).tolist() == []


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_same_on_a_gpu() -> None:
    index = torch.arange(1000)
    there = keyed_uniform(0, 5, index.cuda(), 3, stream="crop")
    assert there.cpu().equal(keyed_uniform(0, 5, index, 3, stream="crop"))
