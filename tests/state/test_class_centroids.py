import torch

from classgap.functional import group_by_class
from classgap.state import ClassCentroids


def test_the_first_batch_sets_the_mean_and_later_ones_update_it() -> None:
    centroids = ClassCentroids(3, 2, momentum=0.75)
    groups = group_by_class(torch.tensor([0, 2]), 3)
    first = torch.tensor([[4.0, 0.0], [0.0, 8.0]])
    assert centroids.blend(first, groups).equal(first)
    centroids.update(first, groups)
    assert centroids.seen.tolist() == [True, False, True]
    torch.testing.assert_close(centroids.blend(torch.zeros(2, 2), groups), 0.75 * first)


def test_gradient_flows_through_the_share_of_the_batch_mean() -> None:
    centroids = ClassCentroids(2, 1, momentum=0.75)
    groups = group_by_class(torch.tensor([0, 1]), 2)
    centroids.update(torch.tensor([[1.0]]), group_by_class(torch.tensor([0]), 2))
    means = torch.tensor([[2.0], [2.0]], requires_grad=True)
    centroids.blend(means, groups).sum().backward()
    assert means.grad.flatten().tolist() == [0.25, 1.0]


def test_a_batch_that_is_not_finite_changes_nothing() -> None:
    centroids = ClassCentroids(1, 1)
    groups = group_by_class(torch.tensor([0]), 1)
    centroids.update(torch.tensor([[torch.nan]]), groups, finite=torch.tensor(False))
    assert centroids.means.tolist() == [[0.0]]
    assert not centroids.seen.any()
