"""Checksums of tensors in safetensors files, which have none of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor

KEY = "sha256"  # of the metadata


class DamagedFileError(ValueError):
    """The contents of a file do not match its checksum."""


def checksum(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of names, types, shapes and values.

    >>> a, b = {"x": torch.tensor([1.0, 2.0])}, {"x": torch.tensor([1.0, -2.0])}
    >>> checksum(a) == checksum(dict(a)), checksum(a) == checksum(b)
    (True, False)
    """
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data if tensor.numel() else b"")
    return digest.hexdigest()


def check_checksum(path: object, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> None:
    """Check tensors that were read from a file against its metadata; files without a checksum pass.

    Raises:
        DamagedFileError: If they differ.
    """
    stored = (metadata or {}).get(KEY)
    if stored is not None and stored != checksum(tensors):
        raise DamagedFileError(
            f"{path} is damaged: its contents do not match its checksum. Restore the file or train again."
        )
