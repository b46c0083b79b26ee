"""Access to the penultimate features, the head and earlier layers of any model, by hooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

# Names of the classifier in timm, torchvision, Hugging Face and most plain models.
HEAD_NAMES = ("fc", "classifier", "head", "heads", "score", "classification_head", "out_proj", "last_linear", "linear")
# Name of the only child of a wrapper: data-parallel and averaged models, and compiled models.
WRAPPED_NAMES = (["module"], ["_orig_mod"])
NOT_LINEAR = (nn.Embedding, nn.EmbeddingBag, nn.LayerNorm, nn.RMSNorm)  # may have a 2-D weight


class FeatureTap:
    """Access to the head of a model and to the input of the head in the last forward pass.

    The head is, in this order: ``head``; ``model.get_classifier()`` (timm); an attribute with a common name (``fc``,
    ``classifier``, ``head``, …) or the last linear layer in it; the last linear layer of the model. If the model states
    its number of classes, layers of that width are preferred. Any layer with a 2-D weight, such as a cosine classifier,
    counts as linear. Wrappers (DistributedDataParallel, torch.compile, …) are unwrapped.

    Limitations. A head that is applied to every token (``score`` of GPT2ForSequenceClassification) has 3-D features,
    which losses reject. A compiled model that has already run ignores new hooks: create the tap before the first call.
    Each forward pass releases the previous features at its start; compiled code may do so at its end.
    ``nn.DataParallel`` on several devices runs copies of the head, which are not tapped.

    Only hooks are added to the model. Copying or pickling a tapped model also copies its tap, without features. Copies
    do not affect the original tap, and a copied tap follows the copied model.

    Args:
        model: Any module.
        head: The head, or a module that contains it last; a module or its dotted name.
        layer: An earlier layer, a module or its dotted name such as ``layer2``. Features are then its output, of any
            shape, instead of the input of the head.

    Attributes:
        head: The layer that maps features to logits.
        layer: The earlier layer, or ``None``.

    >>> import torch
    >>> model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3))
    >>> tap = FeatureTap(model)
    >>> logits = model(torch.ones(2, 8))
    >>> tap.features.shape, tap.features.requires_grad, bool((tap.head(tap.features) == logits).all())
    (torch.Size([2, 4]), True, True)
    >>> with FeatureTap(model, layer="0") as tap:
    ...     _ = model(torch.ones(2, 8))
    ...     tap.features.equal(model[0](torch.ones(2, 8)))
    True
    """

    def __init__(
        self, model: nn.Module, head: nn.Module | str | None = None, *, layer: nn.Module | str | None = None
    ) -> None:
        inner = _unwrap(model)
        self.head = _find_head(inner, _search_places(model, inner, head))
        self.layer = None if layer is None else _find_layer(model, inner, layer)
        self._features: Tensor | None = None
        self._head_width: int | None = None
        self._other_width: int | None = None  # of the model's logits, where it differs
        self._handles = [inner.register_forward_pre_hook(self._before_model)]
        if self.layer is not None:
            self._handles.append(self.layer.register_forward_hook(self._after_layer))
        else:
            self._handles.append(self.head.register_forward_hook(self._after_head, with_kwargs=True))
            self._handles.append(inner.register_forward_hook(self._after_model))

    @property
    def features(self) -> Tensor:
        """Input of the head in the last forward pass, (B, D), or output of ``layer``; part of the autograd graph.

        Raises:
            RuntimeError: If the model has not been called, or did not call its head.
            ValueError: If the logits of the model are not the output of the head.
        """
        if self._features is None:
            raise RuntimeError(
                "FeatureTap has no features: call the model first. If you did, it did not call its head: create a new "
                "tap if the head was replaced or the tap removed, create the tap before the first call of a compiled "
                "model, or use DistributedDataParallel instead of DataParallel."
            )
        if self._other_width is not None:
            raise ValueError(
                f"FeatureTap has the wrong layer: the model's logits have {self._other_width} columns, but "
                f"{self.head} returned {self._head_width}. Pass head=…, the layer that computes the logits or its name."
            )
        return self._features

    def release(self) -> None:
        """Release the features to free their memory."""
        self._features = self._head_width = self._other_width = None

    def remove(self) -> None:
        """Remove the hooks from the model and release the features."""
        for handle in self._handles:
            handle.remove()
        self.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def __getstate__(self) -> dict[str, Any]:
        # For deepcopy, which rejects tensors with a gradient history, and pickle, which would store the batch.
        return {**self.__dict__, "_features": None}

    # The hooks only assign attributes, which torch.compile turns into additional outputs of its graph. Checks that
    # raise are in `features`, outside of compiled code.
    def _before_model(self, module: nn.Module, args: Any) -> None:
        self.release()

    def _after_head(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        if module is self.head:  # shallow copies such as DataParallel replicas share the hooks
            self._features = args[0] if args else next(iter(kwargs.values()))
            self._head_width = output.shape[-1] if isinstance(output, Tensor) else None

    def _after_layer(self, module: nn.Module, args: Any, output: Any) -> None:
        if module is self.layer:
            self._features = output[0] if isinstance(output, tuple) else output

    def _after_model(self, module: nn.Module, args: Any, output: Any) -> None:
        logits = unwrap_logits(output)
        comparable = isinstance(logits, Tensor) and logits.dim() == 2 and self._head_width is not None
        if comparable and logits.shape[-1] != self._head_width:
            self._other_width = logits.shape[-1]


def unwrap_logits(output: Any) -> Any:
    """Return the ``logits`` attribute or entry of a model's output, or the output itself if it has none.

    >>> unwrap_logits({"loss": 0.5, "logits": [1.0, 2.0]})
    [1.0, 2.0]
    """
    logits = getattr(output, "logits", output)
    return logits["logits"] if isinstance(logits, Mapping) and "logits" in logits else logits


def _unwrap(model: nn.Module) -> nn.Module:
    while [name for name, _ in model.named_children()] in WRAPPED_NAMES:
        model = next(model.children())
    return model


def _find_layer(outer: nn.Module, model: nn.Module, layer: nn.Module | str) -> nn.Module:
    parts = {**dict(outer.named_modules()), **dict(model.named_modules())}
    found = parts.get(layer) if isinstance(layer, str) and layer else layer
    if not isinstance(found, nn.Module) or not any(found is each for each in parts.values()):
        shown = repr(layer) if isinstance(layer, str) else _outline(layer)
        names = ", ".join(name for name, _ in model.named_children())
        raise ValueError(f"layer={shown} is not part of {type(model).__name__}. Its parts are {names or 'none'}.")
    return found


def _search_places(outer: nn.Module, model: nn.Module, head: nn.Module | str | None) -> dict[str, Any]:
    """Return the modules in which to look for the head, by a name for messages; the first match wins."""
    if head is not None:
        parts = {**dict(model.named_modules()), **dict(outer.named_modules())}  # also names with "module."
        part = parts.get(head) if isinstance(head, str) else head
        if not any(part is other for other in parts.values()):
            shown = repr(head) if isinstance(head, str) else _outline(head)
            raise ValueError(f"head={shown} is not part of {type(model).__name__}. {_candidates(model)}")
        return {"head": part}
    if callable(getattr(model, "get_classifier", None)):
        return {"get_classifier()": model.get_classifier()}  # type: ignore[operator]
    named = {name: getattr(model, name, None) for name in HEAD_NAMES}
    return {name: part for name, part in named.items() if isinstance(part, nn.Module)} or {"the model": model}


def _find_head(model: nn.Module, places: dict[str, Any]) -> nn.Module:
    classes = getattr(model, "num_classes", None) or getattr(getattr(model, "config", None), "num_labels", None)
    found = [[layer for _, layer in _layers(place)] for place in places.values() if _is_single(place)]
    # The number of classes may be outdated (a replaced head), so it is a preference, not a requirement.
    fitting = [[layer for layer in layers if _shape(layer)[0] == classes] for layers in found]
    layers = next((layers for layers in (*fitting, *found) if layers), [])
    if layers and not _are_parallel(layers, classes):
        return layers[-1]
    seen = ", ".join(f"{name} is {_outline(place)}" for name, place in places.items())
    raise ValueError(
        f"FeatureTap found no single head in {type(model).__name__}: {seen}. A head is one linear layer applied to "
        "the features. If the model has no classifier, build it with num_classes. Convolutional heads and several "
        f"heads whose outputs are combined are not supported. {_candidates(model)}"
    )


def _is_single(place: Any) -> bool:
    several = isinstance(place, (nn.ModuleList, nn.ModuleDict)) and len(place) > 1
    return isinstance(place, nn.Module) and not several


def _are_parallel(layers: list[nn.Module], classes: int | None) -> bool:
    """Return whether another layer has the shape (K, D), K ≠ D, of the last one: they cannot follow each other."""
    wide, deep = _shape(layers[-1])
    return wide == classes != deep and [_shape(layer) for layer in layers].count((wide, deep)) > 1


def _layers(module: nn.Module, name: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Yield the linear layers in ``module`` (or itself) in order of registration."""
    if _is_linear(module):
        yield name, module
        return
    for child_name, child in module.named_children():
        yield from _layers(child, f"{name}.{child_name}" if name else child_name)


def _is_linear(module: nn.Module) -> bool:
    # Parameters, not attributes: reading a parametrized weight computes it, which may change its state.
    weight = dict(module.named_parameters(recurse=False)).get("weight")
    matrix = weight is not None and not is_lazy(weight) and weight.dim() == 2
    leaf = next(module.children(), None) is None
    return isinstance(module, nn.Linear) or (matrix and leaf and not isinstance(module, NOT_LINEAR))


def _shape(layer: nn.Module) -> tuple[int, ...]:
    if isinstance(layer, nn.Linear):  # its weight may be lazy or packed
        return layer.out_features, layer.in_features
    return tuple(layer.get_parameter("weight").shape)


def _candidates(model: nn.Module) -> str:
    names = [f"{name!r} ({_shape(layer)[0]} wide)" for name, layer in _layers(model)]
    if not names:
        return "The model has no linear layer: add an nn.Linear(num_features, num_classes)."
    return f"Pass head=…, a layer or its name. Linear layers, last first: {', '.join(names[:-9:-1])}."


def _outline(found: Any) -> str:
    parts = found.children() if isinstance(found, nn.Module) else found if isinstance(found, (tuple, list)) else ()
    kinds = [type(part).__name__ for part in parts]
    return f"{type(found).__name__}({', '.join(kinds[:6])}{', …' if len(kinds) > 6 else ''})"
