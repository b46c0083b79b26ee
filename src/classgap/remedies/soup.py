"""Weight averages of several runs ("model soups", Wortsman et al. 2022), with batch norm statistics of their own."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from classgap.remedies.networks import Network


@torch.no_grad()
def average_weights(networks: Sequence[Network]) -> Network:
    """Return a network whose weights are the means of the weights of networks of the same architecture.

    Statistics of batch norm are averaged too: recompute them with :func:`recompute_batch_norm`.

    >>> config = {"model": "linear", "num_classes": 2, "input_shape": [1], "head": "linear"}
    >>> a, b = Network.from_config(config), Network.from_config(config)
    >>> soup = average_weights([a, b])
    >>> torch.equal(soup.head.weight, (a.head.weight + b.head.weight) / 2)
    True
    """
    soup, states = copy.deepcopy(networks[0]), [network.state_dict() for network in networks]
    soup.load_state_dict({name: _mean([state[name] for state in states]) for name in states[0]})
    return soup


@torch.no_grad()
def recompute_batch_norm(network: nn.Module, batches: Iterable[Tensor]) -> None:
    """Set the statistics of batch norm layers to their means over batches, weighted by the size of the batches.

    Batches are normalized with their own statistics, as in training; dropout stays off.

    >>> norm = nn.BatchNorm1d(1)
    >>> recompute_batch_norm(norm, [torch.tensor([[1.0], [3.0]]), torch.tensor([[3.0], [3.0], [3.0], [7.0]])])
    >>> norm.running_mean, norm.momentum  # (2 · 2 + 4 · 4) / 6
    (tensor([3.3333]), 0.1)
    """
    layers = batch_norms(network)
    momenta, seen = [layer.momentum for layer in layers], 0
    for layer in layers:
        layer.reset_running_stats()
        layer.train()
    for inputs in batches:
        if len(inputs) < 2:  # has no variance
            continue
        seen += len(inputs)
        for layer in layers:
            layer.momentum = len(inputs) / seen
        network(inputs)
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
        layer.eval()


def batch_norms(network: nn.Module) -> list[_BatchNorm]:
    """Return the batch norm layers with running statistics."""
    return [each for each in network.modules() if isinstance(each, _BatchNorm) and each.track_running_stats]


def _mean(tensors: Sequence[Tensor]) -> Tensor:
    if not tensors[0].is_floating_point():  # counters
        return tensors[0]
    return torch.stack([each.double() for each in tensors]).mean(dim=0).to(tensors[0].dtype)
