"""The estimate against divergences that are known: by numerical integration, or by construction."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from classgap.theory.lmdl import class_divergence, layer_divergence


def normal_divergence(distance: float) -> float:
    """Jensen-Shannon divergence of N(0, 1) and N(distance, 1)."""

    def excess(x: float, own: float, other: float) -> float:
        p, q = norm.pdf(x, own), norm.pdf(x, other)
        return p * math.log(2 * p / (p + q))

    ends = (-8, distance + 8)
    return sum(quad(excess, *ends, args=pair)[0] for pair in ((0, distance), (distance, 0))) / 2


@pytest.mark.parametrize(
    ("distance", "sizes"), [(1.0, (600, 600)), (2.0, (600, 600)), (2.0, (900, 150)), (4.0, (600, 600))]
)
def test_the_estimate_is_close_to_the_divergence_of_two_normals_and_below_it(distance, sizes):
    rng = np.random.default_rng(0)
    features = np.concatenate([rng.normal(size=sizes[0]), rng.normal(distance, size=sizes[1])])[:, None]
    labels = torch.tensor([3] * sizes[0] + [5] * sizes[1])
    found = class_divergence(torch.from_numpy(features), labels, pair=(3, 5), k=40).item()
    exact = normal_divergence(distance)
    assert exact - 0.06 < found < exact + 0.03


def test_equal_distributions_have_none_and_other_classes_do_not_matter():
    rng = np.random.default_rng(1)
    features, labels = torch.from_numpy(rng.normal(size=(600, 2))), torch.arange(600) % 2
    assert class_divergence(features, labels, pair=(0, 1)).item() < 0.02
    more = torch.cat([features, torch.zeros(50, 2)])
    for other in (-1, 7):
        wider = torch.cat([labels, torch.full((50,), other)])
        assert class_divergence(more, wider, pair=(1, 0)) == class_divergence(features, labels, pair=(1, 0))


def test_theorem_6_3_bounds_an_earlier_layer_from_below():
    """A layer that keeps one of two columns: the earlier one has at least the divergence that the theorem states."""
    rng = np.random.default_rng(2)
    labels = torch.arange(400) % 2
    earlier = torch.from_numpy(rng.normal(size=(400, 2))) * 0.2 + torch.stack([labels, -labels], dim=1) * 4
    later = earlier[:, :1]
    centroids = torch.stack([later[labels == c].mean(0) for c in (0, 1)])
    stated = layer_divergence(later, labels, centroids, radius=0.3).divergence
    assert 0 < stated <= class_divergence(earlier, labels, pair=(0, 1), k=40) + 0.02


def test_identical_points_do_not_vote_for_themselves():
    labels = torch.tensor([0, 1] * 20)
    assert class_divergence(torch.zeros(40, 2), labels, pair=(0, 1)).item() < 0.1


@pytest.mark.parametrize("pair", [(0, 0), (0, 2), (-1, 0)])
def test_a_pair_without_samples_is_rejected(pair):
    with pytest.raises(ValueError, match=r"pair must be|at least two samples"):
        class_divergence(torch.randn(6, 2), torch.tensor([0, 1] * 3), pair=pair)
