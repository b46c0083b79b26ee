"""Frozen records to JSON and back, by their type hints alone; files are replaced whole or not at all."""

from __future__ import annotations

import json
import os
import reprlib
import types
import typing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from classgap._atomic_write import atomic_write_text

Record = TypeVar("Record")


def to_plain(value: Any) -> Any:
    """A record as dictionaries, lists and numbers that ``json`` can write.

    >>> from classgap.audit.results import Confusion
    >>> to_plain(Confusion("cat", 2, 0.5))
    {'name': 'cat', 'count': 2, 'rate': 0.5}
    """
    if hasattr(value, "to_plain"):
        return value.to_plain()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(entry) for entry in value]
    return value


def from_plain(kind: type[Record], data: Any) -> Record:
    """The record of type ``kind`` that :func:`to_plain` made ``data`` of.

    Raises:
        ValueError: if something is missing, superfluous or of another type, and where.

    >>> from classgap.audit.results import Confusion
    >>> from_plain(Confusion, {"name": "cat", "count": 2, "rate": 0.5})
    Confusion(name='cat', count=2, rate=0.5)
    """
    return _read(kind, data, kind.__name__)


def write_json(path: str | os.PathLike[str], data: Any) -> None:
    """Write ``data`` to ``path``, which at no time holds half of it."""
    # allow_nan=False: NaN is not JSON, and other programs would refuse the file.
    atomic_write_text(path, json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":")) + "\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """What a JSON file holds.

    Raises:
        ValueError: if there is no such file or it is not JSON.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    except RecursionError:
        raise ValueError(f"{path} cannot be read: its lists and objects are nested too deeply.") from None
    except ValueError:
        raise ValueError(f"{path} is not a JSON file: it is empty, cut off or something else.") from None


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let every complaint about what a file holds name the file."""
    try:
        yield
    except ValueError as error:
        message = str(error)
        raise ValueError(message if str(path) in message else f"{path}: {message}") from None


def _read(kind: Any, data: Any, where: str) -> Any:
    if hasattr(kind, "from_plain"):
        return kind.from_plain(data)
    if is_dataclass(kind):
        return _read_dataclass(kind, data, where)
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return None if data is None else _read(next(part for part in parts if part is not type(None)), data, where)
    if origin is tuple:
        _expect(isinstance(data, list), "a list", data, where)
        inner = [parts[0]] * len(data) if parts[-1] is Ellipsis else parts
        _expect(len(inner) == len(data), f"a list of {len(inner)}", data, where)
        pairs = zip(inner, data, strict=True)
        return tuple(_read(part, entry, f"{where}[{i}]") for i, (part, entry) in enumerate(pairs))
    if origin is not None and issubclass(origin, Mapping):
        _expect(isinstance(data, dict), "an object", data, where)
        return {parts[0](key): _read(parts[1], entry, f"{where}.{key}") for key, entry in data.items()}
    if hasattr(kind, "_fields"):  # a named tuple
        _expect(
            isinstance(data, list) and len(data) == len(kind._fields), f"a list of {len(kind._fields)}", data, where
        )
        return kind(*(_read(float, entry, where) for entry in data))
    if kind is float:
        _expect(isinstance(data, int | float) and not isinstance(data, bool), "a number", data, where)
        return float(data)
    _expect(isinstance(data, kind), f"of type {kind.__name__}", data, where)
    return data


def _read_dataclass(kind: Any, data: Any, where: str) -> Any:
    _expect(isinstance(data, dict), "an object", data, where)
    hints = typing.get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    missing = [name for name in names if name not in data]
    _expect(not missing, f"an object with {', '.join(missing)}", sorted(data), where)
    return kind(**{name: _read(hints[name], data[name], f"{where}.{name}") for name in names})


def _expect(ok: bool, wanted: str, data: Any, where: str) -> None:
    if not ok:
        raise ValueError(f"{where} must be {wanted}; got {_shown(data)}.")


def _shown(data: Any) -> str:
    return data[:80] if isinstance(data, str) else reprlib.repr(data)[:80]  # str() of deep lists goes as deep
