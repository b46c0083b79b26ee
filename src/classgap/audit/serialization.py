"""Audits and comparisons as JSON: written atomically, and checked when read."""

from __future__ import annotations

import json
import math
import os
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from classgap._atomic_write import atomic_write_text
from classgap._regular_files import check_regular_file
from classgap.audit._types import Integers
from classgap.audit.metrics.groups import thirds
from classgap.audit.results import QUANTILE_LEVELS
from classgap.audit.samples import MAX_SAMPLES

if TYPE_CHECKING:
    from classgap.audit.audit import Audit

Record = TypeVar("Record")

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # may be half of a character
FIX = "audit the predictions again"
ROUNDING = 1e-9


def to_plain(value: Any) -> Any:
    """Convert a record to dictionaries, lists and numbers that ``json`` can write.

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


def from_plain(kind: type[Record], data: Any, context: Mapping[str, Any] | None = None) -> Record:
    """Build a record from the output of :func:`to_plain`.

    Args:
        kind: type of the record.
        data: the output.
        context: limits for the validators of the fields.

    Raises:
        ValueError: if a key is missing or unknown, or a value has the wrong type; the message names its path.

    >>> from classgap.audit.results import Confusion
    >>> from_plain(Confusion, {"name": "cat", "count": 2, "rate": 0.5})
    Confusion(name='cat', count=2, rate=0.5)
    >>> from_plain(Confusion, {"name": "cat", "count": "2", "rate": 0.5})
    Traceback (most recent call last):
    ValueError: count must be a valid integer, got '2'.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        # As JSON, because pydantic's strict mode turns JSON lists into tuples, but not Python lists.
        text = json.dumps(data, allow_nan=False)
    except ValueError:
        raise ValueError(f"{_not_finite(data)}; it must be a finite number.") from None
    except RecursionError:
        raise ValueError("values are nested too deeply.") from None
    try:
        return TypeAdapter(kind).validate_json(text, strict=True, context=context)
    except ValidationError as error:
        raise ValueError(_describe(error.errors(include_url=False)[0])) from None


def write_json(path: str | os.PathLike[str], data: Any) -> None:
    """Write ``data`` to ``path`` atomically."""
    # NaN is not JSON, and other programs would not read the file.
    try:
        text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except ValueError as error:
        found = _not_finite(data)
        raise ValueError(
            f"{path} cannot be written: {error if found is None else f'{found}, which JSON does not support'}."
        ) from None
    atomic_write_text(path, text + "\n")


def _not_finite(data: Any, where: str = "") -> str | None:
    """Return the path and value of the first NaN or infinity, such as ``classes[3].accuracy is nan``."""
    if isinstance(data, float):
        return None if math.isfinite(data) else f"{where or 'the value'} is {data}"
    pairs: Iterable[tuple[str, Any]] = ()
    if isinstance(data, Mapping):
        pairs = ((f"{where}.{key}".removeprefix("."), value) for key, value in data.items())
    elif isinstance(data, list | tuple):
        pairs = ((f"{where}[{i}]", value) for i, value in enumerate(data))
    return next((found for name, value in pairs if (found := _not_finite(value, name)) is not None), None)


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file.

    Raises:
        ValueError: if the file cannot be read as JSON, or contains a repeated key, an unpaired surrogate or an integer
            of more than 64 bits.
    """
    check_regular_file(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
        content = json.loads(text, object_pairs_hook=_unique_keys, parse_int=_small_integer)
        if _SURROGATE.search(text):
            json.dumps(content, ensure_ascii=False).encode()
        return content
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{path} contains {error.object[error.start]!r}, an unpaired surrogate, which is not valid text: remove it."
        ) from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    except RecursionError:
        raise ValueError(f"{path} cannot be read: values are nested too deeply.") from None
    except _HugeIntegerError as error:
        raise ValueError(f"{path} contains {error}, which has more than 64 bits: check the number.") from None
    except _RepeatedKeyError as error:
        raise ValueError(f"{path} contains the key {error} more than once in one object: keep one.") from None
    except ValueError:
        raise ValueError(f"{path} is not a valid JSON file: it is empty, truncated or in another format.") from None


@contextmanager
def name_file_in_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Prefix error messages with the path of the file."""
    try:
        yield
    except ValueError as error:
        message = str(error)
        raise ValueError(message if str(path) in message else f"{path}: {message}") from None


def check_consistency(audit: Audit) -> None:
    """Check that the parts of a loaded audit name and number the same classes and samples.

    Raises:
        ValueError: naming the first part that does not match.
    """
    _check_classes(audit)
    known, classes = set(audit.class_names), len(audit.classes)
    for where, name in _class_names_in(audit):
        if name not in known:
            raise ValueError(f"{where} names the class {name!r}, which is not one of the {classes} classes; {FIX}.")
    for where, indices in _class_indices_in(audit):
        if len(indices) and not (indices.min() >= 0 and indices.max() < classes):
            worst = int(indices.min() if indices.min() < 0 else indices.max())
            raise ValueError(f"{where} must be in [0, {classes - 1}], got {worst}; {FIX}.")
    _check_lengths(audit)
    _check_thirds(audit)
    if "worst_class" not in audit.gap.intervals:
        raise ValueError(f"gap.intervals.worst_class is missing; {FIX}.")
    for where, lowest, values in _fractions_in(audit):
        for value in values:
            if not lowest - ROUNDING <= value <= 1 + ROUNDING:
                raise ValueError(f"{where} must be in [{lowest}, 1], got {value:g}; {FIX}.")


def sample_limit(data: Mapping[str, Any]) -> dict[str, int]:
    """Limit the samples of an audit to the number that it states, before they are decompressed."""
    overall = data.get("overall")
    stated = overall.get("n_samples") if isinstance(overall, dict) else None
    return {"most_samples": max(0, stated)} if isinstance(stated, int) and stated <= MAX_SAMPLES else {}


def is_fix_result(data: Mapping[str, Any]) -> bool:
    """Return whether the content of a JSON file is the result of ``classgap fix --json``."""
    return "remedies" in data and "proof" in data


def check_schema(data: Any, schema: int) -> None:
    """Check that ``data`` is an audit of this schema.

    Raises:
        ValueError: if it is a comparison, no audit, or an audit of another schema.
    """
    if isinstance(data, dict) and ("before_name" in data or "comparisons" in data):
        raise ValueError(
            "this is a saved comparison, not an audit: pass the sources it compares, or read it in Python with "
            "AuditDiff.load."
        )
    if isinstance(data, dict) and is_fix_result(data):
        raise ValueError("this is a fix result, not an audit: pass the predictions that were fixed.")
    if isinstance(data, dict) and "parts" in data:
        raise ValueError("this is a saved fix, not an audit: load it with cg.load_fix, and audit what it predicts.")
    found = data.get("schema") if isinstance(data, dict) else None
    if found is None:
        raise ValueError("not an audit: the key schema is missing.")
    if found != schema:
        raise ValueError(f"schema must be {schema}, got {found!r}: audit the predictions again.")


class _RepeatedKeyError(ValueError):
    """A JSON object that has a key twice."""


class _HugeIntegerError(ValueError):
    """An integer that no count and no index can be."""


def _small_integer(text: str) -> int:
    if len(text) > 20 or abs(int(text)) >= 2**63:
        raise _HugeIntegerError(text if len(text) < 40 else f"{text[:20]}…")
    return int(text)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _RepeatedKeyError(repr(next(key for key in keys if keys.count(key) > 1)))
    return found


def _describe(error: Mapping[str, Any]) -> str:
    """One line about the first error, with its path such as ``classes[3].accuracy``."""
    path = _path(error["loc"])
    if error["type"] == "missing":
        return f"{path} is missing."
    if error["type"] == "unexpected_keyword_argument":
        return f"{path} is not a known key."
    message = str(error["msg"])
    if error["type"] == "value_error":
        reason = str(error["ctx"]["error"]).rstrip(".")
        return f"{path}{' ' if reason.startswith('must') else ': '}{reason}." if path else f"{reason}."
    expected = message.removeprefix("Input should be ")
    return f"{path or 'the file'} must be {expected}, got {reprlib.repr(error['input'])[:80]}."


def _path(loc: Sequence[str | int]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return text.removeprefix(".")


def _check_classes(audit: Audit) -> None:
    count = len(audit.classes)
    if not count or count != audit.overall.num_classes:
        raise ValueError(f"classes must have {audit.overall.num_classes} entries (num_classes), got {count}; {FIX}.")
    for position, entry in enumerate(audit.classes):
        if entry.index != position:
            raise ValueError(f"classes[{position}].index must be {position}, got {entry.index}; {FIX}.")
        if entry.logit_margin is not None and len(entry.logit_margin.quantiles) not in (0, len(QUANTILE_LEVELS)):
            found = f"{len(QUANTILE_LEVELS)} quantiles, got {len(entry.logit_margin.quantiles)}"
            raise ValueError(f"classes[{position}].logit_margin must have {found}; {FIX}.")
    for part in ("valid", "superclasses"):
        found = getattr(audit, part)
        if found is not None and tuple(entry.name for entry in found.classes) != audit.class_names:
            raise ValueError(f"{part}.classes must name the {count} classes in their order; {FIX}.")
    if len(set(audit.class_names)) != count:
        raise ValueError(f"classes must have unique names; some of the {count} names are equal; {FIX}.")


def _check_thirds(audit: Audit) -> None:
    # They hold every class with test samples, so their sizes follow from the number of these.
    seen = sum(entry.accuracy is not None for entry in audit.classes)
    for name, members in thirds(np.zeros(seen), np.ones(seen, dtype=bool)).items():
        found = len(audit.groups[name].members) if name in audit.groups else 0
        if found != len(members):
            raise ValueError(f"groups.{name} must have {len(members)} of the {seen} classes, got {found}; {FIX}.")


def _check_lengths(audit: Audit) -> None:
    samples, points = audit.samples, audit.map
    index = samples.targets if samples.index is None else samples.index
    lengths = {len(samples.targets), len(samples.predictions), len(index)}
    if lengths != {audit.overall.n_samples}:
        raise ValueError(
            f"samples must hold {audit.overall.n_samples} labels and predictions (n_samples), got "
            f"{' and '.join(map(str, sorted(lengths)))}; {FIX}."
        )
    if points is not None and len({len(points.x), len(points.y), len(points.target), len(points.prediction)}) > 1:
        raise ValueError(f"map must have x, y, target and prediction for every point; {FIX}.")


def _class_names_in(audit: Audit) -> Iterator[tuple[str, str]]:
    yield from (("gap", name) for name in (audit.gap.worst_name, audit.gap.best_name))
    for key, group in audit.groups.items():
        yield from ((f"groups.{key}", name) for name in group.members)
    for i, pair in enumerate(audit.pairs):
        yield from ((f"pairs[{i}]", name) for name in (pair.first, pair.second))
    for entry in audit.classes:
        yield from ((f"classes[{entry.index}].confusions", confusion.name) for confusion in entry.confusions)
    if audit.map is not None:
        yield from (("map", name) for name in audit.map.classes)
    if audit.slices is not None:
        yield from ((f"slices.classes[{i}]", entry.name) for i, entry in enumerate(audit.slices.classes))


def _class_indices_in(audit: Audit) -> Iterator[tuple[str, Integers]]:
    yield "samples.targets", audit.samples.targets
    yield "samples.predictions", audit.samples.predictions
    if audit.map is not None:
        yield "map.target", np.array(audit.map.target, dtype=np.int64)
        yield "map.prediction", np.array(audit.map.prediction, dtype=np.int64)


def _fractions_in(audit: Audit) -> Iterator[tuple[str, int, tuple[float, ...]]]:
    """Yield where accuracies and their differences are, the lowest possible value, and the values with intervals."""
    overall, gap = audit.overall, audit.gap
    yield "overall.accuracy", 0, (overall.accuracy, *overall.interval)
    yield "overall.balanced_accuracy", 0, (overall.balanced_accuracy, *overall.balanced_interval)
    for key, group in audit.groups.items():
        if group.accuracy is not None:
            yield f"groups.{key}.accuracy", 0, (group.accuracy, *(group.interval or ()))
    for entry in audit.classes:
        if entry.accuracy is not None:
            yield f"classes[{entry.index}].accuracy", 0, (entry.accuracy,)
    for name, lowest in {"worst_class": 0, "worst_tenth": 0, "best_worst": -1, "easy_hard": -1}.items():
        value = getattr(gap, name)
        if value is not None:
            yield f"gap.{name}", lowest, (value, *gap.intervals.get(name, ()))
