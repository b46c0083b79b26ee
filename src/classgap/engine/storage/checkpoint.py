"""Checkpoints: written atomically, and read without executing code."""

from __future__ import annotations

import pickle
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from classgap._atomic_write import atomic_write
from classgap._tensor_files import serialize_tensors
from classgap.engine.storage.disk import explain_write_errors

FORMAT = 1


def save_checkpoint(state: dict[str, Any], path: Path) -> None:
    """Write a checkpoint, or fail and keep the previous one.

    Raises:
        OSError: If the disk is full or the directory is not writable.
    """
    with explain_write_errors(path), atomic_write(path) as file:
        torch.save({"format": FORMAT, **state}, file)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint with its tensors on the CPU.

    Raises:
        ValueError: If it is damaged or has another format version.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, pickle.UnpicklingError, ValueError) as error:
        raise ValueError(f"the checkpoint {path} is damaged ({error}); start over with --overwrite.") from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError(
            f"the checkpoint {path} was written by another version of classgap; start over with --overwrite."
        )
    return state


def save_weights(model: nn.Module, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write a model's weights, and optionally metadata, as safetensors."""
    # Clones: safetensors rejects tensors that share memory, such as tied weights.
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in model.state_dict().items()}
    with explain_write_errors(path), atomic_write(path) as file:
        file.write(serialize_tensors(tensors, metadata))


def load_weights(path: Path) -> dict[str, Tensor]:
    """Read a model's weights."""
    from safetensors.torch import load_file

    return load_file(path)


def first_non_finite(*modules: nn.Module) -> str | None:
    """Return the name of the first parameter or buffer with NaN or infinity, or ``None``."""
    for name, tensor in chain.from_iterable(module.state_dict().items() for module in modules):
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            return name
    return None
