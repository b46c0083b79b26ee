"""The head of a network that someone else wrote, and what is frozen around it."""

from __future__ import annotations

from typing import Self

from torch import Tensor, nn

from classgap.features import FeatureTap


def head_name(model: nn.Module) -> str:
    """The dotted name of the layer that makes the logits.

    Raises:
        ValueError: if there is no such single layer.

    >>> head_name(nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3)))
    '2'
    """
    with FeatureTap(model) as tap:
        head = tap.head
    return next(name for name, layer in model.named_modules() if layer is head)


def head_of(model: nn.Module) -> nn.Module:
    """The layer that makes the logits.

    >>> head_of(nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3)))
    Linear(in_features=4, out_features=3, bias=True)
    """
    return model.get_submodule(head_name(model))


def linear_head(model: nn.Module, wanted_by: str) -> nn.Linear:
    """The head, for those who need it to be linear.

    Raises:
        ValueError: if it is another layer.
    """
    head = head_of(model)
    if type(head) is not nn.Linear:
        raise ValueError(
            f"{wanted_by} needs a linear head, but this model ends in {head}; choose a model and a loss with a linear "
            f"head, or do without {wanted_by}."
        )
    return head


def exchange_head(model: nn.Module, head: nn.Module) -> None:
    """Put ``head`` where the model's head is. A tap has to be made anew; the engine does so before a stage begins.

    >>> model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3))
    >>> exchange_head(model, nn.Linear(4, 3, bias=False))
    >>> model[-1]
    Linear(in_features=4, out_features=3, bias=False)
    """
    place, _, name = head_name(model).rpartition(".")
    setattr(model.get_submodule(place), name, head)


class Frozen(nn.Module):
    """A model of which only the head learns: linear probing.

    The rest has no gradients and stays in evaluation mode, even after ``train()``: batch norm uses what it learned
    before, and dropout is off.

    Args:
        module: the model; its parameters' ``requires_grad`` is changed.

    >>> probe = Frozen(nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3))).train()
    >>> [(layer.training, layer.weight.requires_grad) for layer in probe.module]
    [(False, False), (True, True)]
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module.requires_grad_(False)
        self._head_name = head_name(module)
        self.head.requires_grad_(True)
        self.train(module.training)

    @property
    def head(self) -> nn.Module:
        """The layer that learns."""
        return self.module.get_submodule(self._head_name)

    def forward(self, inputs: Tensor) -> Tensor:
        """The model's logits, (B, K)."""
        return self.module(inputs)

    def train(self, mode: bool = True) -> Self:
        """Switch the head to training or evaluation mode; the rest stays in the latter."""
        self.training = mode
        self.module.eval()
        self.head.train(mode)
        return self
