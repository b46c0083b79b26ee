"""One pass of a model over a loader: logits, targets, features and head, every sample counted once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DistributedSampler

from classgap._eval_mode import evaluating
from classgap.audit.io.model_output import id2label_names, logits_of
from classgap.audit.io.predictions import Predictions, to_tensor
from classgap.audit.io.sample_ids import contradiction
from classgap.audit.results import Notice
from classgap.distributed import Shards, all_agree, world_size
from classgap.features import FeatureTap

LABEL_KEYS = ("labels", "label", "targets", "target")
_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)  # other unsigned ones are int64 by then

# Where numbers are taken from, and how to have something else that is there left alone.
_THIRD = (
    "the third item of a batch is taken as each sample's number in the test set",
    "if it is something else, such as an environment, pass (batch[:2] for batch in loader)",
)
_ENTRY = (
    'the entry "index" of a batch is taken as each sample\'s number in the test set',
    "if it is something else, leave it out of the batches",
)


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
    "target"), perhaps "index", and the model's keyword arguments. ``index`` is each sample's number in the test set: a
    third item that is anything else is refused. The model returns logits, an object or mapping with ``logits``, or a
    tuple: of that the one part as wide as the model's head is taken, or the first if the head does not tell.

    With several processes every process gets the predictions for the whole test set. A distributed sampler repeats
    samples to give each process equally many; these are dropped by ``index``, which is read from the batches or from
    the loader's ``DistributedSampler``.
    """
    if not isinstance(model, nn.Module):
        raise ValueError(
            f"model must be a torch.nn.Module; got {type(model).__name__}: wrap it in a module whose forward calls it, "
            "or pass what it predicts to Audit.from_predictions."
        )
    with evaluating(model):
        tap, problem_of_tap = _tap(model)
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
    if kept.index:
        _check_numbers(whole, kept.numbers_from)
    head = None if tap is None or whole.features is None else _fitting_head(tap.head, whole)
    predictions = Predictions.from_arrays(
        whole.targets,
        logits=whole.logits,
        features=whole.features,
        head=head,
        class_names=id2label_names(model, whole.logits.shape[1]) if class_names is None else class_names,
        train_counts=train_counts,
        index=whole.index,
        name=name,
    )
    notice = problem_of_tap or kept.without_features
    return replace(predictions, notices=(*predictions.notices, notice)) if notice else predictions


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
    numbers_from: tuple[str, str] = _THIRD
    without_features: Notice | None = None  # why features are missing

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
        shards = Shards.from_batch_size(len(targets), device)

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
        if index is not None:
            kept.numbers_from = _ENTRY if isinstance(batch, Mapping) else _THIRD
            kept.index.append(_numbers(index, len(targets), kept.numbers_from))
        output = model(**_moved(inputs, device)) if isinstance(inputs, Mapping) else model(_moved(inputs, device))
        logits = logits_of(output, None if tap is None else tap.head)
        kept.targets.append(torch.as_tensor(targets).cpu())
        kept.logits.append(_at_least_float32(logits))
        if tap is not None and not kept.without_features:
            try:
                features = tap.features
            except (RuntimeError, ValueError) as error:
                kept.without_features = Notice("features-not-found", {"error": str(error)})
                continue
            if features.dim() == 2 and len(features) == len(logits):
                kept.features.append(_at_least_float32(features))
            else:
                kept.without_features = Notice("features-not-per-sample", {"shape": tuple(features.shape)})
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


def _numbers(values: Any, samples: int, numbers_from: tuple[str, str]) -> Tensor:
    """The numbers of a batch's samples, refused if they cannot be any."""
    taken, otherwise = numbers_from
    try:
        numbers = to_tensor("index", values)
    except ValueError:
        got = f"a {type(values).__name__} of something else than numbers"
    else:
        got = f"shape {tuple(numbers.shape)} of {numbers.dtype}"
        if numbers.dtype in _WHOLE and numbers.shape == (samples,):
            if not bool((numbers < 0).any()):
                return numbers.long()
            got = str(int(numbers.min()))
    raise ValueError(f"{taken}, {samples} whole numbers from 0 here; got {got}: {otherwise}.")


def _check_numbers(whole: _Whole, numbers_from: tuple[str, str]) -> None:
    if whole.index is None or whole.targets.dim() != 1:  # targets of another shape are refused for that
        return
    found = contradiction(whole.index.numpy(), whole.targets.numpy())
    if found is not None:
        number, one, other = found
        taken, otherwise = numbers_from
        raise ValueError(
            f"{taken}, but {number} comes with the targets {one} and {other}: number the samples over the whole set; "
            f"{otherwise}."
        )


def _moved(inputs: Any, device: torch.device) -> Any:
    if isinstance(inputs, Tensor):
        return inputs.to(device)
    if isinstance(inputs, Mapping):
        return {key: _moved(value, device) for key, value in inputs.items()}
    return inputs


def _tap(model: nn.Module) -> tuple[FeatureTap | None, Notice | None]:
    try:
        return FeatureTap(model), None
    except ValueError as error:
        return None, Notice("features-not-found", {"error": str(error)})


def _fitting_head(head: nn.Module, whole: _Whole) -> nn.Module | None:
    """The head, if features and logits are its input and output."""
    assert whole.features is not None
    weight = getattr(head, "weight", None)
    fits = isinstance(weight, Tensor) and weight.shape == (whole.logits.shape[1], whole.features.shape[1])
    return head if fits else None


def _index_of(kept: _Kept, loader: Iterable[Any]) -> Tensor | None:
    if len(kept.index) == len(kept.targets):
        return torch.cat(kept.index)
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
