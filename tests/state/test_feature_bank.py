from collections import deque

import torch

from classgap.state import FeatureBank


def test_it_holds_the_latest_in_first_in_first_out_order() -> None:
    bank, expected = FeatureBank(5), deque(maxlen=5)
    for size in (2, 1, 4, 7, 3):  # one batch is larger than the bank
        features, labels = torch.randn(size, 3), torch.randint(9, (size,))
        bank.update(features, labels)
        expected.extend(zip(features.tolist(), labels.tolist(), strict=True))
        held = [(row, label) for row, label in zip(bank.features.tolist(), bank.labels.tolist(), strict=True)]
        assert sorted(entry for entry in held if entry[1] >= 0) == sorted(expected)


def test_joined_batch_comes_first_and_empty_places_have_no_class() -> None:
    bank = FeatureBank(3)
    features, labels = torch.randn(2, 4), torch.tensor([1, 0])
    assert bank.append_to(features, labels)[0].shape == (2, 4)
    bank.update(features, labels)
    joined, joined_labels = bank.append_to(features + 1, labels)
    assert joined[:2].equal(features + 1)
    assert joined_labels.tolist() == [1, 0, 1, 0, -1]


def test_state_restores_the_width_and_the_place_to_write() -> None:
    bank, twin = FeatureBank(4), FeatureBank(4)
    bank.update(torch.randn(3, 2), torch.tensor([0, 1, 2]))
    twin.load_state_dict(bank.state_dict())
    for each in (bank, twin):
        each.update(torch.ones(2, 2), torch.tensor([5, 6]))
    assert twin.features.equal(bank.features)
    assert twin.labels.tolist() == [6, 1, 2, 5]


def test_a_batch_that_is_not_finite_changes_nothing() -> None:
    bank = FeatureBank(2)
    bank.update(torch.ones(1, 1), torch.tensor([0]))
    bank.update(torch.full((1, 1), torch.nan), torch.tensor([1]), finite=torch.tensor(False))
    assert bank.labels.tolist() == [0, -1]
    assert bank.cursor == 1
    assert bank.features.isfinite().all()


def test_samples_without_a_class_push_nothing_out() -> None:
    bank = FeatureBank(2)
    bank.update(torch.ones(2, 1), torch.tensor([0, 1]))
    bank.update(torch.zeros(3, 1), torch.tensor([-1, -1, 4]))
    assert sorted(bank.labels.tolist()) == [1, 4]
