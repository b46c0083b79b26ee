"""Networks with weights from a file, to fine-tune, probe or audit."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from torch import Tensor, nn

from classgap.features import HEAD_NAMES
from classgap.models.heads import Frozen, head_name
from classgap.models.state_files import part_of, read_weights
from classgap.registry import Spec

CONTRASTIVE = "encoder_q."  # MoCo's query encoder; encoder_k and the queue are dropped
BACKBONES = (CONTRASTIVE, "backbone.", "encoder.")
Build = Callable[..., nn.Module]  # an argument, since the registry imports this module


def load_checkpoint(
    build: Build,
    path: str,
    *,
    num_classes: int,
    input_shape: tuple[int, ...],
    class_names: Sequence[str] | None,
    model: str | None,
    frozen: bool,
    head: str,
) -> nn.Module:
    """Create a network with the weights of a file.

    Args:
        build: Creates a network from its name.
        path: A file or a run directory.
        num_classes: Number of outputs. A head of another width in the file is replaced by a new one.
        input_shape: Shape of one input.
        class_names: Names for zero-shot heads.
        model: Name of the network, with a dot instead of its first colon (``torchvision.resnet50``); optional if the
            file or the run names it.
        frozen: Train the head only.
        head: "kept", or "new" to reinitialize the head.

    Raises:
        ValueError: If the weights do not fit the network; the message lists their names.
    """
    if head not in ("kept", "new"):
        raise ValueError(f"head must be kept or new, got {head!r}.")
    saved = read_weights(Path(path))
    spec = network_spec(path, model or saved.network)
    _follow(spec, path)  # an endless chain would be built without end
    network = build(
        spec,
        num_classes=num_classes,
        input_shape=input_shape,
        class_names=class_names,
        load=False,
    )
    network = network.module if isinstance(network, Frozen) else network
    load_weights(network, saved.state, source=path, new_head=head == "new")
    return Frozen(network) if frozen else network


def load_weights(network: nn.Module, saved: dict[str, Tensor], *, source: str, new_head: bool = False) -> None:
    """Copy weights into a network. The head is reinitialized if the weights have none for its number of classes.

    If the weights have several parts, the backbone is used: ``encoder_q``, ``backbone`` or ``encoder``.

    Args:
        network: The network; it does not change if the weights do not fit.
        saved: State dict.
        source: Origin of the weights, for error messages.
        new_head: Always reinitialize the head.

    Raises:
        ValueError: If weights other than those of the head are missing, unexpected or of another shape, or if the head
            has as many classes but is of another type.
    """
    wanted = network.state_dict()
    head = head_name(network)
    backbone = _backbone(saved, wanted)
    state = part_of(saved, backbone)
    # The outputs of MoCo's projection head are not classes, even if their number matches.
    state = _with_head(state, wanted, head, keep=backbone != CONTRASTIVE and not new_head, source=source)
    missing = [name for name in wanted if name not in state and not _in(name, head) and not _is_counter(name)]
    extra = [name for name in state if name not in wanted]
    shapes = [name for name in state if name in wanted and state[name].shape != wanted[name].shape]
    if missing or extra or shapes:
        parts = {"missing": missing, "unexpected": extra, "different shape": shapes}
        details = "; ".join(f"{problem}: {_shorten(names)}" for problem, names in parts.items() if names)
        raise ValueError(f"the weights of {source!r} do not fit {type(network).__name__}: {details}. Check model=….")
    network.load_state_dict(state, strict=False)
    layer = network.get_submodule(head)
    if f"{head}.weight" not in state and isinstance(layer, nn.Linear):
        # As in MoCo's linear protocol, whose learning rate of 30 requires small logits.
        nn.init.normal_(layer.weight, std=0.01)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


def _backbone(saved: dict[str, Tensor], wanted: dict[str, Tensor]) -> str:
    """Return the prefix of the backbone in the saved names, or "" if the names match the network's."""
    prefixes = [prefix for prefix in BACKBONES if not any(name.startswith(prefix) for name in wanted)]
    return next((prefix for prefix in prefixes if any(name.startswith(prefix) for name in saved)), "")


def _with_head(
    state: dict[str, Tensor], wanted: dict[str, Tensor], head: str, *, keep: bool, source: str
) -> dict[str, Tensor]:
    """Rename the saved head to the network's head, or drop it if its number of classes differs."""
    unknown = {name.partition(".")[0] for name in state if name not in wanted}
    others = [name for name in HEAD_NAMES if name in unknown and not any(_in(key, name) for key in wanted)]
    heads = {key: value for key, value in state.items() if any(_in(key, name) for name in (head, *others))}
    body = {key: value for key, value in state.items() if key not in heads}
    if not keep:
        return body
    renamed = {f"{head}.{key.rpartition('.')[2]}": value for key, value in heads.items()}
    inside = {key: value for key, value in wanted.items() if _in(key, head)}
    same = renamed.keys() == inside.keys() and len(renamed) == len(heads)
    if same and all(renamed[key].shape == inside[key].shape for key in inside):
        return body | renamed
    classes = len(inside[f"{head}.weight"])
    if any(value.ndim > 0 and len(value) == classes for value in heads.values()):
        raise ValueError(
            f"the weights of {source!r} have a head for {classes} classes of another type: {_shapes(heads)}, expected "
            f"{_shapes(inside)}. Methods such as ldam and lgm replace the head; config.yaml of a run names its method. "
            "To load all other weights, use checkpoint:…:head=new."
        )
    return body


def network_spec(path: str, model: str | None) -> Spec:
    """Return the network of a checkpoint, without options that freeze its layers.

    Args:
        path: The checkpoint, for error messages.
        model: Name of the network; a dot may replace the first colon (``torchvision.resnet50``).

    Raises:
        ValueError: If the name is unknown.
    """
    if model is None:
        raise ValueError(
            f"{path!r} does not name its network. Add it: checkpoint:{path}:model=NAME, for example model=resnet32 or "
            "model=torchvision.resnet50."
        )
    library = next((name for name in ("torchvision", "timm", "open_clip") if model.startswith(f"{name}.")), None)
    spec = Spec.parse(model.replace(".", ":", 1) if library else model)
    options = {key: value for key, value in spec.options.items() if key != "frozen"}
    return Spec(spec.name, spec.argument, options)


def architecture(model: str) -> str:
    """Return the name of a network without options that load or freeze weights.

    >>> architecture("timm:resnet18:pretrained=yes:frozen=yes")
    'timm:resnet18:pretrained=yes'
    """
    spec = _follow(Spec.parse(model))
    options = [f"{key}={value}" for key, value in spec.options.items() if key != "frozen"]
    return ":".join([spec.name, *([] if spec.argument is None else [spec.argument]), *options])


def _follow(spec: Spec, *paths: str) -> Spec:
    """Return the network at the end of a chain of checkpoints that name each other; ``paths`` were read before."""
    seen = {os.path.realpath(path) for path in paths}
    while spec.name == "checkpoint":
        path = spec.argument or ""
        if os.path.realpath(path) in seen:
            raise ValueError(
                f"the checkpoint {path!r} names itself as its network. Add it: checkpoint:{path}:model=NAME."
            )
        seen.add(os.path.realpath(path))
        spec = network_spec(path, spec.options.get("model") or read_weights(Path(path)).network)
    return spec


def _in(key: str, part: str) -> bool:
    return key.startswith(f"{part}.")


def _is_counter(key: str) -> bool:
    return key.endswith("num_batches_tracked")  # missing in older files


def _shorten(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _shapes(state: dict[str, Tensor]) -> str:
    return ", ".join(f"{name} {tuple(value.shape)}" for name, value in state.items())
