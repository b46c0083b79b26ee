"""Seeded damage to files: truncations, flipped bits, and hostile values in JSON, YAML, CSV and arrays."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save

from classgap._tensor_files import serialize_checked

TOKEN = re.compile(rb"[-+.\w]+|[\[\]{}:,\"']|\n")
TEXTS = (
    *(
        "NaN",
        "Infinity",
        "-Infinity",
        "nan",
        "inf",
        "1e308",
        "-1e308",
        "1e999",
        "-1",
        "0",
        "1.5",
        str(2**31),
        str(2**63),
    ),
    *(str(2**64), "9" * 400, "9" * 5000, "null", "true", "", '""', "[]", "{}", "[" * 3000, '{"a":' * 3000, r'"\ud800"'),
    *(
        "\0",
        "x" * 5000,
        "'",
        '"',
        "\\",
        "\ufeff",
        "é",
        "\r",
        "\t",
        "=1+1",
        "&a [*a]",
        "!!python/object:os.system ls",
        "---",
    ),
)
VALUES = (
    *(
        None,
        True,
        -1,
        0,
        1.5,
        2**31,
        2**63,
        2**64,
        10**400,
        1e308,
        -1e308,
        float("nan"),
        float("inf"),
        "",
        "\ud800",
        "\0",
    ),
    *("x" * 5000, [], {}, [[]], [None], {"a": 1}, "NaN", "1", "<script>alert(1)</script>"),
)
NUMBERS = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e155, 1e38, -1.0, 2.0**60, 0.5)
KINDS = ("f2", "f4", "f8", "g", "c8", "i1", "i8", "u1", "u8", "?", "U8", "S8", "M8[s]", ">f4", "V8")


def mutate(content: bytes, name: str, rng: np.random.Generator) -> bytes:
    """Return a damaged copy of the content of a file; ``name`` gives the format."""
    ending = Path(name).suffix
    ways: list[Callable[[bytes, np.random.Generator], bytes]] = [truncate, flip_bits, replace_chunk, move_chunk]
    if ending in (".json", ".jsonl", ".yaml", ".csv", ".txt"):
        ways += [replace_token] * 4
    if ending == ".json":
        ways += [replace_json] * 8
    if ending in (".npy", ".npz", ".safetensors"):
        ways += [ARRAYS[ending]] * 8
    return ways[rng.integers(len(ways))](content, rng)


def truncate(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: rng.integers(len(content))] if rng.random() < 0.9 else b""


def flip_bits(content: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(content)
    # Headers are short, and decide most.
    last = len(changed) if rng.random() < 0.5 else min(len(changed), 200)
    for position in rng.integers(0, last, rng.integers(1, 9)):
        changed[position] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def replace_chunk(content: bytes, rng: np.random.Generator) -> bytes:
    start, length = int(rng.integers(len(content))), int(rng.integers(1, 64))
    fillings = (b"\0" * length, b"\xff" * length, rng.bytes(length), b"", b"9" * length)
    return content[:start] + fillings[rng.integers(len(fillings))] + content[start + length :]


def move_chunk(content: bytes, rng: np.random.Generator) -> bytes:
    (start, target), length = rng.integers(0, len(content), 2), int(rng.integers(1, 256))
    return content[:target] + content[start : start + length] + content[target:]


def replace_token(content: bytes, rng: np.random.Generator) -> bytes:
    tokens = list(TOKEN.finditer(content))
    if not tokens:
        return content
    token = tokens[rng.integers(len(tokens))]
    return content[: token.start()] + TEXTS[rng.integers(len(TEXTS))].encode() + content[token.end() :]


def replace_json(content: bytes, rng: np.random.Generator) -> bytes:
    """Replace, remove or repeat one value of a JSON file."""
    data = json.loads(content)
    places: list[tuple[Any, Any]] = []

    def collect(value: Any) -> None:
        for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
            places.append((value, key))
            collect(value[key])

    collect(data)
    if not places:
        return json.dumps(VALUES[rng.integers(len(VALUES))]).encode()
    holder, key = places[rng.integers(len(places))]
    match rng.integers(8):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.append(holder[key])
        case 1:
            holder["another"] = holder[key]
        case 2:
            other, place = places[rng.integers(len(places))]
            holder[key] = json.loads(json.dumps(other[place])) if place in other or isinstance(other, list) else None
        case _:
            holder[key] = VALUES[rng.integers(len(VALUES))]
    return json.dumps(data).encode()


def replace_npy(content: bytes, rng: np.random.Generator) -> bytes:
    file = io.BytesIO()
    np.save(file, change_array(np.load(io.BytesIO(content)), rng))
    return file.getvalue()


def replace_npz(content: bytes, rng: np.random.Generator) -> bytes:
    with np.load(io.BytesIO(content)) as archive:
        arrays = dict(archive)
    file = io.BytesIO()
    np.savez(file, **change_one(arrays, rng, change_array))
    return file.getvalue()


def replace_tensor(content: bytes, rng: np.random.Generator) -> bytes:
    def change(tensor: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
        if rng.random() < 0.2:
            return tensor.to((torch.bfloat16, torch.float8_e5m2, torch.bool, torch.uint16)[rng.integers(4)])
        array = change_array(tensor.numpy(), rng)
        return torch.from_numpy(np.ascontiguousarray(array)) if array.dtype.str in ("<f4", "<f8", "<i8") else tensor

    tensors, metadata = load(content), metadata_of(content)
    if metadata is None:
        return save(change_one(tensors, rng, change))
    if rng.random() < 0.5:
        tensors = change_one(tensors, rng, change)
    else:
        metadata = change_metadata(metadata, rng)
    # A hostile file has the right checksums.
    return serialize_checked(tensors, metadata)


def metadata_of(content: bytes) -> dict[str, str] | None:
    length = int.from_bytes(content[:8], "little")
    found = json.loads(content[8 : 8 + length]).get("__metadata__")
    return None if found is None else {name: text for name, text in found.items() if "sha256" not in name}


def change_metadata(metadata: dict[str, str], rng: np.random.Generator) -> dict[str, str]:
    """Remove one text of the metadata, or change the JSON that it holds."""
    if not metadata:
        return {"class_names": "[]"}
    name = list(metadata)[rng.integers(len(metadata))]
    match rng.integers(8):
        case 0:
            return {other: text for other, text in metadata.items() if other != name}
        case 1:
            return metadata | {name: TEXTS[rng.integers(len(TEXTS))]}
    try:
        return metadata | {name: replace_json(metadata[name].encode(), rng).decode()}
    except ValueError:  # no JSON
        return metadata | {name: ""}


def change_one(arrays: dict[str, Any], rng: np.random.Generator, change: Callable[..., Any]) -> dict[str, Any]:
    name = list(arrays)[rng.integers(len(arrays))]
    match rng.integers(6):
        case 0:
            del arrays[name]
        case 1:
            arrays[list(arrays)[rng.integers(len(arrays))]] = (
                arrays[name].copy() if hasattr(arrays[name], "copy") else arrays[name].clone()
            )
        case _:
            arrays[name] = change(arrays[name], rng)
    return arrays


def change_array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Put a hostile number into an array, or change its type or shape."""
    match rng.integers(7):
        case 0:
            try:
                return array.astype(KINDS[rng.integers(len(KINDS))])
            except (TypeError, ValueError):
                return array[:0]
        case 1:
            return array[: rng.integers(len(array) + 1)] if array.ndim else array
        case 2:
            return array[None] if rng.random() < 0.5 else array.ravel()
        case 3:
            return np.concatenate([array, array]) if array.ndim else array
        case 4:
            return np.zeros((0, *array.shape[1:]), array.dtype) if array.ndim else np.zeros(0)
    if array.dtype.kind not in "fiub" or not array.size:
        return np.full_like(array, "" if array.dtype.kind == "U" else 0)
    with np.errstate(all="ignore"):
        changed = array.astype(array.dtype if rng.random() < 0.5 else "f8")
        changed.flat[rng.integers(changed.size)] = np.float64(NUMBERS[rng.integers(len(NUMBERS))]).astype(changed.dtype)
    return changed


ARRAYS = {".npy": replace_npy, ".npz": replace_npz, ".safetensors": replace_tensor}
