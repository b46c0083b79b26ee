"""Sharded models (FSDP2): the gradient of two processes is that of one on the global batch."""

import pytest
import torch
from torch import Tensor, nn

from classgap.distributed import rank, world_size
from classgap.features import FeatureTap
from classgap.losses import ELMLoss, MR2Loss
from classgap.testing import Processes

LOSSES = {"mr2": lambda: MR2Loss(3, strength=0.5), "elm": lambda: ELMLoss([20, 10, 5], strength=0.5, slack=1.0)}


def gradients(name: str) -> tuple[float, list[Tensor]]:
    """Loss and gradients of a step; sharded if there are several processes."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 6), nn.ReLU(), nn.Linear(6, 3))
    x, y = torch.randn(13, 8), torch.arange(13) % 3
    mine = slice(None)
    if world_size() > 1:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (world_size(),))
        fully_shard(model[0], mesh=mesh)
        fully_shard(model, mesh=mesh)
        mine = slice(0, 6) if rank() == 0 else slice(6, 13)
    tap = FeatureTap(model)
    value = LOSSES[name]()(model(x[mine]), y[mine], features=tap.features)
    value.backward()
    whole = [parameter.grad for parameter in model.parameters()]
    return value.item(), [grad.full_tensor() if hasattr(grad, "full_tensor") else grad for grad in whole]


@pytest.mark.parametrize("name", LOSSES)
def test_sharded_models(name: str, processes: Processes) -> None:
    fsdp = pytest.importorskip("torch.distributed.fsdp")
    if not hasattr(fsdp, "fully_shard"):
        pytest.skip("this torch has no FSDP2")
    value, expected = gradients(name)
    for found, grads in processes.run(gradients, name):
        assert found == pytest.approx(value)
        for grad, wanted in zip(grads, expected, strict=True):
            torch.testing.assert_close(grad, wanted)
