"""The catalog of all networks, and ``build`` to create one by name."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from classgap.models.checkpoint import load_checkpoint
from classgap.models.cifar_resnet import resnet
from classgap.models.clip import open_clip_model
from classgap.models.preact_resnet import preact_resnet, wide_resnet
from classgap.models.resnet18 import lmdl_resnet18, resnet18
from classgap.models.small import conv1d, elm_mlp, linear, mlp
from classgap.models.timm_model import timm_model
from classgap.models.torchvision_model import torchvision_model
from classgap.registry import Entry, Registry, Spec

SHAPE = ("num_classes", "input_shape")
NAMES = (*SHAPE, "class_names")
LOAD = "load"  # False while loading a checkpoint, which replaces a library's weights
SMALL_IMAGE = 64  # largest side in pixels for which a network for 32×32 images is the default


def checkpoint(
    path: str,
    *,
    num_classes: int,
    input_shape: tuple[int, ...],
    class_names: Sequence[str] | None = None,
    model: str | None = None,
    frozen: bool = False,
    head: str = "kept",
) -> nn.Module:
    """Create a network with the weights of a file or a run; see :func:`load_checkpoint`.

    Args:
        path: A file or a run directory.
        num_classes: Number of outputs.
        input_shape: Shape of one input.
        class_names: Names for zero-shot heads.
        model: Name of the network, with a dot instead of its first colon (``torchvision.resnet50``); optional if the
            file or the run names it.
        frozen: Train the head only.
        head: "kept", or "new" to reinitialize the head.
    """
    return load_checkpoint(
        MODELS.build,
        path,
        num_classes=num_classes,
        input_shape=input_shape,
        class_names=class_names,
        model=model,
        frozen=frozen,
        head=head,
    )


MODELS: Registry[nn.Module] = Registry(
    "model",
    [
        *(
            Entry(f"resnet{depth}", f"ResNet-{depth} for 32×32 images (He et al. 2016a).", resnet(depth), given=SHAPE)
            for depth in (20, 32, 44, 56, 110)
        ),
        *(
            Entry(
                f"preact-resnet{depth}",
                f"PreAct ResNet-{depth} for 32×32 images (He et al. 2016b).",
                preact_resnet(depth),
                given=SHAPE,
            )
            for depth in (20, 32)
        ),
        *(
            Entry(
                f"wrn-{depth}-10",
                f"WRN-{depth}-10 for 32×32 images (Zagoruyko and Komodakis 2016).",
                wide_resnet(depth, 10),
                given=SHAPE,
            )
            for depth in (22, 28)
        ),
        Entry("resnet18", "ResNet-18 for 32×32 images.", resnet18, given=SHAPE),
        Entry("lmdl-resnet18", "ResNet-18 with a 30-dimensional feature layer (LMDL).", lmdl_resnet18, given=SHAPE),
        Entry("conv1d", "Three 1-D convolutions, for signals such as MNIST-1D.", conv1d, given=SHAPE),
        Entry("mlp", "Hidden layers with ReLU, for inputs of any shape.", mlp, given=SHAPE),
        Entry("linear", "A linear layer, for linear probing.", linear, given=SHAPE),
        Entry("elm-mlp", "Hidden layers of 16, 8 and 2 units, for 2-D points (ELM).", elm_mlp, given=SHAPE),
        Entry("timm", "A timm model.", timm_model, argument="NAME", given=(*SHAPE, LOAD), extra="vision"),
        Entry(
            "torchvision",
            "A torchvision classifier.",
            torchvision_model,
            argument="NAME",
            given=(*SHAPE, LOAD),
            extra="vision",
        ),
        Entry(
            "open_clip",
            "A CLIP model with a zero-shot cosine classifier.",
            open_clip_model,
            argument="NAME",
            given=(*NAMES, LOAD),
            extra="vision",
        ),
        Entry("checkpoint", "Weights from a file or a run directory.", checkpoint, "PATH", NAMES),
    ],
)


def build(
    text: str | Spec,
    *,
    num_classes: int,
    input_shape: tuple[int, ...],
    class_names: Sequence[str] | None = None,
) -> nn.Module:
    """Create a network from its name.

    Weights that are not loaded depend on ``torch.manual_seed`` only.

    Args:
        text: ``NAME[:ARGUMENT][:key=value …]``, for example ``resnet32``, ``mlp:width=512:depth=2``,
            ``timm:resnet18:pretrained=yes``, ``open_clip:ViT-B-32:weights=openai`` or
            ``checkpoint:moco_v2.pth.tar:model=torchvision.resnet50:frozen=yes``.
        num_classes: Number of outputs.
        input_shape: Shape of one input, for example (3, 32, 32).
        class_names: Names for zero-shot heads.

    Raises:
        ValueError: If the name or an option is invalid, or the network does not support the input shape.

    >>> build("mlp:width=8", num_classes=3, input_shape=(4,))[-1]
    Linear(in_features=8, out_features=3, bias=True)
    """
    if num_classes < 1:
        raise ValueError(f"num_classes must be at least 1, got {num_classes}.")
    if not input_shape or min(input_shape) < 1:
        raise ValueError(f"input_shape must be positive sizes such as (3, 32, 32), got {input_shape}.")
    if class_names is not None and len(class_names) != num_classes:
        raise ValueError(f"class_names must have num_classes = {num_classes} names, got {len(class_names)}.")
    return MODELS.build(text, num_classes=num_classes, input_shape=tuple(input_shape), class_names=class_names)


def names() -> list[str]:
    """Return the names of all networks.

    >>> "resnet32" in names()
    True
    """
    return MODELS.names()


def default_for(kind: str, shape: tuple[int, ...]) -> str:
    """Return the default network for a kind of data.

    Args:
        kind: "image", "signal" or "vector", the ``kind`` of a dataset.
        shape: Shape of one input.

    >>> default_for("image", (3, 32, 32)), default_for("image", (3, 224, 224)), default_for("signal", (1, 40))
    ('resnet32', 'timm:resnet18', 'conv1d')
    >>> default_for("vector", (2,)), default_for("vector", (768,))
    ('elm-mlp', 'mlp')
    """
    if kind == "image":
        return "resnet32" if max(shape[1:]) <= SMALL_IMAGE else "timm:resnet18"
    if kind == "signal":
        return "conv1d"
    if kind == "vector":
        return "elm-mlp" if shape == (2,) else "mlp"
    raise ValueError(f"kind must be image, signal or vector, got {kind!r}.")
