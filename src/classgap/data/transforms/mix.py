"""Mixup (Zhang et al., 2018) and CutMix (Yun et al., 2019) over the batch of all processes.

Partners and mixing share are keyed by (seed, epoch, step), so that W processes mix as one. A process needs the inputs
of its own samples' partners, which may be another's samples: it loads them itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from classgap.data.sampling.keyed_random import key_of
from classgap.registry import Entry, Registry


@dataclass(frozen=True)
class Recipe:
    """How one batch is mixed.

    Attributes:
        partner: (B,), for each place of the batch of all processes the place of its partner.
        share: λ, what remains of the sample itself.
        box: top, left, bottom and right, as shares of the image, of what CutMix replaces.
    """

    partner: Tensor
    share: float
    box: tuple[float, float, float, float] | None = None


class Mix(Protocol):
    """A way of mixing a batch."""

    def recipe(self, seed: int, epoch: int, step: int, samples: int) -> Recipe:
        """What is done with one batch of so many samples."""
        ...

    def __call__(self, inputs: Tensor, partners: Tensor, recipe: Recipe) -> tuple[Tensor, float]:
        """The mixed inputs and the exact share that remains of ``inputs``."""
        ...


@dataclass(frozen=True)
class Mixup:
    """λ x + (1 − λ) x′, with λ ~ Beta(α, α).

    Args:
        alpha: of the Beta distribution.
        p: share of the batches that are mixed.

    >>> mix = Mixup()
    >>> inputs, share = mix(torch.ones(1, 2), torch.zeros(1, 2), Recipe(torch.tensor([0]), 0.75))
    >>> inputs, share
    (tensor([[0.7500, 0.7500]]), 0.75)
    """

    alpha: float = 0.2
    p: float = 1.0

    def __post_init__(self) -> None:
        _check(self.alpha, self.p)

    def recipe(self, seed: int, epoch: int, step: int, samples: int) -> Recipe:
        """What is done with one batch of so many samples."""
        random = _generator(seed, epoch, step)
        return Recipe(torch.from_numpy(random.permutation(samples)), _share(random, self.alpha, self.p))

    def __call__(self, inputs: Tensor, partners: Tensor, recipe: Recipe) -> tuple[Tensor, float]:
        """The mixed inputs and the share that remains of ``inputs``."""
        return torch.lerp(partners, inputs, recipe.share), recipe.share


@dataclass(frozen=True)
class CutMix:
    """A box of the partner in place of the sample's own: 1 − λ of the area, λ ~ Beta(α, α), as far as it is inside.

    Args:
        alpha: of the Beta distribution.
        p: share of the batches that are mixed.

    >>> mix = CutMix()
    >>> recipe = Recipe(torch.tensor([0]), 0.75, (0.0, 0.5, 0.5, 1.0))
    >>> inputs, share = mix(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 2, 2), recipe)
    >>> inputs.flatten(), share
    (tensor([1., 0., 1., 1.]), 0.75)
    """

    alpha: float = 1.0
    p: float = 1.0

    def __post_init__(self) -> None:
        _check(self.alpha, self.p)

    def recipe(self, seed: int, epoch: int, step: int, samples: int) -> Recipe:
        """What is done with one batch of so many samples."""
        random = _generator(seed, epoch, step)
        partner = torch.from_numpy(random.permutation(samples))
        share = _share(random, self.alpha, self.p)
        half = (1 - share) ** 0.5 / 2
        y, x = random.random(2).tolist()
        return Recipe(partner, share, (max(y - half, 0), max(x - half, 0), min(y + half, 1), min(x + half, 1)))

    def __call__(self, inputs: Tensor, partners: Tensor, recipe: Recipe) -> tuple[Tensor, float]:
        """The mixed images and the share of pixels that remains of ``inputs``."""
        assert recipe.box is not None
        height, width = inputs.shape[-2:]
        top, left, bottom, right = (
            round(edge * length) for edge, length in zip(recipe.box, (height, width) * 2, strict=True)
        )
        mixed = inputs.clone()
        mixed[..., top:bottom, left:right] = partners[..., top:bottom, left:right]
        return mixed, 1 - (bottom - top) * (right - left) / (height * width)


def soft_targets(labels_B: Tensor, partner_labels_B: Tensor, share: float, num_classes: int) -> Tensor:
    """λ of the own class and 1 − λ of the partner's, (B, K).

    >>> soft_targets(torch.tensor([0]), torch.tensor([2]), 0.75, 3)
    tensor([[0.7500, 0.0000, 0.2500]])
    """
    own, other = (F.one_hot(labels, num_classes).float() for labels in (labels_B, partner_labels_B))
    return share * own + (1 - share) * other


def _mixup(*, alpha: float = 0.2, p: float = 1.0) -> Mix:
    return Mixup(alpha, p)


def _cutmix(*, alpha: float = 1.0, p: float = 1.0) -> Mix:
    return CutMix(alpha, p)


MIXES: Registry[Mix] = Registry(
    "mix",
    [
        Entry("mixup", "Weighted means of two samples (Zhang et al., 2018).", _mixup),
        Entry("cutmix", "A box of another image (Yun et al., 2019).", _cutmix),
    ],
)


def build_mix(text: str) -> Mix:
    """The way of mixing that ``text`` names.

    >>> build_mix("mixup:alpha=0.4")
    Mixup(alpha=0.4, p=1.0)
    """
    return MIXES.build(text)


def _generator(seed: int, epoch: int, step: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=key_of(seed, epoch, f"mix/{step}")))


def _share(random: np.random.Generator, alpha: float, p: float) -> float:
    share = float(random.beta(alpha, alpha))
    return share if float(random.random()) < p else 1.0


def _check(alpha: float, p: float) -> None:
    if not alpha > 0:
        raise ValueError(f"alpha must be above 0; got {alpha}.")
    if not 0 < p <= 1:
        raise ValueError(f"p, the share of batches that are mixed, must be above 0 and at most 1; got {p}.")
