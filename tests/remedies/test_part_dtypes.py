"""Parts take the inputs of any precision, whatever the precision of their own values."""

import pytest
import torch

from classgap.remedies.modules import ClassAffine, ExpectedCost, Head, MeanProbability, Part

RNG = torch.Generator().manual_seed(0)
SCORES = torch.randn(6, 3, generator=RNG, dtype=torch.float64)
PARTS: dict[str, tuple[Part, torch.Tensor]] = {
    "affine": (ClassAffine(torch.tensor([1.0, 0.5, 2.0]), torch.tensor([0.0, 1.0, -1.0])), SCORES),
    "cost": (ExpectedCost(torch.rand(3, 3, generator=RNG)), SCORES),
    "head": (Head(torch.randn(4, 3, generator=RNG), torch.randn(4, generator=RNG)), SCORES),
    "mean": (MeanProbability(), torch.stack([SCORES, SCORES.flip(0)])),
}


@pytest.mark.parametrize("name", PARTS)
def test_double_inputs_give_the_values_of_single_ones(name: str):
    part, inputs = PARTS[name]
    torch.testing.assert_close(part(inputs).float(), part(inputs.float()), rtol=1e-5, atol=1e-6)
