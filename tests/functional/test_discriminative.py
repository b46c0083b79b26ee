import pytest
import torch

from classgap.functional import boundary_shortfall, compactness, signed_boundary_distance

HEAD = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
POINT = torch.tensor([[3.0, 0.0]])


def test_worked_examples() -> None:
    own = torch.tensor([0])
    assert signed_boundary_distance(POINT, own, HEAD)[0, 1].item() == 3
    assert boundary_shortfall(POINT, own, HEAD, distance=6.0).item() == 3
    assert boundary_shortfall(POINT, own, HEAD, distance=1.5).item() == 0
    assert boundary_shortfall(POINT, torch.tensor([1]), HEAD, distance=1.5).item() == 4.5  # on the wrong side
    assert compactness(torch.tensor([[0.0, 1.5]]), torch.zeros(1, 2), 0.5).item() == 1


def test_distance_is_that_of_the_projection_on_the_boundary() -> None:
    weight, bias = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    points, classes = torch.randn(5, 4, dtype=torch.float64), torch.tensor([0, 1, 2, 0, 1])
    signed = signed_boundary_distance(points, classes, weight, bias)
    for u, c in enumerate(classes.tolist()):
        for i in range(3):
            if i == c:
                assert signed[u, i] == torch.inf
                continue
            normal = weight[c] - weight[i]
            # Walk from the point along the unit normal by the claimed distance: the two scores must tie there.
            foot = points[u] - signed[u, i] * normal / normal.norm()
            scores = weight @ foot + bias
            torch.testing.assert_close(scores[c], scores[i])


def test_gradients_of_all_inputs() -> None:
    tensors = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((4, 3), (5, 3), (5,))]
    classes = torch.tensor([0, 1, 4, 2])
    assert torch.autograd.gradcheck(lambda m, w, b: boundary_shortfall(m, classes, w, b, distance=6.0), tensors)


@pytest.mark.parametrize("weight", [torch.zeros(3, 2), torch.ones(3, 2)])
def test_rows_that_coincide_have_no_boundary_and_no_gradient(weight: torch.Tensor) -> None:
    weight = weight.clone().requires_grad_()
    value = boundary_shortfall(POINT, torch.tensor([0]), weight, distance=6.0)
    assert value.item() == 0
    value.sum().backward()
    assert not weight.grad.any()


def test_similar_rows_keep_an_exact_distance() -> None:
    weight = torch.tensor([[1000.0, 0.0], [1000.0, 0.125]])
    signed = signed_boundary_distance(torch.tensor([[7.0, -5.0]]), torch.tensor([0]), weight)
    assert signed[0, 1].item() == 5.0


def test_compactness_at_the_center_has_a_zero_gradient() -> None:
    features = torch.zeros(1, 3, requires_grad=True)
    compactness(features, torch.zeros(1, 3), 0.5).sum().backward()
    assert features.grad.tolist() == [[0.0, 0.0, 0.0]]
