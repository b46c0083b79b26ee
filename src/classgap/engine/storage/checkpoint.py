"""Checkpoints: written atomically, and read without executing code."""

from __future__ import annotations

import os
import pickle
import shutil
import warnings
import zipfile
import zlib
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from classgap._atomic_write import atomic_write
from classgap._tensor_files import check_checksum, serialize_checked
from classgap.engine.storage.disk import explain_write_errors

FORMAT = 1
_UNREADABLE = (
    RuntimeError,
    EOFError,
    OSError,
    OverflowError,
    pickle.UnpicklingError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
    *(AttributeError, AssertionError, LookupError, NotImplementedError, TypeError),  # of the unpickler
)


def save_checkpoint(state: dict[str, Any], path: Path, previous: Path | None = None) -> None:
    """Write a checkpoint, or fail and keep the existing one.

    Args:
        state: What to store.
        path: File to write.
        previous: Where to keep the checkpoint that is replaced.

    Raises:
        OSError: If the disk is full or the directory is not writable.
    """
    with explain_write_errors(path), atomic_write(path) as file:
        torch.save({"format": FORMAT, **state}, file)
        if previous is not None and path.exists():
            _keep(path, previous)


def _keep(path: Path, previous: Path) -> None:
    """Make ``previous`` a second name of the file, so that both exist at every moment."""
    link = previous.with_name(f"{previous.name}.new")
    link.unlink(missing_ok=True)
    try:
        os.link(path, link)
    except OSError:  # a file system without hard links
        shutil.copyfile(path, link)
    os.replace(link, previous)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint with its tensors on the CPU.

    Raises:
        ValueError: If it is damaged or has another format version.
    """
    try:
        damaged = _damaged_member(path)
        if damaged is not None:
            raise ValueError(f"wrong checksum of {damaged}")
        with warnings.catch_warnings(action="ignore"):  # of the unpickler, about damaged files
            state = torch.load(path, map_location="cpu", weights_only=True)
    except _UNREADABLE as error:
        reason = "it is truncated" if isinstance(error, OSError | EOFError) else " ".join(str(error).split())[:200]
        raise ValueError(f"the checkpoint {path} is damaged ({reason}); start over with --overwrite.") from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError(
            f"the checkpoint {path} was written by another version of classgap; start over with --overwrite."
        )
    return state


def _damaged_member(path: Path) -> str | None:
    """Return the first member of the archive whose checksum is wrong; ``torch.load`` does not look at them."""
    with zipfile.ZipFile(path) as archive:
        return archive.testzip()


def save_weights(model: nn.Module, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write a model's weights, a checksum, and optionally other metadata, as safetensors."""
    # Clones: safetensors rejects tensors that share memory, such as tied weights.
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in model.state_dict().items()}
    with explain_write_errors(path), atomic_write(path) as file:
        file.write(serialize_checked(tensors, metadata or {}))


def load_weights(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a file of the run, such as its weights.

    Raises:
        ValueError: If the file is damaged.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no mapping
            metadata = file.metadata()
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged ({error}). Restore the file or train again.") from None
    check_checksum(path, tensors, metadata)
    return tensors


def first_non_finite(*modules: nn.Module) -> str | None:
    """Return the name of the first parameter or buffer with NaN or infinity, or ``None``."""
    for name, tensor in chain.from_iterable(module.state_dict().items() for module in modules):
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            return name
    return None
