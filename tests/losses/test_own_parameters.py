"""A loss's parameters are trained in a plain loop, on one process or two."""

import pytest
import torch
from torch import nn

from classgap.distributed import rank, world_size
from classgap.losses import CenterLoss, MR2Loss, train_own_parameters
from classgap.testing import Processes


def train_centers(steps: int) -> list[list[float]]:
    """Centers after some steps on a batch that all processes share, each taking its rows of it."""
    torch.manual_seed(rank())  # processes start from different centers unless someone sees to it
    loss = CenterLoss(3, 4, centers="trained", strength=1.0)
    if rank() == 0:
        with torch.no_grad():
            next(loss.parameters()).copy_(torch.arange(12.0).view(3, 4))
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.0)
    train_own_parameters(loss, optimizer, lr=0.3)
    generator = torch.Generator().manual_seed(0)
    features, labels = torch.randn(9, 4, generator=generator), torch.arange(9) % 3
    mine = slice(rank() * 5, 5 + rank() * 4) if world_size() > 1 else slice(None)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(torch.zeros(9, 3)[mine], labels[mine], features=features[mine]).backward()
        optimizer.step()
    return next(loss.parameters()).tolist()


def test_two_processes_train_the_same_parameters_as_one(processes: Processes) -> None:
    alone = torch.tensor(train_centers(3))
    first, second = (torch.tensor(each) for each in processes.run(train_centers, 3))
    assert not torch.allclose(alone, torch.arange(12.0).view(3, 4))
    torch.testing.assert_close(first, alone)
    torch.testing.assert_close(second, alone)


def test_a_loss_without_parameters_is_left_alone_and_a_second_call_is_rejected() -> None:
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    train_own_parameters(MR2Loss(3), optimizer)
    assert len(optimizer.param_groups) == 1
    loss = CenterLoss(3, 4, centers="trained")
    train_own_parameters(loss, optimizer)
    assert optimizer.param_groups[1]["lr"] == 0.1
    assert optimizer.param_groups[1]["weight_decay"] == 0
    with pytest.raises(ValueError, match="already holds parameters of this loss"):
        train_own_parameters(loss, optimizer)
