import pytest
import torch

from classgap.functional import (
    SamplePairs,
    distances,
    group_by_class,
    hardest_triplets,
    mahalanobis_distances,
    nearest_centers,
    on_sphere,
    prototype_contrast,
    score_contrast,
    spread_out,
    supervised_contrast,
    widest_ranges,
)

LABELS = torch.tensor([2, 0, -1, 2, 1, 0, 2])
GROUPS = group_by_class(LABELS, num_classes=4)


def test_pairs_match_a_loop() -> None:
    rows = slice(2, 6)
    pairs = SamplePairs.from_labels(LABELS, rows)
    labels = LABELS.tolist()
    for b, i in enumerate(range(7)[rows]):
        for j in range(7):
            counts = i != j and labels[i] >= 0 and labels[j] >= 0
            assert pairs.positive_BN[b, j] == (counts and labels[i] == labels[j])
            assert pairs.negative_BN[b, j] == (counts and labels[i] != labels[j])
            assert pairs.other_BN[b, j] == counts


def test_distances_of_far_away_neighbors_keep_their_digits() -> None:
    rows = torch.tensor([[1e4, 0.0], [1e4 + 0.5, 0.0]])
    torch.testing.assert_close(distances(rows, rows), torch.tensor([[0.0, 0.5], [0.5, 0.0]]), rtol=0, atol=0)


@pytest.mark.parametrize("squared", [False, True])
def test_distance_zero_has_gradient_zero(squared: bool) -> None:
    rows = torch.ones(3, 2, requires_grad=True)
    distances(rows, rows, squared=squared).sum().backward()
    assert not rows.grad.any()


def test_a_tiny_feature_has_no_direction_and_no_gradient() -> None:
    rows = torch.tensor([[3.0, 4.0], [1e-20, 0.0]], requires_grad=True)
    unit = on_sphere(rows)
    torch.testing.assert_close(unit, torch.tensor([[0.6, 0.8], [0.0, 0.0]]))
    unit.sum().backward()
    assert not rows.grad[1].any()


FORMULAS = {
    "supervised_contrast": lambda f: supervised_contrast(
        f[1:5], f, SamplePairs.from_labels(LABELS, slice(1, 5)), temperature=0.5
    ),
    "prototype_contrast": lambda f: prototype_contrast(f, GROUPS, torch.eye(3, 4).double(), torch.ones(3).double()),
    "prototype_contrast_squared": lambda f: prototype_contrast(
        f, GROUPS, torch.eye(3, 4).double(), torch.ones(3).double(), rows=slice(2, 6), squared=True
    ),
    "score_contrast": lambda f: score_contrast(f, LABELS, f, ~torch.eye(7, dtype=torch.bool)),
    "hardest_triplets": lambda f: hardest_triplets(distances(f, f), SamplePairs.from_labels(LABELS), margin=2.0),
    "soft_triplets": lambda f: hardest_triplets(distances(f, f), SamplePairs.from_labels(LABELS), margin=None),
    "widest_ranges": lambda f: widest_ranges(distances(f, f), GROUPS, 2),
    "nearest_centers": lambda f: nearest_centers(GROUPS.mean(f), GROUPS, squared=True),
    "spread_out": lambda f: spread_out(on_sphere(f), SamplePairs.from_labels(LABELS).negative_BN),
    "mahalanobis_distances": lambda f: mahalanobis_distances(f[:4], f[4:], f[4:].sin()),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_gradients(name: str) -> None:
    features = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(FORMULAS[name], features)


def test_mahalanobis_distances_match_a_loop() -> None:
    features, means, log_variance = torch.randn(3, 5), torch.randn(2, 5) + 3, torch.randn(2, 5)
    found = mahalanobis_distances(features, means, log_variance)
    for b in range(3):
        for k in range(2):
            terms = zip(features[b].tolist(), means[k].tolist(), log_variance[k].exp().tolist(), strict=True)
            assert found[b, k].item() == pytest.approx(sum((f - m) ** 2 / v for f, m, v in terms) / 2, rel=1e-4)
