import pytest
import torch
from torch import Tensor, nn

from classgap.models import interpolate_weights


def trained(seed: int, batches: int) -> dict[str, Tensor]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    for _ in range(batches):
        model(torch.randn(4, 3))
    return model.state_dict()


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_every_entry_is_mixed_and_fits_the_model(alpha: float) -> None:
    zero_shot, fine_tuned = trained(1, 4), trained(2, 9)
    mixed = interpolate_weights(zero_shot, fine_tuned, alpha)
    for name, value in mixed.items():
        pairs = zip(zero_shot[name].flatten().tolist(), fine_tuned[name].flatten().tolist(), strict=True)
        expected = torch.tensor([(1 - alpha) * a + alpha * b for a, b in pairs])
        torch.testing.assert_close(value.flatten(), expected.to(value.dtype))
        assert value.dtype == zero_shot[name].dtype
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    model.load_state_dict(mixed)
    assert model[1].num_batches_tracked.item() == {0.0: 4, 0.6: 7, 1.0: 9}[alpha]


def test_it_is_off_by_default_and_shares_no_memory() -> None:
    zero_shot, fine_tuned = trained(1, 1), trained(2, 1)
    mixed = interpolate_weights(zero_shot, fine_tuned)
    assert all(torch.equal(mixed[name], fine_tuned[name]) for name in fine_tuned)
    mixed["0.weight"].zero_()
    assert fine_tuned["0.weight"].any()


def test_invalid_arguments_are_rejected() -> None:
    one, other = {"w": torch.zeros(2)}, {"w": torch.zeros(3)}
    with pytest.raises(ValueError, match=r"'w' has shape \(2,\) .* \(3,\)"):
        interpolate_weights(one, other)
    with pytest.raises(ValueError, match="only fine_tuned has 'b'"):
        interpolate_weights(one, one | {"b": torch.zeros(1)})
    with pytest.raises(ValueError, match=r"alpha must be in .* got 1\.5"):
        interpolate_weights(one, one, 1.5)
