"""One pass of a model over a loader: logits, targets, features and head, every sample counted once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DistributedSampler

from classgap.audit.evaluation_mode import evaluating
from classgap.audit.predictions import NO_FEATURES, Predictions
from classgap.distributed import Shards, all_agree, world_size
from classgap.features import FeatureTap

LABEL_KEYS = ("labels", "label", "targets", "target")


def collect_predictions(
    model: nn.Module,
    loader: Iterable[Any],
    *,
    class_names: Sequence[Any] | None = None,
    train_counts: Any = None,
    name: str = "audit",
) -> Predictions:
    """Run ``model`` in evaluation mode over ``loader`` and keep what an audit needs.

    A batch is ``(inputs, targets)``, ``(inputs, targets, index)``, or a mapping with "labels" (or "label", "targets",
    "target"), perhaps "index", and the model's keyword arguments. The model returns logits or has them as ``.logits``.

    With several processes every process gets the predictions for the whole test set. A distributed sampler repeats
    samples to give each process equally many; these are dropped by ``index``, which is read from the batches or from
    the loader's ``DistributedSampler``.
    """
    with evaluating(model):
        tap, remark = _tap(model)
        try:
            kept = _run(model, loader, tap)
        finally:
            if tap is not None:
                tap.remove()
    problem = kept.problem() or _index_problem(kept, loader)
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    if not all_agree(problem is None, device):
        raise ValueError(problem or "another process cannot be audited; its message says why.")
    whole = kept.gathered(device, _index_of(kept, loader))
    head = None if tap is None or whole.features is None else _fitting_head(tap.head, whole)
    predictions = Predictions.of(
        whole.targets,
        logits=whole.logits,
        features=whole.features,
        head=head,
        class_names=class_names,
        train_counts=train_counts,
        index=whole.index,
        name=name,
    )
    remark = remark or kept.without_features
    return replace(predictions, remarks=(*predictions.remarks, NO_FEATURES + remark)) if remark else predictions


@dataclass(frozen=True)
class _Whole:
    targets: Tensor
    logits: Tensor
    features: Tensor | None
    index: Tensor | None


@dataclass
class _Kept:
    """Batches as they come, on the CPU."""

    targets: list[Tensor] = field(default_factory=list)
    logits: list[Tensor] = field(default_factory=list)
    features: list[Tensor] = field(default_factory=list)
    index: list[Tensor] = field(default_factory=list)
    without_features: str = ""  # why there are none

    def problem(self) -> str | None:
        if not self.targets:
            return "the loader is empty: an audit needs at least one sample."
        if self.logits[0].dim() != 2:
            return f"the model must return logits (batch, classes); got shape {tuple(self.logits[0].shape)}."
        return None

    def gathered(self, device: torch.device, index: Tensor | None) -> _Whole:
        """All processes' samples in process order, on the CPU."""
        targets, logits = torch.cat(self.targets), torch.cat(self.logits)
        features = torch.cat(self.features) if len(self.features) == len(self.targets) else None
        shards = Shards.of(len(targets), device)

        def gather(local: Tensor) -> Tensor:
            return local if len(shards.sizes) == 1 else shards.gather(local.to(device)).cpu()

        return _Whole(
            targets=gather(targets),
            logits=gather(logits),
            features=None if features is None else gather(features),
            index=None if index is None else gather(index),
        )


@torch.no_grad()
def _run(model: nn.Module, loader: Iterable[Any], tap: FeatureTap | None) -> _Kept:
    kept = _Kept()
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    for batch in loader:
        inputs, targets, index = _parts(batch)
        output = model(**_moved(inputs, device)) if isinstance(inputs, Mapping) else model(_moved(inputs, device))
        logits: Any = getattr(output, "logits", output[0] if isinstance(output, tuple) else output)
        kept.targets.append(torch.as_tensor(targets).cpu())
        kept.logits.append(_at_least_float32(logits))
        if index is not None:
            kept.index.append(torch.as_tensor(index).cpu())
        if tap is not None and not kept.without_features:
            try:
                features = tap.features
            except (RuntimeError, ValueError) as error:
                kept.without_features = str(error)
                continue
            if features.dim() == 2 and len(features) == len(logits):
                kept.features.append(_at_least_float32(features))
            else:
                kept.without_features = f"they have the shape {tuple(features.shape)}, not a row a sample."
    return kept


def _at_least_float32(values: Tensor) -> Tensor:
    return values.detach().to(torch.promote_types(values.dtype, torch.float32)).cpu()


def _parts(batch: Any) -> tuple[Any, Any, Any]:
    if isinstance(batch, Mapping):
        label = next((key for key in LABEL_KEYS if key in batch), None)
        if label is None:
            raise ValueError(f"a batch must hold its labels as one of {', '.join(LABEL_KEYS)}; got {', '.join(batch)}.")
        inputs = {key: value for key, value in batch.items() if key not in (label, "index")}
        return inputs, batch[label], batch.get("index")
    if isinstance(batch, (tuple, list)) and len(batch) in (2, 3):
        return batch[0], batch[1], batch[2] if len(batch) == 3 else None
    raise ValueError(
        f"a batch must be (inputs, targets), (inputs, targets, index) or a mapping; got {type(batch).__name__}"
        f"{f' of {len(batch)}' if isinstance(batch, (tuple, list)) else ''}."
    )


def _moved(inputs: Any, device: torch.device) -> Any:
    if isinstance(inputs, Tensor):
        return inputs.to(device)
    if isinstance(inputs, Mapping):
        return {key: _moved(value, device) for key, value in inputs.items()}
    return inputs


def _tap(model: nn.Module) -> tuple[FeatureTap | None, str]:
    try:
        return FeatureTap(model), ""
    except ValueError as error:
        return None, str(error)


def _fitting_head(head: nn.Module, whole: _Whole) -> nn.Module | None:
    """The head, if features and logits are its input and output."""
    assert whole.features is not None
    weight = getattr(head, "weight", None)
    fits = isinstance(weight, Tensor) and weight.shape == (whole.logits.shape[1], whole.features.shape[1])
    return head if fits else None


def _index_of(kept: _Kept, loader: Iterable[Any]) -> Tensor | None:
    if len(kept.index) == len(kept.targets):
        return torch.cat(kept.index).long()
    sampler = getattr(loader, "sampler", None)
    if isinstance(sampler, DistributedSampler):
        # Its order depends on seed and epoch alone, so asking again gives the numbers of the samples just seen.
        return torch.tensor(list(sampler))[: sum(len(targets) for targets in kept.targets)]
    return None


def _index_problem(kept: _Kept, loader: Iterable[Any]) -> str | None:
    if world_size() == 1 or _index_of(kept, loader) is not None:
        return None
    return (
        "with several processes each sample's number is needed, as samplers repeat samples to fill the last batch: "
        "let the dataset return (input, target, index), or use torch.utils.data.DistributedSampler."
    )
