"""What all losses share: the signature, the checks, the one reduction, and ``frozen``."""

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

from classgap.losses.arguments import one_of, whole_number
from classgap.losses.inputs import LossInputs, admit

REDUCTIONS = ("mean", "sum", "none")


@dataclass(frozen=True)
class Part:
    """One summand of a loss: a term for each sample, whose mean over all samples is the summand, and its factor."""

    terms_B: Tensor
    weight: float | Tensor = 1.0

    def times_weight(self, value: Tensor) -> Tensor:
        """A value of this part times its factor."""
        return value if isinstance(self.weight, float) and self.weight == 1 else value * self.weight


class ClassLoss(nn.Module):
    """A classification loss that may look at features, the head and its own memory.

    A subclass says what it ``needs`` and computes ``parts``: named per-sample terms with factors. Their sum is reduced
    here, once, over the samples of all processes. In training mode every call updates what the loss remembers, then
    uses it; ``eval()`` and ``frozen()`` only use it. Several processes work as one on their joined batch: the value
    and ``terms`` are the same everywhere, and gradients averaged by DistributedDataParallel equal those of a single
    process. In ``eval()`` a process looks at its own samples only and communicates nothing.

    ``reduction="mean"`` divides by the number of samples that are not ignored, whatever their ``sample_weight``: a
    weight of 2 counts twice in a batch of any size, and on any number of processes.

    Attributes:
        needs: keywords that ``forward`` must be given.
        stochastic: whether two calls on the same batch may differ in training.
        soft_targets: whether ``targets`` may be shares of classes, (B, K), as mixup and CutMix make them.
        head_type: what a head has to be, for losses that need it.
        terms: the last call's parts before their factors, reduced over all processes and detached ("none" shows their
            means), and factors that change from call to call as ``…_weight``.

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

    def __init__(self, num_classes: int, *, reduction: str = "mean", ignore_index: int = -100) -> None:
        super().__init__()
        self.num_classes = whole_number("num_classes", num_classes, at_least=1)
        self.reduction = one_of("reduction", reduction, REDUCTIONS)
        self.ignore_index = whole_number("ignore_index", ignore_index, at_least=-(2**63))
        self.required_inputs: frozenset[str] = frozenset()
        self.terms: dict[str, Tensor] = {}
        self._frozen = False

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """The named parts of the loss. Samples that are ignored (label -1) have terms of 0: see ``batch.counted``."""
        raise TypeError(f"{type(self).__name__} must define parts(batch)")

    def feature_width(self) -> int | None:
        """How wide the features have to be, where that is fixed."""
        return None

    @property
    def by_sample(self) -> bool:
        """Whether a sample's term depends on that sample alone: then a batch in parts has the loss of the whole.

        Losses of features compare samples or remember them, but for a few; those of logits that do so say it here.
        """
        return "features" not in self.required_inputs

    @property
    def updates(self) -> bool:
        """Whether a call may change what the loss remembers."""
        return self.training and not self._frozen

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Calls inside use what the loss remembers without changing it (SAM's second pass, say)."""
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
        """The loss of a batch.

        Args:
            logits: the model's raw scores, (B, K).
            targets: class indices, (B,); ``ignore_index`` leaves a sample out. Losses with ``soft_targets`` also take
                shares of classes, (B, K), each row adding up to 1.
            features: what the head is applied to, (B, D).
            head: the layer that makes logits of features; used, never owned.
            index: the samples' positions in the training set, (B,).
            sample_weight: a factor for each sample, (B,).

        Raises:
            ValueError: if an input is missing or wrong; nothing has changed then.
        """
        given = {"features": features, "head": head, "index": index, "sample_weight": sample_weight}
        batch = self.admit(logits, targets, given)
        device = batch.logits_BK.device.type
        if not torch.is_autocast_enabled(device):
            return self._reduce(self.parts(batch), batch)
        with torch.autocast(device, enabled=False):
            return self._reduce(self.parts(batch), batch)

    def admit(self, logits: Tensor, targets: Tensor, given: dict[str, Any]) -> LossInputs:
        """The call's inputs, checked and promoted."""
        own = _first_tensor(self)
        return admit(
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
        )

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Follow ``.to(device)``, ``.double()`` and the like, but not ``.half()``: statistics need float32."""

        def at_least_float32(tensor: Tensor) -> Tensor:
            moved = fn(tensor)
            low = moved.is_floating_point() and moved.dtype.itemsize < 4
            return tensor.to(moved.device) if low else moved

        return super()._apply(at_least_float32, recurse)  # type: ignore[no-untyped-call]

    def _reduce(self, parts: dict[str, Part], batch: LossInputs) -> Tensor:
        if batch.weight_B is not None:
            parts = {name: Part(part.terms_B * batch.weight_B, part.weight) for name, part in parts.items()}
        reduced = _reduced([part.terms_B for part in parts.values()], batch, mean=self.reduction != "sum")
        # Copies: the only term may be the value itself, which a caller may well change in place.
        self.terms = {name: each.detach().clone() for name, each in zip(parts, reduced, strict=True)}
        self.terms |= {f"{name}_weight": part.weight for name, part in parts.items() if isinstance(part.weight, Tensor)}
        pieces = [part.terms_B for part in parts.values()] if self.reduction == "none" else reduced
        weighted = [part.times_weight(piece) for piece, part in zip(pieces, parts.values(), strict=True)]
        return reduce(operator.add, weighted)

    def extra_repr(self) -> str:
        """The settings that differ between losses of one class."""
        return f"num_classes={self.num_classes}, reduction={self.reduction!r}"


def _first_tensor(module: nn.Module) -> Tensor | None:
    """A tensor of the module or of one inside it; every call asks, and ``next(module.buffers())`` takes far longer."""
    for tensor in chain(module._buffers.values(), module._parameters.values()):
        if tensor is not None:
            return tensor
    for inner in module._modules.values():
        if inner is not None and (tensor := _first_tensor(inner)) is not None:
            return tensor
    return None


def _reduced(terms: list[Tensor], batch: LossInputs, *, mean: bool) -> list[Tensor]:
    """The mean, or the sum, of each part's terms over the samples of all processes that are not ignored."""
    if len(batch.shards.sizes) == 1 and batch.complete:
        return [each.mean() if mean else each.sum() for each in terms]
    count = torch.as_tensor(batch.count(), dtype=batch.logits_BK.dtype, device=batch.logits_BK.device)
    count, *sums = batch.shards.sums(count, *(each.sum() for each in terms))
    return [each / count.clamp(min=1) for each in sums] if mean else sums
