"""Base class of all losses: signature, input checks, reduction and ``frozen``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any, Self

import torch
from torch import Tensor, nn

from classgap.losses.arguments import check_bool, check_choice, check_int
from classgap.losses.inputs import LossInputs, prepare_inputs

REDUCTIONS = ("mean", "sum", "none")


@dataclass(frozen=True)
class Part:
    """One summand of a loss: the mean of per-sample terms over all samples, times a weight.

    >>> part = Part(torch.tensor([1.0, 3.0]), weight=0.5)
    >>> part.apply_weight(part.terms_B.mean())
    tensor(1.)
    """

    terms_B: Tensor
    weight: float | Tensor = 1.0

    def apply_weight(self, value: Tensor) -> Tensor:
        """Multiply a value of this part by its weight."""
        return value if isinstance(self.weight, float) and self.weight == 1 else value * self.weight


class ClassLoss(nn.Module):
    """Base class of classification losses that may use features, the head and running statistics.

    A subclass sets ``required_inputs`` and implements ``parts``, which returns named per-sample terms with weights. The
    base class adds them up and reduces them once, over the samples of all processes. In training mode every call first
    updates the running statistics and then uses them; ``eval()`` and ``frozen()`` only use them.

    Several processes behave like one process on their global batch: the value and ``terms`` are equal on every process,
    and gradients averaged by DistributedDataParallel equal those of a single process. In ``eval()`` each process uses
    its own samples only and does not communicate.

    ``reduction="mean"`` divides by the number of samples that are not ignored, independently of ``sample_weight``: a
    weight of 2 counts twice in a batch of any size, on any number of processes.

    ``validate_args=True`` checks the values of every batch before anything changes: labels in range, finite logits,
    features, head and sample weights, nonnegative sample weights, soft targets that sum to 1. The check reads from the
    device once per call. ``validate_args=False`` saves this synchronization. Types, shapes, dtypes and devices are
    still checked, and valid batches give the same results, but:

    - labels out of range fail inside torch, on a GPU as a device-side assertion;
    - NaN and infinity enter the running statistics and are saved with ``state_dict``;
    - negative sample weights, and soft targets that do not sum to 1, are used unchanged;
    - a process with an invalid batch raises alone, while the others may wait for it.

    Args:
        num_classes: Number of classes K.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values.

    Attributes:
        required_inputs: Keywords that ``forward`` requires.
        stochastic: Whether two training calls on the same batch may differ.
        soft_targets: Whether ``targets`` may be class probabilities, (B, K), as produced by mixup and CutMix.
        head_type: Required type of the head, for losses that use it.
        terms: Parts of the last call before weighting, reduced over all processes and detached (their means for
            "none"). Weights that change from call to call are included as ``…_weight``.

    >>> class Smoothed(ClassLoss):
    ...     def parts(self, batch):
    ...         log_p = batch.logits_BK.log_softmax(dim=1)
    ...         true = log_p.gather(1, batch.labels_B.clamp(min=0)[:, None]).squeeze(1)
    ...         uniform = log_p.mean(dim=1)
    ...         return {"true": Part(batch.counted(-true), 0.9), "uniform": Part(batch.counted(-uniform), 0.1)}
    >>> logits, targets = torch.randn(4, 3), torch.tensor([0, 1, 2, -100])
    >>> value = Smoothed(num_classes=3)(logits, targets)
    >>> expected = nn.functional.cross_entropy(logits, targets, label_smoothing=0.1)
    >>> torch.allclose(value, expected)
    True
    """

    stochastic = False
    soft_targets = False
    head_type: type[nn.Module] = nn.Linear

    def __init__(
        self, num_classes: int, *, reduction: str = "mean", ignore_index: int = -100, validate_args: bool = True
    ) -> None:
        super().__init__()
        self.num_classes = check_int("num_classes", num_classes, ge=1)
        self.reduction = check_choice("reduction", reduction, REDUCTIONS)
        self.ignore_index = check_int("ignore_index", ignore_index, ge=-(2**63))
        self.validate_args = check_bool("validate_args", validate_args)
        self.required_inputs: frozenset[str] = frozenset()
        self.terms: dict[str, Tensor] = {}
        self._frozen = False

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return the named parts of the loss. Terms of ignored samples (label -1) are 0; see ``batch.counted``."""
        raise TypeError(f"{type(self).__name__} must define parts(batch)")

    def feature_width(self) -> int | None:
        """Return the required number of features, if it is fixed."""
        return None

    @property
    def by_sample(self) -> bool:
        """Whether a sample's term depends on that sample only, so that a batch can be split into micro-batches.

        Most losses on features compare samples or keep statistics of them. Other losses that do so override this.
        """
        return "features" not in self.required_inputs

    @property
    def updates(self) -> bool:
        """Whether a call updates the running statistics."""
        return self.training and not self._frozen

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Use the running statistics without updating them, as in the second pass of SAM."""
        before, self._frozen = self._frozen, True
        try:
            yield
        finally:
            self._frozen = before

    def forward(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        features: Tensor | None = None,
        head: nn.Module | None = None,
        index: Tensor | None = None,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """Compute the loss of a batch.

        Args:
            logits: Raw scores of the model, (B, K).
            targets: Class indices, (B,), or ``ignore_index``. Losses with ``soft_targets`` also accept class
                probabilities, (B, K), with rows that sum to 1.
            features: Input of the head, (B, D).
            head: Layer that maps features to logits. It is used, but not registered as a submodule.
            index: Positions of the samples in the training set, (B,).
            sample_weight: Weight of each sample, (B,).

        Raises:
            InvalidBatchError: If an input is missing or invalid; the loss is unchanged.
        """
        given = {"features": features, "head": head, "index": index, "sample_weight": sample_weight}
        batch = self.prepare_inputs(logits, targets, given)
        device = batch.logits_BK.device.type
        if not torch.is_autocast_enabled(device):
            return self._reduce(self.parts(batch), batch)
        with torch.autocast(device, enabled=False):
            return self._reduce(self.parts(batch), batch)

    def prepare_inputs(self, logits: Tensor, targets: Tensor, given: dict[str, Any]) -> LossInputs:
        """Check the inputs of a call and promote them to at least float32."""
        own = _first_tensor(self)
        return prepare_inputs(
            logits,
            targets,
            given,
            loss_name=type(self).__name__,
            required_inputs=self.required_inputs,
            num_classes=self.num_classes,
            width=self.feature_width(),
            ignore_index=self.ignore_index,
            soft_targets=self.soft_targets,
            head_type=self.head_type,
            device=None if own is None else own.device,
            joint=self.training,
            validate=self.validate_args,
        )

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Apply ``.to(device)``, ``.double()`` etc., but not ``.half()``: statistics need float32."""

        def at_least_float32(tensor: Tensor) -> Tensor:
            moved = fn(tensor)
            low = moved.is_floating_point() and moved.dtype.itemsize < 4
            return tensor.to(moved.device) if low else moved

        return super()._apply(at_least_float32, recurse)  # type: ignore[no-untyped-call]

    def _reduce(self, parts: dict[str, Part], batch: LossInputs) -> Tensor:
        if batch.weight_B is not None:
            parts = {name: Part(part.terms_B * batch.weight_B, part.weight) for name, part in parts.items()}
        reduced = _reduced([part.terms_B for part in parts.values()], batch, mean=self.reduction != "sum")
        # Copies: a single term may be the value itself, which the caller may change in place.
        terms = {name: each.detach().clone() for name, each in zip(parts, reduced, strict=True)}
        terms |= {f"{name}_weight": part.weight for name, part in parts.items() if isinstance(part.weight, Tensor)}
        self.terms = terms
        pieces = [part.terms_B for part in parts.values()] if self.reduction == "none" else reduced
        weighted = [part.apply_weight(piece) for piece, part in zip(pieces, parts.values(), strict=True)]
        return reduce(operator.add, weighted)

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"num_classes={self.num_classes}, reduction={self.reduction!r}"


def _first_tensor(module: nn.Module) -> Tensor | None:
    """Return any tensor of the module. It runs in every call, and ``next(module.buffers())`` is far slower."""
    for tensor in chain(module._buffers.values(), module._parameters.values()):
        if tensor is not None:
            return tensor
    for inner in module._modules.values():
        if inner is not None and (tensor := _first_tensor(inner)) is not None:
            return tensor
    return None


def _reduced(terms: list[Tensor], batch: LossInputs, *, mean: bool) -> list[Tensor]:
    """Reduce the terms of each part over the samples of all processes that are not ignored."""
    if len(batch.shards.sizes) == 1 and batch.complete:
        return [each.mean() if mean else each.sum() for each in terms]
    count, *sums = batch.shards.sums(batch.count(), *(each.sum() for each in terms))
    return [each / count.clamp(min=1) for each in sums] if mean else sums
