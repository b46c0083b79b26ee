"""Image models of timm."""

from __future__ import annotations

from typing import Any

from torch import nn

from classgap.models.heads import Frozen
from classgap.models.optional import package
from classgap.models.shapes import image_channels
from classgap.models.statistics import expect_images
from classgap.registry import suggestion


def timm_model(
    name: str,
    *,
    num_classes: int,
    input_shape: tuple[int, ...],
    pretrained: bool = False,
    frozen: bool = False,
    drop: float = 0.0,
    drop_path: float = 0.0,
    load: bool = True,
) -> nn.Module:
    """Create a timm model, for images with any number of channels.

    Args:
        name: Timm name such as ``resnet18`` or ``vit_base_patch16_224.mae``, ``local-dir:PATH`` or
            ``hf-hub:OWNER/NAME``.
        num_classes: Number of outputs.
        input_shape: Shape of an image; models with a fixed input size are created for this one.
        pretrained: Load pretrained weights, downloaded by timm on first use.
        frozen: Train the head only.
        drop: Dropout before the head.
        drop_path: Maximum stochastic depth rate (Huang et al. 2016); timm increases the rate linearly over the layers.
        load: Whether to load pretrained weights; otherwise only the architecture is created.
    """
    timm = package("timm", f"timm:{name}")
    channels = image_channels(f"timm:{name}", input_shape)
    for option, rate in (("drop", drop), ("drop_path", drop_path)):
        if not 0 <= rate < 1:
            raise ValueError(f"timm:{name}: {option} must be in [0, 1), got {rate}.")
    rates = {"drop_rate": drop, "drop_path_rate": drop_path}
    options: dict[str, Any] = {option: rate for option, rate in rates.items() if rate}
    if ":" not in name and _has_fixed_input_size(timm, name):
        options["img_size"] = input_shape[1:]
    given = pretrained and load
    try:
        model = timm.create_model(name, pretrained=given, num_classes=num_classes, in_chans=channels, **options)
    except TypeError as error:
        if "drop_path_rate" in str(error):
            raise ValueError(f"timm:{name} has no stochastic depth; remove drop_path={drop_path}.") from error
        raise
    if pretrained:
        settings = timm.data.resolve_model_data_config(model)
        expect_images(model, settings["mean"], settings["std"])
    return Frozen(model) if frozen else model


def _has_fixed_input_size(timm: Any, name: str) -> bool:
    if not timm.is_model(name):
        hint = suggestion(name.partition(".")[0], timm.list_models())
        raise ValueError(f"timm has no model {name!r}; {hint if hint.startswith('did') else 'see timm.list_models().'}")
    try:
        settings = timm.get_pretrained_cfg(name, allow_unregistered=True)
    except RuntimeError as error:  # an unknown tag after the dot
        raise ValueError(f"timm has no model {name!r}: {error}") from error
    return settings is not None and settings.fixed_input_size
