"""Sources of trained networks: means of their probabilities, and views of images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from classgap.data.dataset import Split
from classgap.data.preprocessing import Preprocessing
from classgap.remedies.modules import Part, mean_probability
from classgap.remedies.networks import MeanNetwork, Network
from classgap.remedies.scoring import NetworkScores, input_details, input_kind, score
from classgap.remedies.sources import Source
from classgap.remedies.views import VIEWS, Views, shift_size


@dataclass(frozen=True)
class ScoredNetwork:
    """A network with its scores of the fitting and the test samples.

    Attributes:
        network: the network.
        preprocessing: preparation of its inputs.
        fit: scores of the fitting samples.
        test: scores of the test samples.
    """

    network: Network
    preprocessing: Preprocessing
    fit: NetworkScores
    test: NetworkScores

    @classmethod
    def from_splits(
        cls,
        network: Network,
        preprocessing: Preprocessing,
        fit: Split,
        test: Split,
        device: torch.device,
        *,
        with_views: bool = True,
    ) -> Self:
        """Score the fitting and the test samples; see :func:`score_network`."""
        scores = [score_network(network, split, preprocessing, device, with_views=with_views) for split in (fit, test)]
        return cls(network, preprocessing, *scores)


def possible_views(preprocessing: Preprocessing) -> tuple[str, ...]:
    """Return the names of the sets of views that the inputs allow; none unless they are images."""
    if not preprocessing.is_image or min(preprocessing.shape[1:]) < 2:
        return ()
    return tuple(VIEWS)


def score_network(
    network: Network, split: Split, preprocessing: Preprocessing, device: torch.device, *, with_views: bool = True
) -> NetworkScores:
    """Score all samples of a split, in all possible views if they are images.

    Args:
        network: network in evaluation mode; it is on the CPU afterwards.
        split: samples.
        preprocessing: preparation of the inputs.
        device: device to compute on.
        with_views: whether to score views.
    """
    views = possible_views(preprocessing) if with_views else ()
    shift = shift_size(preprocessing.shape) if views else 1
    found = score(network.to(device), split, preprocessing, device, views=views, shift=shift)
    network.cpu()
    return found


def mean_sources(
    name: str,
    scored: Sequence[ScoredNetwork],
    described: Iterable[tuple[str, Any]] = (),
    *,
    views: bool = True,
    is_average: bool = False,
) -> list[Source]:
    """Return a source for the mean of some networks, and for views of it.

    Args:
        name: name of the source.
        scored: networks that take the same inputs, or a single one.
        described: details of the sources, besides those of the inputs.
        views: whether to return views, if they were scored.
        is_average: ``is_average`` of the sources.
    """
    described, preprocessing = tuple(described), scored[0].preprocessing
    plain = Source(
        name,
        _mean([each.fit.logits_NK for each in scored]),
        _mean([each.test.logits_NK for each in scored]),
        inputs=input_kind(preprocessing),
        module=_average([each.network for each in scored]),
        passes=float(len(scored)),
        is_average=is_average,
        details=(*input_details(preprocessing), *described),
    )
    return [plain, *(view_sources(f"{name}+", scored, described, is_average=is_average) if views else ())]


def view_sources(
    prefix: str,
    scored: Sequence[ScoredNetwork],
    described: Iterable[tuple[str, Any]] = (),
    *,
    is_average: bool = False,
) -> list[Source]:
    """Return a source for each set of views of the mean of some networks; see :func:`mean_sources`."""
    preprocessing = scored[0].preprocessing
    details = (*input_details(preprocessing), *described)
    return [
        Source(
            f"{prefix}{views}",
            _mean([each.fit.views[views] for each in scored]),
            _mean([each.test.views[views] for each in scored]),
            inputs="images",
            module=_average([Views(each.network, views, shift_size(preprocessing.shape)) for each in scored]),
            passes=float(len(scored) * VIEWS[views]),
            is_average=is_average,
            details=details,
        )
        for views in scored[0].fit.views
    ]


def _mean(logits: Sequence[Tensor]) -> Tensor:
    return logits[0] if len(logits) == 1 else mean_probability(logits)


def _average(parts: Sequence[Part]) -> Part:
    return parts[0] if len(parts) == 1 else MeanNetwork(parts)
