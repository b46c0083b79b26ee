"""A loss together with the model that gives its features and head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from classgap.features import FeatureTap, unwrap_logits
from classgap.losses.base import ClassLoss
from classgap.methods import Method, build
from classgap.registry import MissingInputsError


class TappedLoss:
    """Calls a loss with the features and the head of a model.

    Args:
        loss: A loss, or the name of a method with options: "mr2", "elm:strength=0.1".
        model: Model that computes the logits.
        head: Head of the model or its name, if ``FeatureTap`` does not find it.
        class_counts: Training samples per class, for methods built by name that need them.
        caller: Function or class that users pass ``class_counts`` to, for error messages.

    Raises:
        ValueError: If the loss needs an input that the model does not give.

    >>> import torch
    >>> model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3))
    >>> loss = TappedLoss("mr2", model)
    >>> loss(model(torch.ones(2, 8)), torch.tensor([0, 1])).shape
    torch.Size([])
    """

    def __init__(
        self,
        loss: ClassLoss | str,
        model: nn.Module,
        *,
        head: nn.Module | str | None = None,
        class_counts: Sequence[float] | Tensor | None = None,
        caller: str = "TappedLoss",
    ) -> None:
        if not isinstance(loss, str | ClassLoss):
            raise ValueError(
                f"loss must be a loss of classgap.losses or the name of a method, got a {type(loss).__name__}: pass "
                '"mr2", or "erm" for cross-entropy.'
            )
        self.model = model
        self.tap: FeatureTap | None = None
        if isinstance(loss, str) or loss.required_inputs:
            self.tap = FeatureTap(model, head)
        self.loss = _build(loss, self.tap, class_counts, caller) if isinstance(loss, str) else loss
        missing = self.loss.required_inputs - {"features", "head"}
        if missing:
            raise ValueError(
                f"{type(self.loss).__name__} needs {', '.join(sorted(missing))}, which the trainer does not pass to "
                "the loss; use classgap train, or your own loop."
            )
        if self.tap is not None and not self.loss.required_inputs:
            self.tap.remove()
            self.tap = None

    def __call__(self, outputs: Any, targets: Tensor) -> Tensor:
        """Compute the loss of the model's last batch."""
        logits = unwrap_logits(outputs)
        logits = logits[0] if isinstance(logits, tuple) else logits
        if self.tap is None:
            return self.loss(logits, targets)
        return self.loss(logits, targets, features=self.tap.features, head=self.tap.head)


def _build(name: str, tap: FeatureTap | None, class_counts: Sequence[float] | Tensor | None, caller: str) -> ClassLoss:
    assert tap is not None
    num_classes, feature_dim = tap.head.get_parameter("weight").shape
    given: dict[str, Any] = {"feature_dim": feature_dim}
    if class_counts is not None:
        given["class_counts"] = class_counts
    try:
        method = build(name, num_classes=num_classes, **given)
    except MissingInputsError as error:
        if error.names != ("class_counts",):
            raise ValueError(
                f"loss={name!r} needs {' and '.join(error.names)}, which the trainer does not know; use classgap train."
            ) from None
        raise ValueError(
            f"loss={name!r} needs the number of training samples of each class: pass class_counts=[…] to {caller}."
        ) from None
    if type(method) is not Method:
        raise ValueError(
            f"loss={name!r} is more than a loss: it changes the training loop, the model or the result. Train it with "
            "classgap train, or choose a loss such as 'mr2'."
        )
    return method.loss
