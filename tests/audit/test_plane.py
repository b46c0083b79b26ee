import numpy as np
import pytest

from classgap.audit.geometry.plane import PlaneGrid, decision_boundary


def test_the_boundary_of_two_linear_scores_is_a_straight_line():
    grid = PlaneGrid.around([[-2.0, -1.0], [3.0, 4.0]], steps=23)
    weight, bias = np.array([[1.0, -0.5], [-0.3, 0.8]]), np.array([0.2, -0.4])
    segments = decision_boundary(grid, grid.points_M2 @ weight.T + bias)
    ends = np.array(segments).reshape(-1, 2)
    lead = ends @ (weight[0] - weight[1]) + bias[0] - bias[1]
    np.testing.assert_allclose(lead, 0, atol=1e-12)  # linear interpolation is exact
    lengths = np.linalg.norm(np.diff(np.array(segments), axis=1)[:, 0], axis=1)
    spans = ends.max(axis=0) - ends.min(axis=0)
    assert lengths.sum() == pytest.approx(np.linalg.norm(spans))  # no gap and no overlap


def test_the_boundary_of_a_circle_has_its_length():
    grid = PlaneGrid.around([[-2.0, -2.0], [2.0, 2.0]], steps=80)
    inside = 1 - (grid.points_M2**2).sum(axis=1)
    segments = np.array(decision_boundary(grid, np.stack([inside, -inside], axis=1)))
    np.testing.assert_allclose(np.linalg.norm(segments, axis=2), 1, atol=2e-3)
    assert np.linalg.norm(segments[:, 0] - segments[:, 1], axis=1).sum() == pytest.approx(2 * np.pi, rel=1e-2)


def test_three_classes_change_across_every_segment():
    grid = PlaneGrid.around([[-1.0, -1.0], [1.0, 1.0]], steps=40)
    centers = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])

    def scores(points):
        return -((points[:, None] - centers) ** 2).sum(axis=2)

    for start, end in decision_boundary(grid, scores(grid.points_M2)):
        middle = (np.array(start) + np.array(end)) / 2
        top = np.sort(scores(middle[None])[0])
        assert top[-1] - top[-2] < 0.1  # the two best classes are close on the boundary


def test_one_class_everywhere_has_no_boundary_and_equal_points_have_a_grid():
    grid = PlaneGrid.around([[1.0, 1.0], [1.0, 1.0]], steps=4)
    assert grid.x_W[0] < 1 < grid.x_W[-1]
    assert decision_boundary(grid, np.tile([2.0, 1.0], (16, 1))) == []


@pytest.mark.parametrize("scores", [np.zeros((4, 1)), np.zeros((3, 2)), np.zeros(4)])
def test_scores_of_another_shape_are_rejected(scores):
    with pytest.raises(ValueError, match="scores_MK must have 4 rows"):
        decision_boundary(PlaneGrid(np.array([0.0, 1.0]), np.array([0.0, 1.0])), scores)


def test_points_outside_the_plane_are_rejected():
    with pytest.raises(ValueError, match="points_N2 must be rows of two"):
        PlaneGrid.around([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="steps must be"):
        PlaneGrid.around([[1.0, 2.0]], steps=1)


def test_logarithms_of_zero_are_rejected():
    grid = PlaneGrid(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match="scores_MK must be finite"):
        decision_boundary(grid, np.array([[0.0, -np.inf]] * 4))
