import pytest
import torch

from classgap.functional import group_by_class, pull
from classgap.functional.class_groups import group_by_every_class
from classgap.functional.listed_pairs import list_pairs
from classgap.losses import MR2Loss
from classgap.state import ClassStats

LABELS = [2, 0, 2, -1, 1, 2, 0, 2, 3, -1, 3]


@pytest.fixture(params=["in a square", "sorted"], autouse=True)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to find the pairs must find the same."""
    if request.param == "sorted":
        monkeypatch.setattr("classgap.functional.listed_pairs.SQUARE_ELEMENTS", 0)


def slow_pairs(first: int, anchors: int) -> set[tuple[int, int]]:
    rows = range(first, first + anchors)
    pairs = {(i, j) for i in range(11) for j in range(i + 1, 11) if LABELS[i] == LABELS[j] >= 0}
    return {(i, j) for i, j in pairs if i in rows or j in rows}


@pytest.mark.parametrize(("first", "anchors"), [(0, 11), (0, 4), (2, 5), (8, 3), (9, 1), (4, 0)])
def test_pairs_match_two_loops(first: int, anchors: int) -> None:
    features = torch.randn(11, 3, requires_grad=True)
    pairs = list_pairs(features, group_by_class(torch.tensor(LABELS), 5), anchors=anchors, first=first)
    rows = list(zip(pairs.one_P.tolist(), pairs.other_P.tolist(), strict=True))
    assert {tuple(sorted(pair)) for pair in rows} == slow_pairs(first, anchors)
    assert len(rows) == len(slow_pairs(first, anchors))  # each once
    distances = [(features[i] - features[j]).square().sum().item() for i, j in rows]
    torch.testing.assert_close(pairs.distance_P, torch.tensor(distances))
    assert not pairs.distance_P.requires_grad


def test_a_batch_without_samples_has_no_pairs() -> None:
    groups = group_by_class(torch.empty(0, dtype=torch.long), 5)
    assert len(list_pairs(torch.empty(0, 3), groups, anchors=0).one_P) == 0


def test_too_wide_pairs_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    features, groups = torch.randn(4, 3), group_by_class(torch.zeros(4, dtype=torch.long), 1)
    monkeypatch.setattr("classgap.functional.listed_pairs.LISTED_ELEMENTS", 6 * 3)
    assert list_pairs(features, groups, anchors=4) is not None
    monkeypatch.setattr("classgap.functional.listed_pairs.LISTED_ELEMENTS", 6 * 3 - 1)
    assert list_pairs(features, groups, anchors=4) is None


def test_pairs_of_others_count_while_they_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("classgap.functional.listed_pairs.SQUARE_ELEMENTS", 0)
    features, groups = torch.randn(4, 3), group_by_class(torch.zeros(4, dtype=torch.long), 1)
    monkeypatch.setattr("classgap.functional.listed_pairs.LISTED_PAIRS", 6)
    assert len(list_pairs(features, groups, anchors=2).one_P) == 5
    monkeypatch.setattr("classgap.functional.listed_pairs.LISTED_PAIRS", 5)
    assert list_pairs(features, groups, anchors=2) is None
    assert list_pairs(features, groups, anchors=4) is not None  # none of these belongs to others


@pytest.mark.parametrize("labels", [LABELS, [0] * 11, list(range(11)), [-1] * 11])
@pytest.mark.parametrize("unbiased", [True, False])
def test_spread_by_pairs_is_the_spread_around_the_means(labels: list[int], unbiased: bool) -> None:
    groups = group_by_class(torch.tensor(labels), 11)
    by_pairs, by_means = (ClassStats(11, unbiased=unbiased).double() for _ in range(2))
    for _ in range(2):
        features = 50 + torch.randn(11, 3, dtype=torch.float64)
        by_pairs.update(features, groups, pairs=list_pairs(features, groups, anchors=11))
        by_means.update(features, groups)
    for name, values in by_means.state_dict().items():
        torch.testing.assert_close(by_pairs.state_dict()[name], values)


@pytest.mark.parametrize("unbiased", [True, False])
def test_statistics_by_groups_of_every_class_are_those_of_the_classes_present(unbiased: bool) -> None:
    every, present = (ClassStats(6, unbiased=unbiased) for _ in range(2))
    for labels in ([0, 0, 2, 5], [2, 2, 2, 0], [4, 5, 5, 4], [3, 3, 3, 3]):
        features, labels = 50 + torch.randn(4, 3), torch.tensor(labels)
        groups = group_by_every_class(labels, 6)
        every.update(features, groups, pairs=list_pairs(features, groups, anchors=4))
        present.update(features, group_by_class(labels, 6))
        for name, values in present.state_dict().items():
            torch.testing.assert_close(every.state_dict()[name], values)


@pytest.mark.parametrize("ignored", [-1, -2])  # with and without samples that are left out
def test_the_loss_is_the_same_with_and_without_a_list(ignored: int, monkeypatch: pytest.MonkeyPatch) -> None:
    targets = torch.tensor([label if ignored == -1 else max(label, 0) for label in LABELS])
    logits, features = torch.randn(11, 5), torch.randn(11, 3, requires_grad=True)
    values, gradients = [], []
    for limit in (2**20, -1):
        monkeypatch.setattr("classgap.functional.listed_pairs.LISTED_ELEMENTS", limit)
        loss = MR2Loss(5, strength=0.5, ignore_index=ignored)
        values.append(loss(logits, targets, features=features) + loss(logits, targets, features=2 * features))
        gradients += torch.autograd.grad(values[-1], features)
    torch.testing.assert_close(*values)
    torch.testing.assert_close(*gradients)


def test_terms_can_be_changed_in_place() -> None:
    groups = group_by_class(torch.tensor([0, 0, 1]), 2)
    features = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    slack = torch.zeros(3, dtype=torch.float64)
    expected = pull(features, groups, slack).detach()
    torch.testing.assert_close(pull(features, groups, slack).mul_(2), 2 * expected)
