"""Parameters that a loss owns: given to the optimizer, and kept equal on all processes."""

from __future__ import annotations

from torch import nn
from torch.optim import Optimizer

from classgap.distributed import average_gradients


def train_own_parameters(
    loss: nn.Module, optimizer: Optimizer, *, lr: float | None = None, weight_decay: float = 0.0
) -> None:
    """Let ``optimizer`` train the parameters that a loss owns (centers, variances, …), in a group of their own.

    Without this they would stay as they are: a model's optimizer knows only the model. With several processes their
    gradients are averaged, as DistributedDataParallel does for the model's. Call it once, before the first step. They
    are saved with ``loss.state_dict()``. A loss without parameters is left as it is.

    Args:
        loss: any loss.
        optimizer: the one that trains the model.
        lr: their learning rate; the optimizer's default if not given.
        weight_decay: theirs; pulling centers toward 0 is rarely meant.

    >>> import torch
    >>> loss = nn.PReLU()  # has one parameter
    >>> optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    >>> train_own_parameters(loss, optimizer, lr=0.5)
    >>> [group["lr"] for group in optimizer.param_groups]
    [0.1, 0.5]
    """
    own = [parameter for parameter in loss.parameters() if parameter.requires_grad]
    if not own:
        return
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    if any(id(parameter) in held for parameter in own):
        raise ValueError("the optimizer already holds parameters of this loss: call train_own_parameters once, or not.")
    settings: dict[str, float] = {"weight_decay": weight_decay}
    if lr is not None:
        settings["lr"] = lr
    optimizer.add_param_group({"params": own, **settings})
    average_gradients(loss)
