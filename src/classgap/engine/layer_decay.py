"""Layer-wise learning-rate decay, for networks that describe their layers as timm's models do.

Clark et al., "ELECTRA" (2020); Bao et al., "BEiT" (2022); the fine-tuning recipe of MAE (He et al., 2022).
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Any

from torch import nn

from classgap.engine.config import TrainConfig
from classgap.models.optional import package


def layer_decay_groups(
    groups: list[dict[str, Any]], networks: nn.Module, config: TrainConfig, layer_decay: float
) -> list[dict[str, Any]]:
    """Split parameter groups by layer: the rate of layer l of L is multiplied by layer_decay^(L - l).

    Layers are those of the network's ``group_matcher``; L is the head. Parameters with at most one dimension (biases
    and norms) and those that ``no_weight_decay`` names (position embeddings, class tokens) get no weight decay, as in
    ``timm.optim.param_groups_layer_decay``. Parameters outside of such networks, as those of a loss, stay as they are.

    Args:
        groups: Parameter groups of a method, which may set ``lr`` and ``weight_decay``.
        networks: The model, or a module that contains several networks.
        config: Settings, with the rates of groups that set none.
        layer_decay: Decay per layer, in (0, 1]; 1 only removes weight decay.

    Returns:
        New groups, the one closest to the head first.

    Raises:
        ValueError: If no network has ``group_matcher``.
    """
    scales: dict[nn.Parameter, tuple[float, bool]] = {}
    for network in _find_networks(networks):
        scales |= _scales(network, layer_decay, config)
    if not scales:
        raise ValueError(
            f"layer_decay={layer_decay:g} needs a model with a group_matcher, such as timm:NAME; {config.model} has "
            "none. Choose another model, or remove layer_decay."
        )
    return [part for group in groups for part in _split(group, scales, config)]


def _find_networks(module: nn.Module) -> Iterator[nn.Module]:
    """Yield the outermost networks with ``group_matcher``."""
    if callable(getattr(module, "group_matcher", None)):
        yield module
        return
    for child in module.children():
        yield from _find_networks(child)


def _scales(network: Any, layer_decay: float, config: TrainConfig) -> dict[nn.Parameter, tuple[float, bool]]:
    """Return the factor of the rate of each parameter, and whether it has weight decay."""
    timm_models = package("timm.models", f"{config.model} with layer_decay")
    layers = timm_models.group_parameters(network, network.group_matcher(coarse=False), reverse=True)
    last = max(layers.values())
    excluded = network.no_weight_decay() if hasattr(network, "no_weight_decay") else ()
    return {
        parameter: (
            layer_decay ** (last - layers.get(name, last)),
            parameter.ndim > 1 and not any(fnmatch(name, pattern) for pattern in excluded),
        )
        for name, parameter in network.named_parameters()
    }


def _split(
    group: dict[str, Any], scales: dict[nn.Parameter, tuple[float, bool]], config: TrainConfig
) -> list[dict[str, Any]]:
    assert config.lr is not None
    parts: dict[tuple[float, bool], list[nn.Parameter]] = {}
    for parameter in group["params"]:
        parts.setdefault(scales.get(parameter, (1.0, True)), []).append(parameter)
    rate, decay = group.get("lr", config.lr), group.get("weight_decay", config.weight_decay)
    return [
        {**group, "params": parts[scale, decayed], "lr": rate * scale, "weight_decay": decay if decayed else 0.0}
        for scale, decayed in sorted(parts, reverse=True)
    ]
