"""Read weights from checkpoints of several layouts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from classgap._tensor_files import DamagedFileError, check_checksum
from classgap._text_checksums import check_text
from classgap._yaml_files import read_yaml
from classgap.registry import short_repr

CONTAINERS = ("state_dict", "model_state_dict", "model")
WRAPPERS = ("module.", "_orig_mod.", "model.")  # DistributedDataParallel and Frozen, torch.compile, training loops


@dataclass(frozen=True)
class SavedWeights:
    """Weights of a file.

    Attributes:
        state: State dict without prefixes of wrappers.
        network: Name of the network, if the file has it.
    """

    state: dict[str, Tensor]
    network: str | None = None


def read_weights(path: Path) -> SavedWeights:
    """Read weights from a file or a run directory.

    Args:
        path: A ``.safetensors`` file, a file of ``torch.save`` (any other suffix), or a run directory.

    Raises:
        ValueError: If the file does not exist or has no weights.
    """
    if path.is_dir():
        return _from_run(path)
    if not path.is_file():
        raise ValueError(f"{str(path)!r} is neither a file nor a run directory.")
    content = _load(path)
    arch = content.get("arch")  # written by MoCo and torchvision's reference scripts
    return SavedWeights(_unwrapped(_tensors(content, path)), f"torchvision.{arch}" if isinstance(arch, str) else None)


def part_of(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the entries with a prefix, and remove it from their names.

    >>> part_of({"encoder_q.conv1.weight": torch.zeros(1), "queue": torch.ones(1)}, "encoder_q.")
    {'conv1.weight': tensor([0.])}
    """
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def _unwrapped(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    plain = dict(state)
    while prefix := next((each for each in WRAPPERS if plain and all(name.startswith(each) for name in plain)), None):
        plain = part_of(plain, prefix)
    return plain


def _load(path: Path) -> Mapping[str, Any]:
    from safetensors import safe_open

    try:
        if path.suffix == ".safetensors":
            with safe_open(path, "pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no mapping
                metadata = file.metadata()
            check_checksum(path, tensors, metadata)
            return tensors
        with warnings.catch_warnings(action="ignore"):  # of the unpickler, about damaged files
            content = torch.load(path, map_location="cpu", weights_only=True)
    except DamagedFileError:
        raise
    except Exception as error:  # damaged files raise errors of many types; OSErrors among them lack the file
        if isinstance(error, OSError) and not os.access(path, os.R_OK):
            raise ValueError(f"{str(path)!r} cannot be read: {error.strerror}.") from None
        if isinstance(error, OSError | EOFError):
            raise ValueError(f"{str(path)!r} cannot be read as weights: it is truncated or damaged.") from error
        raise ValueError(
            f"{str(path)!r} cannot be read as weights: it must contain only tensors and plain Python values, since "
            "other objects can execute code on loading. Save model.state_dict()."
        ) from error
    if not isinstance(content, Mapping):
        raise ValueError(f"{str(path)!r} must contain a state dict, got {type(content).__name__}.")
    return content


def _tensors(content: Mapping[str, Any], path: Path) -> Mapping[str, Tensor]:
    for name in CONTAINERS:
        if isinstance(content.get(name), Mapping):
            return _tensors(content[name], path)
    if not content or not all(isinstance(value, Tensor) for value in content.values()):
        raise ValueError(
            f"{str(path)!r} contains no state dict, neither at the top level nor in {', '.join(CONTAINERS)}; its keys "
            f"are: {', '.join(map(str, list(content)[:9])) or 'none'}."
        )
    for name, value in content.items():
        _check_tensor(name, value, path)
    return content


def _check_tensor(name: Any, value: Tensor, path: Path) -> None:
    if not isinstance(name, str):
        raise ValueError(f"{str(path)!r} must have the names of weights as keys, got {short_repr(name)}.")
    if value.is_meta or value.is_quantized or value.layout is not torch.strided:
        found = "meta" if value.is_meta else "quantized" if value.is_quantized else str(value.layout)
        raise ValueError(f"{str(path)!r} must contain dense tensors with values, got the tensor {name!r} ({found}).")


def _from_run(directory: Path) -> SavedWeights:
    settings = directory / "config.yaml"
    if not settings.is_file():
        raise ValueError(f"{str(directory)!r} is not a run directory: config.yaml is missing.")
    check_text(settings)
    config, _ = read_yaml(settings)
    found = directory / "checkpoints" / "model.safetensors"
    if not found.is_file():
        raise ValueError(f"the run {str(directory)!r} is not finished: checkpoints/model.safetensors is missing.")
    network = config.get("model") if isinstance(config, dict) else None
    if network is not None and not isinstance(network, str):
        raise ValueError(f"{settings}: model must be the name of a network, got {short_repr(network)}.")
    return SavedWeights(_unwrapped(_load(found)), network)
