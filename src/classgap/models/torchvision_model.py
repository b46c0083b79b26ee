"""Classifiers of torchvision."""

from __future__ import annotations

from torch import nn

from classgap.models.heads import Frozen, exchange_head, linear_head
from classgap.models.optional import package
from classgap.models.shapes import image_channels
from classgap.models.statistics import expect_images
from classgap.registry import suggestion

AUXILIARY = ("aux1", "aux2", "AuxLogits")  # auxiliary classifiers of GoogLeNet and Inception


def torchvision_model(
    name: str,
    *,
    num_classes: int,
    input_shape: tuple[int, ...],
    pretrained: bool = False,
    frozen: bool = False,
    load: bool = True,
) -> nn.Module:
    """Create a torchvision classifier, for images with three channels.

    Args:
        name: Torchvision name such as ``resnet50``.
        num_classes: Number of outputs.
        input_shape: Shape of an image.
        pretrained: Load torchvision's default weights, downloaded on first use, with a new head.
        frozen: Train the head only.
        load: Whether to load pretrained weights; otherwise only the architecture is created.
    """
    models = package("torchvision", f"torchvision:{name}").models
    channels = image_channels(f"torchvision:{name}", input_shape)
    known = models.list_models(module=models)
    if name not in known:
        raise ValueError(f"torchvision has no classifier {name!r}; {suggestion(name, known)}")
    if channels != 3:
        raise ValueError(
            f"torchvision:{name} requires images with 3 channels, got input shape {input_shape}. "
            "timm:NAME supports any number of channels."
        )
    if pretrained and load:
        model = models.get_model(name, weights="DEFAULT")
        exchange_head(model, nn.Linear(linear_head(model, f"torchvision:{name}").in_features, num_classes))
    else:
        model = models.get_model(name, weights=None, num_classes=num_classes)
    if pretrained:
        images = models.get_model_weights(name).DEFAULT.transforms()
        expect_images(model, images.mean, images.std)
        if hasattr(model, "transform_input"):  # GoogLeNet and Inception convert ImageNet statistics to their own
            model.transform_input = True
    size = getattr(model, "image_size", None)
    if size is not None and input_shape[1:] != (size, size):
        raise ValueError(
            f"torchvision:{name} requires {size}×{size} images, got input shape {input_shape}. "
            "timm:NAME supports vision transformers of other sizes."
        )
    _drop_auxiliary_heads(model)
    return Frozen(model) if frozen else model


def _drop_auxiliary_heads(model: nn.Module) -> None:
    if getattr(model, "aux_logits", False):
        model.aux_logits = False  # type: ignore[assignment]
        for name in AUXILIARY:
            if hasattr(model, name):
                setattr(model, name, None)
