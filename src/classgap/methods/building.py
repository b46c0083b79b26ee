"""Methods from their names."""

from __future__ import annotations

from typing import Any

from classgap.losses.base import ClassLoss
from classgap.methods.catalog import METHODS
from classgap.methods.method import Method


def names() -> list[str]:
    """What there is.

    >>> "mr2" in names()
    True
    """
    return METHODS.names()


def build(text: str, *, num_classes: int, **given: Any) -> Method:
    """The method that ``text`` names.

    Args:
        text: ``NAME[:option=value …]``, such as ``mr2:strength=0.1``.
        num_classes: how many classes there are.
        given: what some methods need to know: ``class_counts`` (training samples of each class), ``feature_dim``
            (width of the features), ``num_samples`` (of the training set).

    Raises:
        ValueError: if the name or an option is wrong, or something is needed that was not given.

    >>> build("mr2:margin=2", num_classes=10).loss.margin
    2.0
    """
    try:
        made = METHODS.build(text, num_classes=num_classes, **given)
    except TypeError as error:  # a required parameter of a loss
        raise ValueError(f"method {text}: {error}; give it to build(…).") from None
    return Method(made) if isinstance(made, ClassLoss) else made
