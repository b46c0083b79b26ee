"""Another layer in the place of a model's head."""

from __future__ import annotations

from torch import nn

from classgap.models.heads import head_name


def head_of(model: nn.Module) -> nn.Module:
    """The layer that makes the logits.

    >>> head_of(nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3)))
    Linear(in_features=4, out_features=3, bias=True)
    """
    return model.get_submodule(head_name(model))


def exchange_head(model: nn.Module, head: nn.Module) -> None:
    """Put ``head`` where the model's head is; the engine taps the model again before a stage begins.

    >>> model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3))
    >>> exchange_head(model, nn.Linear(4, 3, bias=False))
    >>> model[-1]
    Linear(in_features=4, out_features=3, bias=False)
    """
    place, _, name = head_name(model).rpartition(".")
    setattr(model.get_submodule(place), name, head)


def linear_head(model: nn.Module, method: str) -> nn.Linear:
    """The head, for methods that need it to be linear.

    Raises:
        ValueError: if it is another layer.
    """
    head = head_of(model)
    if type(head) is not nn.Linear:
        raise ValueError(f"{method} changes the rows of a linear head, but this model ends in {head}.")
    return head
