"""Mixup (Zhang et al., 2018) and CutMix (Yun et al., 2019) over the global batch.

Partners and mixing coefficients are keyed by (seed, epoch, step), so the number of processes does not change them. Each
process also loads the partners of its samples, which may be in the part of another process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from classgap.data.sampling.keyed_random import stream_key
from classgap.registry import Entry, Registry


@dataclass(frozen=True)
class MixParams:
    """Random parameters of one mixed batch.

    Attributes:
        partner: Partner of each position in the global batch, (B,).
        lam: λ, the weight of the sample itself.
        box: Box that CutMix replaces: top, left, bottom, right, as fractions of the image size.
    """

    partner: Tensor
    lam: float
    box: tuple[float, float, float, float] | None = None


class Mix(Protocol):
    """A method to mix the samples of a batch."""

    def make_params(self, seed: int, epoch: int, step: int, batch_size: int) -> MixParams:
        """Draw the parameters of one global batch."""
        ...

    def __call__(self, inputs: Tensor, partners: Tensor, params: MixParams) -> tuple[Tensor, float]:
        """Return the mixed inputs and the exact weight of ``inputs`` in them."""
        ...


@dataclass(frozen=True)
class Mixup:
    """Mix λ x + (1 − λ) x′ with λ ~ Beta(α, α).

    Args:
        alpha: Parameter of the Beta distribution.
        p: Probability of mixing a batch.

    >>> mix = Mixup()
    >>> inputs, lam = mix(torch.ones(1, 2), torch.zeros(1, 2), MixParams(torch.tensor([0]), 0.75))
    >>> inputs, lam
    (tensor([[0.7500, 0.7500]]), 0.75)
    """

    alpha: float = 0.2
    p: float = 1.0

    def __post_init__(self) -> None:
        _check(self.alpha, self.p)

    def make_params(self, seed: int, epoch: int, step: int, batch_size: int) -> MixParams:
        """Draw the parameters of one global batch."""
        random = _generator(seed, epoch, step)
        return MixParams(torch.from_numpy(random.permutation(batch_size)), _draw_lam(random, self.alpha, self.p))

    def __call__(self, inputs: Tensor, partners: Tensor, params: MixParams) -> tuple[Tensor, float]:
        """Return the mixed inputs and λ."""
        return torch.lerp(partners, inputs, params.lam), params.lam


@dataclass(frozen=True)
class CutMix:
    """Replace a box with the partner's, with 1 − λ of the area, λ ~ Beta(α, α), clipped to the image.

    Args:
        alpha: Parameter of the Beta distribution.
        p: Probability of mixing a batch.

    >>> mix = CutMix()
    >>> params = MixParams(torch.tensor([0]), 0.75, (0.0, 0.5, 0.5, 1.0))
    >>> inputs, lam = mix(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 2, 2), params)
    >>> inputs.flatten(), lam
    (tensor([1., 0., 1., 1.]), 0.75)
    """

    alpha: float = 1.0
    p: float = 1.0

    def __post_init__(self) -> None:
        _check(self.alpha, self.p)

    def make_params(self, seed: int, epoch: int, step: int, batch_size: int) -> MixParams:
        """Draw the parameters of one global batch."""
        random = _generator(seed, epoch, step)
        partner = torch.from_numpy(random.permutation(batch_size))
        lam = _draw_lam(random, self.alpha, self.p)
        half = (1 - lam) ** 0.5 / 2
        y, x = random.random(2).tolist()
        return MixParams(partner, lam, (max(y - half, 0), max(x - half, 0), min(y + half, 1), min(x + half, 1)))

    def __call__(self, inputs: Tensor, partners: Tensor, params: MixParams) -> tuple[Tensor, float]:
        """Return the mixed images and the exact fraction of original pixels."""
        assert params.box is not None
        height, width = inputs.shape[-2:]
        top, left, bottom, right = (
            round(edge * length) for edge, length in zip(params.box, (height, width) * 2, strict=True)
        )
        mixed = inputs.clone()
        mixed[..., top:bottom, left:right] = partners[..., top:bottom, left:right]
        return mixed, 1 - (bottom - top) * (right - left) / (height * width)


def soft_targets(labels_B: Tensor, partner_labels_B: Tensor, lam: float, num_classes: int) -> Tensor:
    """Return targets with weight λ on the own class and 1 − λ on the partner's, (B, K).

    >>> soft_targets(torch.tensor([0]), torch.tensor([2]), 0.75, 3)
    tensor([[0.7500, 0.0000, 0.2500]])
    """
    own, other = (F.one_hot(labels, num_classes).float() for labels in (labels_B, partner_labels_B))
    return lam * own + (1 - lam) * other


def _mixup(*, alpha: float = 0.2, p: float = 1.0) -> Mix:
    return Mixup(alpha, p)


def _cutmix(*, alpha: float = 1.0, p: float = 1.0) -> Mix:
    return CutMix(alpha, p)


MIXES: Registry[Mix] = Registry(
    "mix",
    [
        Entry("mixup", "Weighted mean of two samples (Zhang et al., 2018).", _mixup),
        Entry("cutmix", "Box pasted from another image (Yun et al., 2019).", _cutmix),
    ],
)


def build_mix(text: str) -> Mix:
    """Build a mixing method by name.

    >>> build_mix("mixup:alpha=0.4")
    Mixup(alpha=0.4, p=1.0)
    """
    return MIXES.build(text)


def _generator(seed: int, epoch: int, step: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=stream_key(seed, epoch, f"mix/{step}")))


def _draw_lam(random: np.random.Generator, alpha: float, p: float) -> float:
    lam = float(random.beta(alpha, alpha))
    return lam if float(random.random()) < p else 1.0


def _check(alpha: float, p: float) -> None:
    if not alpha > 0:
        raise ValueError(f"alpha must be positive, got {alpha}.")
    if not 0 < p <= 1:
        raise ValueError(f"p must be in (0, 1], got {p}.")
