"""Find and replace the head of any network, and freeze everything else."""

from __future__ import annotations

from typing import Self

from torch import Tensor, nn

from classgap.features import FeatureTap


def head_name(model: nn.Module) -> str:
    """Return the dotted name of the layer that computes the logits.

    Raises:
        ValueError: If no single layer does.

    >>> head_name(nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3)))
    '2'
    """
    with FeatureTap(model) as tap:
        head = tap.head
    return next(name for name, layer in model.named_modules() if layer is head)


def head_of(model: nn.Module) -> nn.Module:
    """Return the layer that computes the logits.

    >>> head_of(nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3)))
    Linear(in_features=4, out_features=3, bias=True)
    """
    return model.get_submodule(head_name(model))


def linear_head(model: nn.Module, wanted_by: str) -> nn.Linear:
    """Return the head of a model, which must be linear.

    Args:
        model: Any network.
        wanted_by: Name of the caller, for the error message.

    Raises:
        ValueError: If the head is not an ``nn.Linear``.
    """
    head = head_of(model)
    if type(head) is not nn.Linear:
        raise ValueError(
            f"{wanted_by} requires a linear head, but the model has {head}. Choose a model and loss with one, or "
            f"remove {wanted_by}."
        )
    return head


def exchange_head(model: nn.Module, head: nn.Module) -> None:
    """Replace the head of a model. Create a new FeatureTap afterward; the engine does so before each stage.

    >>> model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3))
    >>> exchange_head(model, nn.Linear(4, 3, bias=False))
    >>> model[-1]
    Linear(in_features=4, out_features=3, bias=False)
    """
    place, _, name = head_name(model).rpartition(".")
    setattr(model.get_submodule(place), name, head)


class Frozen(nn.Module):
    """A model with all layers frozen except the head, for linear probing.

    Frozen layers stay in evaluation mode after ``train()``: batch norm uses its running statistics, and dropout is
    disabled.

    Args:
        module: The model; ``requires_grad`` of its parameters changes.

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
        """The trainable layer."""
        return self.module.get_submodule(self._head_name)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits of the model, (B, K)."""
        return self.module(inputs)

    def train(self, mode: bool = True) -> Self:
        """Set the mode of the head; all other layers stay in evaluation mode."""
        self.training = mode
        self.module.eval()
        self.head.train(mode)
        return self
