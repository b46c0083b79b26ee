import torch

from classgap.functional import group_by_class
from classgap.functional.class_groups import group_by_every_class

LABELS = torch.tensor([3, 0, 3, -1, 5, 3, 0])
VALUES = torch.arange(14.0).view(7, 2)


def slow_mean(k: int) -> torch.Tensor:
    rows = [VALUES[i] for i, label in enumerate(LABELS.tolist()) if label == k]
    return torch.stack(rows).mean(dim=0)


def test_means_match_a_loop() -> None:
    groups = group_by_class(LABELS, num_classes=6)
    assert groups.classes_U.tolist() == [0, 3, 5]
    assert groups.counts_U.tolist() == [2, 3, 1]
    torch.testing.assert_close(groups.mean(VALUES), torch.stack([slow_mean(k) for k in (0, 3, 5)]))


def test_samples_without_a_class_are_excluded_and_get_zero() -> None:
    groups = group_by_class(LABELS, num_classes=6)
    back = groups.of_samples(groups.mean(VALUES))
    torch.testing.assert_close(back[0], slow_mean(3))
    assert not back[3].any()
    assert groups.of_samples(groups.counts_U, slice(2, 5)).tolist() == [3, 0, 1]


def test_partners_are_the_samples_of_classes_with_several() -> None:
    rows, groups = group_by_class(LABELS, num_classes=6).with_partners()
    assert rows.tolist() == [0, 1, 2, 5, 6]
    assert groups.counts_U.tolist() == [2, 3, 1]
    torch.testing.assert_close(groups.mean(VALUES[rows])[:2], torch.stack([slow_mean(k) for k in (0, 3)]))
    assert not groups.sum(VALUES[rows])[2].any()  # a class of one has lost it


def test_centered_samples_have_zero_class_means_and_plain_gradients() -> None:
    groups = group_by_class(LABELS, num_classes=6)
    values = VALUES.clone().requires_grad_()
    centered = groups.centered(values)
    torch.testing.assert_close(groups.mean(centered), torch.zeros(3, 2))
    centered.sum().backward()
    assert values.grad.eq(1).all()


def test_compiled_groups_list_every_class() -> None:
    def means(labels: torch.Tensor) -> torch.Tensor:
        return group_by_class(labels, num_classes=6).mean(VALUES)

    result = torch.compile(means, fullgraph=True, backend="eager")(LABELS)
    expected = torch.zeros(6, 2)
    expected[[0, 3, 5]] = group_by_class(LABELS, num_classes=6).mean(VALUES)
    torch.testing.assert_close(result, expected)


def test_nothing_at_all() -> None:
    groups = group_by_class(torch.empty(0, dtype=torch.long), num_classes=4)
    assert groups.mean(torch.empty(0, 2)).shape == (0, 2)


def test_sample_factors_give_the_weighted_sum_of_class_means() -> None:
    labels, values = torch.tensor([3, 1, 3, -1, 3, 1]), torch.tensor([1.0, 5.0, 3.0, 100.0, 2.0, 7.0])
    groups = group_by_class(labels, num_classes=5)
    carried = values * groups.sample_factors(torch.tensor([0.5, 2.0]))
    assert carried[3] == 0
    torch.testing.assert_close(carried.sum() / 5, torch.tensor(0.5 * 6.0 + 2.0 * 2.0))


def test_groups_of_every_class_have_the_same_sums_and_some_are_empty() -> None:
    labels, values = LABELS[LABELS >= 0], VALUES[LABELS >= 0]
    every, present = group_by_every_class(labels, num_classes=7), group_by_class(labels, num_classes=7)
    assert every.counts_U.tolist() == [2, 0, 0, 3, 0, 1, 0]
    torch.testing.assert_close(every.mean(values)[present.classes_U], present.mean(values))
    assert not every.mean(values)[[1, 2, 4, 6]].any()
    torch.testing.assert_close(every.centered(values), present.centered(values))


def test_of_classes_are_the_entries_of_the_groups() -> None:
    values_K = torch.arange(6.0)
    assert group_by_class(LABELS, num_classes=6).of_classes(values_K).tolist() == [0.0, 3.0, 5.0]
    assert group_by_every_class(torch.tensor([4, 4]), num_classes=6).of_classes(values_K).tolist() == values_K.tolist()
