"""Networks that start from weights in a file: to be trained on, probed, or audited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from torch import Tensor, nn

from classgap.features import HEAD_NAMES
from classgap.models.heads import Frozen, head_name
from classgap.models.state_files import part_of, read_weights
from classgap.registry import Spec

CONTRASTIVE = "encoder_q."  # MoCo's trained encoder, beside the slowly moving encoder_k and the queue
BACKBONES = (CONTRASTIVE, "backbone.", "encoder.")
Build = Callable[..., nn.Module]  # of the registry, handed in because its entries are made of this module


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
    """A network with the weights of a file.

    Args:
        build: makes a network from its name.
        path: a file, or the directory of a classgap run.
        num_classes: outputs; a head of another width in the file is left out, and the model's is new.
        input_shape: of one input.
        class_names: for networks that read them.
        model: the network's name, with a dot for its first colon (``torchvision.resnet50``); may be left out where
            the file or the run says it.
        frozen: train the head only.
        head: "kept", or "new" to leave the file's head out.

    Raises:
        ValueError: if the weights do not fit the network, with the names that do not.
    """
    if head not in ("kept", "new"):
        raise ValueError(f"head must be kept or new; got {head!r}.")
    saved = read_weights(Path(path))
    network = build(
        _network(path, model or saved.network),
        num_classes=num_classes,
        input_shape=input_shape,
        class_names=class_names,
        load=False,
    )
    network = network.module if isinstance(network, Frozen) else network
    load_weights(network, saved.state, source=path, new_head=head == "new")
    return Frozen(network) if frozen else network


def load_weights(network: nn.Module, saved: dict[str, Tensor], *, source: str, new_head: bool = False) -> None:
    """Copy weights into a network; its head stays new if there is none for its number of classes among them.

    Of weights with several parts the backbone is taken: ``encoder_q``, ``backbone`` or ``encoder``.

    Args:
        network: all of it is compared before any of it is changed.
        saved: name to tensor.
        source: where they are from, for messages.
        new_head: leave the head out in any case.

    Raises:
        ValueError: if more than the head is missing, left over or of another shape, or if the head is for as many
            classes but of another kind.
    """
    wanted = network.state_dict()
    head = head_name(network)
    backbone = _backbone(saved, wanted)
    state = part_of(saved, backbone)
    # What MoCo's head contrasts are no classes, even if they are as many.
    state = _with_head(state, wanted, head, keep=backbone != CONTRASTIVE and not new_head, source=source)
    missing = [name for name in wanted if name not in state and not _in(name, head) and not _is_counter(name)]
    extra = [name for name in state if name not in wanted]
    shapes = [name for name in state if name in wanted and state[name].shape != wanted[name].shape]
    if missing or extra or shapes:
        parts = {"missing": missing, "not in the network": extra, "of another shape": shapes}
        told = "; ".join(f"{what}: {_few(names)}" for what, names in parts.items() if names)
        raise ValueError(f"the weights of {source!r} do not fit {type(network).__name__}: {told}. Check model=….")
    network.load_state_dict(state, strict=False)
    layer = network.get_submodule(head)
    if f"{head}.weight" not in state and isinstance(layer, nn.Linear):
        # As MoCo's linear protocol starts: a rate of 30 needs small logits. It suits any new head on trained features.
        nn.init.normal_(layer.weight, std=0.01)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


def _backbone(saved: dict[str, Tensor], wanted: dict[str, Tensor]) -> str:
    """The prefix of the part that is the network, unless the network itself has such a part; "" for all."""
    prefixes = [prefix for prefix in BACKBONES if not any(name.startswith(prefix) for name in wanted)]
    return next((prefix for prefix in prefixes if any(name.startswith(prefix) for name in saved)), "")


def _with_head(
    state: dict[str, Tensor], wanted: dict[str, Tensor], head: str, *, keep: bool, source: str
) -> dict[str, Tensor]:
    """The weights with the head under the network's name for it, or with none if it is for other classes."""
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
            f"the weights of {source!r} have a head for {classes} classes, but of another kind: they hold "
            f"{_shapes(heads)}, the network {_shapes(inside)}. Methods such as ldam and lgm put a head of their own in "
            "the place of the network's; a run's config.yaml tells its method. To start from all weights but the "
            "head, add head=new: checkpoint:…:head=new."
        )
    return body


def _network(path: str, model: str | None) -> Spec:
    if model is None:
        raise ValueError(
            f"{path!r} does not say which network its weights are of: write checkpoint:{path}:model=NAME, such as "
            "model=resnet32 or model=torchvision.resnet50."
        )
    library = next((name for name in ("torchvision", "timm", "open_clip") if model.startswith(f"{name}.")), None)
    spec = Spec.parse(model.replace(".", ":", 1) if library else model)
    options = {key: value for key, value in spec.options.items() if key != "frozen"}
    return Spec(spec.name, spec.argument, options)


def _in(key: str, part: str) -> bool:
    return key.startswith(f"{part}.")


def _is_counter(key: str) -> bool:
    return key.endswith("num_batches_tracked")  # older files lack it


def _few(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _shapes(state: dict[str, Tensor]) -> str:
    return ", ".join(f"{name} {tuple(value.shape)}" for name, value in state.items())
