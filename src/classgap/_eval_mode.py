"""Context manager for evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(*models: nn.Module) -> Iterator[None]:
    """Set models to evaluation mode inside the context, and restore the mode of every layer on exit.

    >>> model = nn.Sequential(nn.BatchNorm1d(4).eval(), nn.Dropout())  # a frozen layer in a model that trains
    >>> with evaluating(model):
    ...     print([layer.training for layer in model])
    [False, False]
    >>> [layer.training for layer in model]
    [False, True]
    """
    modes = [[(module, module.training) for module in model.modules()] for model in models]
    try:
        for model in models:
            model.eval()
        yield
    finally:
        for model, own in zip(models, modes, strict=True):
            model.train(own[0][1])  # some layers override train() and do more than set the flag
            for module, training in own:
                module.training = training
