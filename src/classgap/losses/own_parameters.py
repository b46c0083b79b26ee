"""Training of the parameters of a loss, such as centers and variances."""

from __future__ import annotations

from torch import nn
from torch.optim import Optimizer

from classgap.distributed import average_gradients


def train_own_parameters(
    loss: nn.Module, optimizer: Optimizer, *, lr: float | None = None, weight_decay: float = 0.0
) -> None:
    """Add the parameters of a loss (centers, variances, …) to an optimizer, in a parameter group of their own.

    Without this call they are not trained, because the optimizer of a model only has the parameters of the model. With
    several processes their gradients are averaged, as DistributedDataParallel does for the model. Call it once, before
    the first step. ``loss.state_dict()`` contains the parameters. It does nothing for a loss without parameters.

    Args:
        loss: Any loss.
        optimizer: Optimizer of the model.
        lr: Learning rate of the parameters; that of the optimizer by default.
        weight_decay: Weight decay of the parameters.

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
        raise ValueError("The optimizer already holds parameters of this loss: call train_own_parameters only once.")
    settings: dict[str, float] = {"weight_decay": weight_decay}
    if lr is not None:
        settings["lr"] = lr
    optimizer.add_param_group({"params": own, **settings})
    average_gradients(loss)
