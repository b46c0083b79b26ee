import math

import pytest
import torch

from classgap.functional import group_by_class, pull, pull_with_force
from classgap.functional.pairwise_pull import _blocks  # the cutting rule has edge cases of its own


def slow_pull(features: torch.Tensor, labels: list[int], slack: list[float], first: int = 0) -> torch.Tensor:
    terms = []
    for i, allowed in enumerate(slack, start=first):
        total = 1.0
        for j, other in enumerate(features):
            if j != i and labels[j] == labels[i] and labels[i] >= 0:
                total = total + torch.exp((features[i] - other).square().sum() - allowed)
        terms.append(torch.log(torch.as_tensor(total, dtype=features.dtype)))
    return torch.stack(terms)


@pytest.fixture(params=["listed", "sorted", "sorted in tiny blocks"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every way through the kernel must give the same."""
    import sys

    module = sys.modules["classgap.functional.pairwise_pull"]
    if request.param != "listed":
        monkeypatch.setattr("classgap.functional.listed_pairs.LISTED_ELEMENTS", -1)
    if request.param == "sorted in tiny blocks":
        monkeypatch.setattr(module, "BLOCK_ROWS", 2)
        monkeypatch.setattr(module, "BLOCK_ELEMENTS", 6)
    return request.param


LABELS = [2, 0, 2, -1, 1, 2, 0, 2, 3, -1, 3]


@pytest.mark.parametrize(("first", "count"), [(0, 11), (2, 5), (10, 1), (4, 0)])
def test_values_and_gradients_match_a_loop(path: str, first: int, count: int) -> None:
    features = torch.randn(11, 3, dtype=torch.float64, requires_grad=True)
    groups = group_by_class(torch.tensor(LABELS), num_classes=5)
    slack = torch.rand(count, dtype=torch.float64)
    terms = pull(features, groups, slack, first=first)
    if not count:
        assert terms.shape == (0,)
        return
    expected = slow_pull(features, LABELS, slack.tolist(), first)
    torch.testing.assert_close(terms, expected)
    weights = torch.randn(count, dtype=torch.float64)
    (ours,) = torch.autograd.grad((terms * weights).sum(), features)
    (theirs,) = torch.autograd.grad((expected * weights).sum(), features, materialize_grads=True)
    torch.testing.assert_close(ours, theirs)


def test_force_is_the_derivative_by_the_scale(path: str) -> None:
    features, step = torch.randn(11, 3, dtype=torch.float64), 1e-6
    groups = group_by_class(torch.tensor(LABELS), num_classes=5)
    slack = torch.rand(11, dtype=torch.float64)
    larger, smaller = (pull(features * (1 + sign * step), groups, slack) for sign in (1, -1))
    expected = (larger - smaller) / (2 * step)
    force = pull_with_force(features.requires_grad_(), groups, slack).force_B
    assert not force.requires_grad
    torch.testing.assert_close(force, expected, rtol=1e-6, atol=1e-6)


def test_gradcheck(path: str) -> None:
    features = torch.randn(11, 3, dtype=torch.float64, requires_grad=True)
    groups = group_by_class(torch.tensor(LABELS), num_classes=5)
    slack = torch.rand(11, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda f: pull(f, groups, slack), (features,))


def test_worked_examples(path: str) -> None:
    features = torch.tensor([[0.0, 0.0], [2.0, 0.0]])
    groups = group_by_class(torch.tensor([0, 0]), num_classes=1)
    for slack, expected in ((0.0, 4.018150), (2.0, 2.126928), (1.0, 3.048587)):
        torch.testing.assert_close(pull(features, groups, torch.full((2,), slack)), torch.full((2,), expected))


def test_one_sample_per_class_gives_zero(path: str) -> None:
    groups = group_by_class(torch.tensor([0, 1, 2]), num_classes=3)
    features = torch.randn(3, 2, requires_grad=True)
    terms = pull(features, groups, torch.zeros(3))
    assert terms.tolist() == [0.0, 0.0, 0.0]
    terms.sum().backward()
    assert not features.grad.any()


def test_far_pairs_do_not_overflow(path: str) -> None:
    features = torch.tensor([[0.0], [100.0], [-1000.0]], requires_grad=True)
    terms = pull(features, group_by_class(torch.tensor([0, 0, 0]), num_classes=1), torch.zeros(3))
    torch.testing.assert_close(terms, torch.tensor([1e6, 1.21e6, 1.21e6]))
    terms.sum().backward()
    assert features.grad.isfinite().all()


def test_close_pairs_far_from_the_origin_keep_their_distance(path: str) -> None:
    features = torch.tensor([[1e4, 1e4], [1e4, 1e4 + 0.0625], [-1e4, 0.0]])
    terms = pull(features, group_by_class(torch.tensor([0, 0, 1]), num_classes=2), torch.zeros(3))
    expected = math.log(1 + math.exp(0.0625**2))
    torch.testing.assert_close(terms, torch.tensor([expected, expected, 0.0]), rtol=1e-6, atol=0)


def test_compiled_path_equals_the_eager_one() -> None:
    features = torch.randn(11, 3, requires_grad=True)
    labels, slack = torch.tensor(LABELS), torch.rand(5)

    def value(features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return pull(features, group_by_class(labels, num_classes=5), slack, first=3)

    compiled = torch.compile(value, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(features, labels), value(features, labels))
    groups = group_by_class(labels, num_classes=5)
    forces = torch.compile(lambda f: pull_with_force(f, groups, slack, first=3).force_B, backend="eager")
    torch.testing.assert_close(forces(features), pull_with_force(features, groups, slack, first=3).force_B)
    (ours,) = torch.autograd.grad(compiled(features, labels).sum(), features)
    (theirs,) = torch.autograd.grad(value(features, labels).sum(), features)
    torch.testing.assert_close(ours, theirs)


def test_blocks_cover_every_anchor_once_and_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    module = sys.modules["classgap.functional.pairwise_pull"]
    monkeypatch.setattr(module, "BLOCK_ROWS", 4)
    monkeypatch.setattr(module, "BLOCK_ELEMENTS", 20)
    starts, ends = [0] * 10 + [10] * 3, [10] * 10 + [13] * 3
    blocks = _blocks(starts, ends)
    assert [row for rows, _ in blocks for row in range(rows.start, rows.stop)] == list(range(13))
    for rows, columns in blocks:
        size = rows.stop - rows.start
        assert size == 1 or size * (columns.stop - columns.start) <= 20
        assert columns.start == min(starts[rows])
        assert columns.stop == max(ends[rows])
