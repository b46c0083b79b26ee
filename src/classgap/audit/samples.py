"""Label and prediction of every test sample, packed in JSON; comparisons pair samples by them."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from classgap.audit._types import Integers
from classgap.audit.io.sample_ids import HASHED

MAX_SAMPLES = 100_000_000  # of a damaged or hostile file: zlib packs a thousand zeros in a byte


@dataclass(frozen=True, eq=False)
class Samples:
    """Test samples, sorted by ``index`` if it is known, else in their original order.

    Attributes:
        targets: true class of each sample.
        predictions: predicted class of each sample.
        index: position of each sample in the test set, or the code of its id, if known.
        ids: code → id, for ids that are strings; not saved.

    >>> samples = Samples(np.array([0, 1]), np.array([1, 1]), None)
    >>> Samples.from_plain(samples.to_plain()) == samples
    True
    """

    targets: Integers
    predictions: Integers
    index: Integers | None
    ids: Mapping[int, str] = field(default_factory=dict)

    def id_of(self, row: int) -> str | None:
        """Return the id of a sample in quotation marks, or its number; ``None`` if it is unknown.

        >>> samples = Samples(np.array([0, 1]), np.array([1, 1]), np.array([3, HASHED]), {HASHED: "val/1.png"})
        >>> samples.id_of(0), samples.id_of(1)
        ('3', "'val/1.png'")
        """
        if self.index is None:
            return None
        code = int(self.index[row])
        return repr(self.ids[code]) if code in self.ids else str(code) if code < HASHED else None

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether each prediction is correct."""
        return self.targets == self.predictions

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Samples):
            return NotImplemented
        same_index = (self.index is None) == (other.index is None)
        if same_index and self.index is not None and other.index is not None:
            same_index = np.array_equal(self.index, other.index)
        return (
            same_index
            and np.array_equal(self.targets, other.targets)
            and np.array_equal(self.predictions, other.predictions)
        )

    __hash__ = None  # type: ignore[assignment]

    def to_plain(self) -> dict[str, Any]:
        """Return JSON values: the smallest unsigned integers, little-endian, zlib, base64."""
        arrays = {"targets": self.targets, "predictions": self.predictions, "index": self.index}
        return {name: None if values is None else _pack(values) for name, values in arrays.items()}

    @classmethod
    def from_plain(cls, data: Any, most: int = MAX_SAMPLES) -> Samples:
        """Read the output of :meth:`to_plain`.

        Args:
            data: the output.
            most: number of samples above which nothing is decompressed.

        Raises:
            ValueError: if a key is missing or unknown, or an array is damaged or has more than ``most`` samples.
        """
        if not isinstance(data, dict) or data.keys() != {"targets", "predictions", "index"}:
            raise ValueError("must have exactly the keys targets, predictions and index")
        try:
            targets, predictions = _unpack(data["targets"], most), _unpack(data["predictions"], most)
            index = None if data["index"] is None else _unpack(data["index"], most)
        except _TooLargeError as error:
            raise ValueError(str(error)) from None
        except (AttributeError, TypeError, ValueError, zlib.error):
            raise ValueError("must contain packed labels and predictions; they are damaged") from None
        return cls(targets, predictions, index)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic import PlainValidator, ValidationInfo  # slow to import

        def read(data: Any, info: ValidationInfo) -> Samples:
            return cls.from_plain(data, (info.context or {}).get("most_samples", MAX_SAMPLES))

        return handler.generate_schema(Annotated[Any, PlainValidator(read)])


class _TooLargeError(ValueError):
    """More samples than any test set has."""


def _pack(values: Integers) -> dict[str, str]:
    smallest = np.min_scalar_type(int(values.max(initial=0))).newbyteorder("<")
    packed = zlib.compress(values.astype(smallest).tobytes(), level=6)
    return {"dtype": smallest.str, "data": base64.b64encode(packed).decode("ascii")}


def _unpack(packed: dict[str, str], most: int) -> Integers:
    if packed.keys() != {"dtype", "data"}:
        raise ValueError(packed.keys())
    kind = np.dtype(packed["dtype"])
    if kind.kind != "u":
        raise ValueError(kind)
    decompressor = zlib.decompressobj()
    content = decompressor.decompress(base64.b64decode(packed["data"], validate=True), most * kind.itemsize + 1)
    if len(content) > most * kind.itemsize:
        raise _TooLargeError(f"must have at most {most:,} samples, but contains more")
    if not decompressor.eof:
        raise ValueError("truncated")
    return np.frombuffer(content, kind).astype(np.int64)
