"""Scores of a network, and of several views of each image, in one pass over the samples."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from classgap.data.dataset import Split
from classgap.data.preprocessing import BATCH_SIZE, Preprocessing
from classgap.remedies.networks import Network
from classgap.remedies.sources import Inputs as InputKind
from classgap.remedies.views import VIEWS, iterate_views


def input_kind(preprocessing: Preprocessing) -> InputKind:
    """Return the kind of the inputs of a fix that contains a network."""
    return "images" if preprocessing.is_image else "samples"


def input_details(preprocessing: Preprocessing) -> tuple[tuple[str, Any], ...]:
    """Return the preparation of the inputs as plain values for a saved fix."""
    statistics = (("mean", preprocessing.mean), ("std", preprocessing.std))
    given = tuple((name, None if each is None else list(each)) for name, each in statistics)
    return (("input_shape", list(preprocessing.shape)), *given)


@dataclass(frozen=True)
class NetworkScores:
    """Scores of one network for all samples of a split.

    Attributes:
        logits_NK: logits.
        views: "mirror", "ten-views" → log of the mean probability over the views.
    """

    logits_NK: Tensor
    views: dict[str, Tensor] = field(default_factory=dict)

    def take(self, rows: Tensor) -> NetworkScores:
        """Return the scores of some samples."""
        return NetworkScores(self.logits_NK[rows], {name: each[rows] for name, each in self.views.items()})


@torch.no_grad()
def score(
    network: Network,
    split: Split,
    preprocessing: Preprocessing,
    device: torch.device,
    *,
    views: Sequence[str] = (),
    shift: int = 1,
) -> NetworkScores:
    """Score all samples of a split.

    Args:
        network: network on ``device``, in evaluation mode.
        split: samples.
        preprocessing: preparation of the inputs.
        device: device of the network.
        views: names of :data:`VIEWS`.
        shift: size of a shift in pixels.
    """
    parts = [_score_batch(network, batch.inputs, views, shift) for batch in preprocessing.batches(split, device)]
    merged = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    return NetworkScores(merged.pop(""), merged)


def accuracy(logits_NK: Tensor, targets_N: Tensor) -> float:
    """Return the fraction of samples whose highest score is that of their class.

    >>> accuracy(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1]))
    0.5
    """
    return float((logits_NK.argmax(dim=1) == targets_N).double().mean())


def _score_batch(network: Network, inputs: Tensor, views: Sequence[str], shift: int) -> dict[str, Tensor]:
    """Logits under the name "", and the log of the mean probability of each set of views."""
    if not views:
        return {"": network(inputs).float().cpu()}
    last, found, total = max(VIEWS[name] for name in views), {}, None
    for count, view in enumerate(iterate_views(inputs, shift), start=1):
        logits_BK = network(view).float()
        if total is None:
            found[""], total = logits_BK.cpu(), torch.zeros_like(logits_BK)
        total += logits_BK.softmax(dim=1)
        for name in views:
            if VIEWS[name] == count:
                found[name] = (total / count).clamp(min=torch.finfo(total.dtype).tiny).log().cpu()
        if count == last:
            break
    return found


def duplicate_rows(split: Split, others: Split) -> Tensor:
    """Return the rows of ``split`` whose inputs also occur in ``others``.

    >>> inputs = torch.tensor([[1.0], [2.0], [3.0]])
    >>> split = Split.from_arrays(inputs, torch.zeros(3))
    >>> duplicate_rows(split, Split.from_arrays(inputs[1:2], torch.zeros(1)))
    tensor([1])
    """
    known = set(_hashes(others))
    return torch.tensor([row for row, digest in enumerate(_hashes(split)) if digest in known], dtype=torch.long)


def _hashes(split: Split) -> Iterator[bytes]:
    for rows in torch.arange(len(split)).split(BATCH_SIZE):
        for each in split.inputs[rows].contiguous().numpy():
            yield hashlib.blake2b(each.tobytes(), digest_size=16).digest()
