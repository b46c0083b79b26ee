"""Safetensors files that are the same bytes for the same content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

_LENGTH = 8  # bytes of the length of the header, little-endian; the header is padded to a multiple of it


def serialize_tensors(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """Serialize tensors as safetensors, with the metadata sorted by key.

    The package writes metadata in the random order of a hash map. Files of equal runs would then differ.

    >>> import torch
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
