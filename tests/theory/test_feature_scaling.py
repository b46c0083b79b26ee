import pytest
import torch
from torch import nn

from classgap.theory.lmdl import class_dispersion, class_margin, parameter_change, scale_parameters


def network(seed: int, bias: bool) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3, bias=bias), nn.ReLU(), nn.Linear(3, 5)).double()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("factor", [0.25, 3.0])
def test_proposition_4_4_on_a_network(factor, bias):
    model, scaled = network(0, bias), network(0, bias)
    changed = scale_parameters(scaled[2].weight, scaled[2].bias, scaled[4].bias, factor=factor)
    with torch.no_grad():
        for parameter, new in zip((scaled[2].weight, scaled[2].bias, scaled[4].bias), changed, strict=True):
            assert (parameter is None) == (new is None)
            if parameter is not None:
                parameter.copy_(new)
    x, y = torch.randn(60, 4, dtype=torch.float64), torch.arange(60) % 5
    torch.testing.assert_close(scaled(x), factor * model(x))
    assert (scaled(x).argmax(1) == model(x).argmax(1)).all()
    before, after = model[:4](x).detach(), scaled[:4](x).detach()
    torch.testing.assert_close(class_dispersion(after, y, 5), factor * class_dispersion(before, y, 5))
    torch.testing.assert_close(
        class_margin(after, y, scaled[4].weight, scaled[4].bias),
        factor * class_margin(before, y, model[4].weight, model[4].bias),
    )


def test_corollary_4_1_wider_and_narrower_move_in_opposite_directions():
    layer, head = nn.Linear(4, 3), nn.Linear(3, 5)
    given = (layer.weight, layer.bias, head.bias)
    u = torch.cat([p.flatten() for p in given])
    for factor in (0.2, 0.5, 2.0, 7.0):
        torch.testing.assert_close(parameter_change(*given, factor=factor), (factor - 1) * u)
    wider, narrower = (parameter_change(*given, factor=f) for f in (7.0, 0.2))
    assert torch.cosine_similarity(wider, narrower, dim=0).item() == pytest.approx(-1)


def test_the_factor_must_be_positive():
    with pytest.raises(ValueError, match="factor must be"):
        scale_parameters(torch.ones(1, 1), None, None, factor=-1.0)
