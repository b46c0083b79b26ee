"""Run a model over a loader and collect logits, targets, features and head, with each sample counted once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DistributedSampler

from classgap._eval_mode import evaluating
from classgap.audit.io.arrays import to_tensor
from classgap.audit.io.predictions import Predictions
from classgap.audit.io.sample_ids import find_conflict
from classgap.audit.results import Notice
from classgap.distributed import Shards, all_agree, world_size
from classgap.features import FeatureTap, unwrap_logits

LABEL_KEYS = ("labels", "label", "targets", "target")
_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)  # to_tensor converts wider unsigned ones
_RETURN_LOGITS = 'return logits of shape (batch, classes), alone or as "logits"'

# Where the sample positions come from, and how to pass a batch whose item is something else.
_THIRD_ITEM = (
    "the third item of a batch must be the position of each sample in the test set",
    "if it is something else, pass (batch[:2] for batch in loader)",
)
_INDEX_ENTRY = (
    'the entry "index" of a batch must be the position of each sample in the test set',
    "if it is something else, remove it from the batches",
)


def collect_predictions(
    model: nn.Module,
    loader: Iterable[Any],
    *,
    class_names: Sequence[Any] | Mapping[int, str] | None = None,
    train_counts: Any = None,
    name: str = "audit",
) -> Predictions:
    """Run ``model`` in evaluation mode over ``loader`` and collect the inputs of an audit.

    A batch is ``(inputs, targets)``, ``(inputs, targets, index)``, or a mapping with "labels" (or "label", "targets",
    "target"), optionally "index", and the model's keyword arguments. ``index`` is the position of each sample in the
    test set. The model returns logits, an object or mapping with ``logits``, or a tuple: its only item as wide as the
    model's head, or else its first item, is taken as logits.

    With several processes, each process gets the predictions for the full test set. A distributed sampler repeats
    samples so that all processes get equally many. The repeats are dropped by ``index``, which is read from the
    batches or from the loader's ``DistributedSampler``.
    """
    if not isinstance(model, nn.Module):
        raise ValueError(
            f"model must be a torch.nn.Module, got {type(model).__name__}: wrap it in a module whose forward calls it, "
            "or pass its predictions to Audit.from_predictions."
        )
    with evaluating(model):
        tap, notice = _try_tap(model)
        try:
            outputs = _run(model, loader, tap)
        finally:
            if tap is not None:
                tap.remove()
    index = _local_index(outputs, loader)
    problem = outputs.problem() or _index_problem(index)
    device = _device_of(model)
    if not all_agree(problem is None):
        raise ValueError(problem or "another process failed; see its error message.")
    gathered = outputs.gather(device, index)
    if outputs.index:
        _check_index(gathered, outputs.index_source)
    head = None if tap is None or gathered.features is None else _matching_head(tap.head, gathered)
    predictions = Predictions.from_arrays(
        gathered.targets,
        logits=gathered.logits,
        features=gathered.features,
        head=head,
        class_names=id2label_names(model, gathered.logits.shape[1]) if class_names is None else class_names,
        train_counts=train_counts,
        index=gathered.index,
        name=name,
    )
    notice = notice or outputs.without_features
    return replace(predictions, notices=(*predictions.notices, notice)) if notice else predictions


@dataclass(frozen=True)
class _Gathered:
    """Outputs for the full test set."""

    targets: Tensor
    logits: Tensor
    features: Tensor | None
    index: Tensor | None


@dataclass
class _Outputs:
    """Outputs of this process, batch by batch, on the CPU."""

    targets: list[Tensor] = field(default_factory=list)
    logits: list[Tensor] = field(default_factory=list)
    features: list[Tensor] = field(default_factory=list)
    index: list[Tensor] = field(default_factory=list)
    index_source: tuple[str, str] = _THIRD_ITEM
    without_features: Notice | None = None  # why features are missing

    def problem(self) -> str | None:
        if not self.targets:
            return "the loader is empty: an audit needs at least one sample."
        if self.logits[0].dim() != 2:
            return f"the model must return logits of shape (batch, classes), got {tuple(self.logits[0].shape)}."
        return None

    def gather(self, device: torch.device, index: Tensor | None) -> _Gathered:
        """Concatenate the samples of all processes in rank order, on the CPU."""
        targets, logits = torch.cat(self.targets), torch.cat(self.logits)
        features = torch.cat(self.features) if len(self.features) == len(self.targets) else None
        shards = Shards.from_batch_size(len(targets), device)

        def gather(local: Tensor) -> Tensor:
            return local if len(shards.sizes) == 1 else shards.gather(local.to(device)).cpu()

        return _Gathered(
            targets=gather(targets),
            logits=gather(logits),
            features=None if features is None else gather(features),
            index=None if index is None else gather(index),
        )


@torch.no_grad()
def _run(model: nn.Module, loader: Iterable[Any], tap: FeatureTap | None) -> _Outputs:
    outputs, device = _Outputs(), _device_of(model)
    for batch in loader:
        inputs, targets, index = _split_batch(batch)
        if index is not None:
            outputs.index_source = _INDEX_ENTRY if isinstance(batch, Mapping) else _THIRD_ITEM
            outputs.index.append(_to_index(index, len(targets), outputs.index_source))
        output = (
            model(**_to_device(inputs, device)) if isinstance(inputs, Mapping) else model(_to_device(inputs, device))
        )
        logits = find_logits(output, None if tap is None else tap.head)
        outputs.targets.append(torch.as_tensor(targets).cpu())
        outputs.logits.append(_at_least_float32(logits))
        if tap is not None and not outputs.without_features:
            try:
                features = tap.features
            except RuntimeError:
                outputs.without_features = Notice("features-not-computed", {"head": type(tap.head).__name__})
                continue
            except ValueError:
                outputs.without_features = Notice(
                    "features-not-of-logits", {"head": type(tap.head).__name__, "logits": logits.shape[1]}
                )
                continue
            if features.dim() == 2 and len(features) == len(logits):
                outputs.features.append(_at_least_float32(features))
            else:
                outputs.without_features = Notice("features-not-per-sample", {"shape": tuple(features.shape)})
    return outputs


def find_logits(output: Any, head: nn.Module | None = None) -> Tensor:
    """Return the logits in a model's output.

    Args:
        output: a tensor, an object or mapping with ``logits``, or a tuple or list with the logits among its items.
        head: the layer that computes the logits, if known; its width identifies the logits in a tuple.

    Raises:
        ValueError: if there are no logits.

    >>> features, logits = torch.ones(2, 4), torch.zeros(2, 3)
    >>> find_logits((features, logits), nn.Linear(4, 3)).shape
    torch.Size([2, 3])
    """
    found = unwrap_logits(output)
    if isinstance(found, Mapping):
        raise ValueError(f"the model returned a mapping with keys {', '.join(map(repr, found))}: {_RETURN_LOGITS}.")
    if isinstance(found, (tuple, list)) and found:
        matching = [] if head is None else [item for item in found if _is_output_of(head, item)]
        found = matching[0] if len(matching) == 1 else found[0]
    if not isinstance(found, Tensor):
        raise ValueError(f"the model returned {type(found).__name__} instead of logits: {_RETURN_LOGITS}.")
    return found


def id2label_names(model: nn.Module, num_classes: int) -> tuple[str, ...] | None:
    """Return the class names in ``model.config.id2label`` of a Hugging Face model, or ``None`` if it has none.

    Args:
        model: a model, or a wrapper with the model as ``module`` (``DistributedDataParallel``).
        num_classes: number of logits.
    """
    config = getattr(getattr(model, "module", model), "config", None)
    id2label = getattr(config, "id2label", None)
    if not isinstance(id2label, Mapping) or len(id2label) != num_classes:
        return None
    names = {int(index): str(label) for index, label in id2label.items()}
    if sorted(names) != list(range(num_classes)) or len(set(names.values())) < num_classes:
        return None
    return tuple(names[k] for k in range(num_classes))


def _is_output_of(head: nn.Module, item: Any) -> bool:
    weight = getattr(head, "weight", None)
    return isinstance(weight, Tensor) and isinstance(item, Tensor) and item.dim() == 2 and item.shape[1] == len(weight)


def _at_least_float32(values: Tensor) -> Tensor:
    return values.detach().to(torch.promote_types(values.dtype, torch.float32)).cpu()


def _split_batch(batch: Any) -> tuple[Any, Any, Any]:
    """Return the inputs, targets and index of a batch."""
    if isinstance(batch, Mapping):
        label = next((key for key in LABEL_KEYS if key in batch), None)
        if label is None:
            raise ValueError(f"a batch must have labels under one of {', '.join(LABEL_KEYS)}, got {', '.join(batch)}.")
        inputs = {key: value for key, value in batch.items() if key not in (label, "index")}
        return inputs, batch[label], batch.get("index")
    if isinstance(batch, (tuple, list)) and len(batch) in (2, 3):
        return batch[0], batch[1], batch[2] if len(batch) == 3 else None
    raise ValueError(
        f"a batch must be (inputs, targets), (inputs, targets, index) or a mapping, got {type(batch).__name__}"
        f"{f' of length {len(batch)}' if isinstance(batch, (tuple, list)) else ''}."
    )


def _to_index(values: Any, samples: int, source: tuple[str, str]) -> Tensor:
    """Convert the sample positions of one batch, and check that they can be positions."""
    requirement, advice = source
    try:
        index = to_tensor("index", values)
    except ValueError:
        got = f"a {type(values).__name__} that is not numeric"
    else:
        got = f"shape {tuple(index.shape)} of {index.dtype}"
        if index.dtype in _INTEGERS and index.shape == (samples,):
            if not bool((index < 0).any()):
                return index.long()
            got = str(int(index.min()))
    raise ValueError(f"{requirement}, here {samples} non-negative integers, got {got}: {advice}.")


def _check_index(gathered: _Gathered, source: tuple[str, str]) -> None:
    if gathered.index is None or gathered.targets.dim() != 1:  # from_arrays rejects targets of another shape
        return
    conflict = find_conflict(gathered.index.numpy(), gathered.targets.numpy())
    if conflict is not None:
        position, first, second = conflict
        requirement, advice = source
        raise ValueError(
            f"{requirement}, but {position} occurs with targets {first} and {second}: count over the full test set, "
            f"not within batches; {advice}."
        )


def _to_device(inputs: Any, device: torch.device) -> Any:
    if isinstance(inputs, Tensor):
        return inputs.to(device)
    if isinstance(inputs, Mapping):
        return {key: _to_device(value, device) for key, value in inputs.items()}
    return inputs


def _device_of(model: nn.Module) -> torch.device:
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))


def _try_tap(model: nn.Module) -> tuple[FeatureTap | None, Notice | None]:
    try:
        return FeatureTap(model), None
    except ValueError:
        return None, Notice("features-not-found", {"model": type(model).__name__})


def _matching_head(head: nn.Module, gathered: _Gathered) -> nn.Module | None:
    """Return the head if it maps features of this width to logits of this width."""
    assert gathered.features is not None
    weight = getattr(head, "weight", None)
    fits = isinstance(weight, Tensor) and weight.shape == (gathered.logits.shape[1], gathered.features.shape[1])
    return head if fits else None


def _local_index(outputs: _Outputs, loader: Iterable[Any]) -> Tensor | None:
    if not outputs.targets:
        return None
    if len(outputs.index) == len(outputs.targets):
        return torch.cat(outputs.index)
    sampler = getattr(loader, "sampler", None)
    if isinstance(sampler, DistributedSampler):
        # The order depends only on seed and epoch, so iterating again repeats the order of the pass.
        return torch.tensor(list(sampler))[: sum(len(targets) for targets in outputs.targets)]
    return None


def _index_problem(index: Tensor | None) -> str | None:
    if world_size() == 1 or index is not None:
        return None
    return (
        "with several processes, index is required because samplers repeat samples to fill the last batch: return "
        "(input, target, index) from the dataset, or use torch.utils.data.DistributedSampler."
    )
