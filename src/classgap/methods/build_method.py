"""Methods from their names."""

from __future__ import annotations

from typing import Any

from classgap.methods.catalog import METHODS
from classgap.methods.composition import compose, pieces
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
        text: ``NAME[:option=value …]``, such as ``mr2:strength=0.1``, or several with ``+`` between them, in any order:
            ``sam:rho=0.1+mr2``, ``mr2+tau-norm``, ``mr2+logit-adjustment``.
        num_classes: how many classes there are.
        given: what some methods need to know: ``class_counts`` (training samples of each class), ``feature_dim``
            (width of the features), ``num_samples`` (of the training set).

    Raises:
        ValueError: if a name or an option is wrong, two methods do not go together, or something is needed that was
            not given.

    >>> build("mr2:margin=2", num_classes=10).loss.margin
    2.0
    >>> build("sam+center", num_classes=10, feature_dim=64).loss.strength
    0.008
    >>> build("triplet+center", num_classes=10, feature_dim=64)
    Traceback (most recent call last):
    ValueError: method triplet+center: triplet and center do not compose; both are losses, and a run minimises one.
    """
    parts = pieces(text, METHODS)
    try:
        return compose(parts, METHODS, num_classes=num_classes, **given)
    except TypeError as error:  # a required parameter of a loss
        raise ValueError(f"method {text}: {error}; give it to build(…).") from None
