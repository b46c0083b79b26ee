"""Random numbers as a function of a key, independent of when they are drawn.

A number is the hash of (seed, epoch, stream, sample, draw). Resuming, processes, threads and the batch size therefore
do not change it. The hash is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014), chained over the parts of the
key, on int64 tensors whose products wrap around.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

_GOLDEN = 0x9E3779B97F4A7C15
_WORD = 2**64 - 1
_Words = TypeVar("_Words", int, Tensor)


def _signed(word: int) -> int:
    """Reinterpret 64 bits as an int64."""
    return word - 2**64 if word >= 2**63 else word


_STEPS = ((30, _signed(0xBF58476D1CE4E5B9)), (27, _signed(0x94D049BB133111EB)))


def _finalize(words: _Words) -> _Words:
    """Apply the finalizer to int64 tensors, or to the low 64 bits of Python integers."""
    # The mask turns the arithmetic shift into the shift of an unsigned word.
    for shift, factor in _STEPS:
        words = (words ^ ((words >> shift) & (2 ** (64 - shift) - 1))) * factor
    return words ^ ((words >> 31) & (2**33 - 1))


def stream_key(seed: int, epoch: int, stream: str | int) -> int:
    """Return the 64-bit key of a random stream in an epoch, for example to seed a generator.

    Args:
        seed: Random seed.
        epoch: Epoch, from 0.
        stream: Purpose of the numbers. Different streams are independent.

    >>> stream_key(0, 0, "shuffle") == stream_key(0, 1, "shuffle")
    False
    """
    word = 0
    for part in (seed, epoch, zlib.crc32(stream.encode()) + 2**32 if isinstance(stream, str) else stream):
        word = _finalize(word + (part + 1) * _GOLDEN) & _WORD
    return word


def keyed_bits(seed: int, epoch: int, index_B: Tensor, draws: int, *, stream: str | int) -> Tensor:
    """Return 64 random bits per draw as int64, (B, draws).

    Args:
        seed: Random seed.
        epoch: Epoch, from 0.
        index_B: Sample that each row belongs to, int64.
        draws: Numbers per sample.
        stream: Purpose of the numbers.

    >>> keyed_bits(0, 0, torch.tensor([7]), 2, stream="crop").shape
    torch.Size([1, 2])
    """
    base = _signed(stream_key(seed, epoch, stream))
    sample_B = _finalize(index_B * _signed(_GOLDEN) + base)
    step_D = torch.arange(1, draws + 1, device=index_B.device) * _signed(_GOLDEN)
    return _finalize(sample_B[:, None] + step_D)


def keyed_uniform(
    seed: int, epoch: int, index_B: Tensor, draws: int, *, stream: str | int, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Return uniform random numbers in [0, 1), (B, draws): 24 random bits as float32, 53 as float64.

    ``(keyed_uniform(…) * n).long()`` is uniform on 0, …, n − 1.

    Args:
        seed: Random seed.
        epoch: Epoch, from 0.
        index_B: Sample that each row belongs to, int64.
        draws: Numbers per sample.
        stream: Purpose of the numbers.
        dtype: float32 or float64.

    >>> first = keyed_uniform(0, 3, torch.tensor([4, 9]), 2, stream="crop")
    >>> again = keyed_uniform(0, 3, torch.tensor([9]), 2, stream="crop")
    >>> bool((first[1] == again[0]).all())
    True
    """
    digits = 24 if dtype == torch.float32 else 53
    bits = (keyed_bits(seed, epoch, index_B, draws, stream=stream) >> (64 - digits)) & (2**digits - 1)
    return bits.to(dtype) * 2.0**-digits


def keyed_permutation(seed: int, epoch: int, n: int, *, stream: str | int) -> Tensor:
    """Return a random permutation of 0, …, n − 1.

    >>> keyed_permutation(0, 0, 5, stream="shuffle").sort().values
    tensor([0, 1, 2, 3, 4])
    """
    return keyed_bits(seed, epoch, torch.arange(n), 1, stream=stream)[:, 0].argsort(stable=True)


@dataclass(frozen=True)
class Keys:
    """Keys of the random numbers of a batch.

    Attributes:
        seed: Random seed.
        epoch: Epoch, from 0.
        samples: Key of each sample, (B,); see :func:`sample_keys`.
        view: Index of the augmented view.

    >>> keys = Keys(0, 0, torch.arange(4))
    >>> keys.uniform(3, "crop").shape
    torch.Size([4, 3])
    """

    seed: int
    epoch: int
    samples: Tensor
    view: int = 0

    def uniform(self, draws: int, stream: str) -> Tensor:
        """Return numbers in [0, 1), (B, draws), independent between streams and views."""
        return keyed_uniform(self.seed, self.epoch, self.samples, draws, stream=f"{stream}/{self.view}")


def sample_keys(index_B: Tensor, occurrence_B: Tensor) -> Tensor:
    """Combine a sample's index and its occurrence in the epoch, so that repeated samples are augmented differently.

    >>> sample_keys(torch.tensor([3, 3]), torch.tensor([0, 1]))
    tensor([            3, 1099511627779])
    """
    return index_B + (occurrence_B << 40)


def cumcount(rows: Tensor) -> Tensor:
    """Count the earlier occurrences of each entry.

    >>> cumcount(torch.tensor([5, 2, 5, 5, 2]))
    tensor([0, 0, 1, 2, 1])
    """
    order = rows.argsort(stable=True)
    ordered = rows[order]
    position = torch.arange(len(rows), device=rows.device)
    starts = torch.ones_like(ordered, dtype=torch.bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    first = torch.where(starts, position, 0).cummax(0).values
    return torch.empty_like(rows).scatter_(0, order, position - first)
