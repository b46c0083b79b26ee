"""Safetensors files: the same bytes for the same content, and a checksum, which the format lacks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import torch
from torch import Tensor

_LENGTH = 8  # bytes of the length of the header, little-endian; the header is padded to a multiple of it
KEY, METADATA_KEY = "sha256", "metadata_sha256"  # in the metadata: of the tensors, and of the other metadata


def serialize_tensors(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """Serialize tensors as safetensors, with the metadata sorted by key.

    The package writes metadata in the random order of a hash map. Files of equal runs would then differ.

    >>> from safetensors import deserialize
    >>> content = serialize_tensors({"x": torch.ones(2)}, {"b": "1", "a": "2", "c": "3"})
    >>> content == serialize_tensors({"x": torch.ones(2)}, {"c": "3", "a": "2", "b": "1"})
    True
    >>> deserialize(content)[0][1]["shape"]
    [2]
    """
    from safetensors.torch import save

    content = save(dict(tensors), None if metadata is None else dict(metadata))
    if metadata is None or len(metadata) < 2:
        return content
    start = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
    header = json.loads(content[_LENGTH:start])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % _LENGTH)
    return len(text).to_bytes(_LENGTH, "little") + text + content[start:]


def serialize_checked(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """Serialize tensors with checksums, which :func:`check_checksum` verifies.

    >>> b"metadata_sha256" in serialize_checked({"x": torch.ones(2)}, {"class_names": "[]"})
    True
    """
    added = {KEY: checksum(tensors), METADATA_KEY: _metadata_checksum(metadata)}
    return serialize_tensors(tensors, {**metadata, **added})


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


def has_valid_checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bool:
    """Return whether tensors and metadata match their checksums; files without checksums pass."""
    found = {KEY: checksum(tensors)} if KEY in metadata else {}
    found |= {METADATA_KEY: _metadata_checksum(metadata)} if METADATA_KEY in metadata else {}
    return all(metadata[key] == value for key, value in found.items())


def check_checksum(path: object, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> None:
    """Check tensors that were read from a file against its metadata; files without a checksum pass.

    Raises:
        DamagedFileError: If they differ.
    """
    if not has_valid_checksum(tensors, metadata or {}):
        raise DamagedFileError(
            f"{path} is damaged: its contents do not match its checksum. Restore the file or train again."
        )


def _metadata_checksum(metadata: Mapping[str, str]) -> str:
    others = {name: text for name, text in metadata.items() if name not in (KEY, METADATA_KEY)}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()
