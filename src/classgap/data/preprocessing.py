"""Preparation of the inputs of a trained network, stored with its run as ``preprocessing.json``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from classgap._atomic_write import atomic_write_text
from classgap.data.batch import Batch
from classgap.data.dataset import Split
from classgap.data.loader import evaluation_batches
from classgap.data.sources.images import fit_picture, open_picture
from classgap.data.transforms.crops import center_crop
from classgap.data.transforms.normalize import Normalize
from classgap.data.transforms.table import TableEncoder

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

SCHEMA = 1
BATCH_SIZE = 256
CHANNELS = (3, 1, 4)  # of image arrays: RGB, gray, RGBA


@dataclass(frozen=True)
class Preprocessing:
    """Preparation of the inputs of a network, as for the test samples of its training.

    Call it with one input to get the tensor that the network takes: an image (Pillow, a file name, an array with bytes
    or with numbers in [0, 1]), an array of the network's shape, a row of a table as a mapping, or a text.

    Attributes:
        mean: Mean of each channel, on the scale [0, 1]; ``None`` if inputs are not normalized.
        std: Standard deviation of each channel.
        crop: Side of the center crop; ``None`` for none.
        shape: Shape of one input of the network.
        kind: "image", "signal" or "vector".
        resize: Height and width that images are resized to cover and center-cropped to, before ``crop``.
        table: Encoding of the rows of a table.

    >>> prepare = Preprocessing((0.5,), (0.25,), None, (1, 2, 2), "image", (2, 2))
    >>> prepare(np.array([[0, 255], [255, 0]], dtype=np.uint8))
    tensor([[[-2.,  2.],
             [ 2., -2.]]])
    """

    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None
    crop: int | None
    shape: tuple[int, ...]
    kind: str
    resize: tuple[int, int] | None = None
    table: TableEncoder | None = None

    @property
    def is_image(self) -> bool:
        """Whether inputs have the shape (C, H, W)."""
        return len(self.shape) == 3

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """Shape of one input before the crop."""
        return self.shape if self.resize is None else (self.shape[0], *self.resize)

    def __call__(self, inputs: Picture | str | os.PathLike[str] | Tensor | np.ndarray | Mapping[str, Any]) -> Tensor:
        """Return one input as the network takes it, float32.

        Raises:
            ValueError: If the input has the wrong shape or type, or the file cannot be read.
        """
        return self.prepare(self.read(inputs)[None])[0]

    def read(self, inputs: Any) -> Tensor:
        """Return one input before crop and normalization: bytes (C, H, W) for images, float32 for others."""
        if self.table is not None and isinstance(inputs, Mapping):
            return torch.from_numpy(self.table.encode({name: [cell] for name, cell in inputs.items()}))[0]
        if self.table is not None and self.table.text_column and isinstance(inputs, str):
            return torch.from_numpy(self.table.encode({self.table.text_column: [inputs]}))[0]
        if not isinstance(inputs, (Tensor, np.ndarray)):
            return self._read_picture(inputs)
        array = inputs.detach().cpu().numpy() if isinstance(inputs, Tensor) else inputs
        if not self.is_image:
            return self.check_array(array[None])[0]
        pixels_CHW = self._channels_first(array, prefer=isinstance(inputs, Tensor))
        if self.resize is None or pixels_CHW.shape in (self.stored_shape, self.shape):
            return self.check_array(pixels_CHW[None])[0]
        return self._fit(_as_picture(pixels_CHW))

    def check_array(self, array: np.ndarray) -> Tensor:
        """Return a batch of inputs (N, …) as a tensor: bytes for images with bytes, float32 for others.

        Raises:
            ValueError: If the shape is wrong, or values are not finite or, for images, not in [0, 1].
        """
        wanted = (self.stored_shape,) if self.resize is None else (self.stored_shape, self.shape)
        if array.shape[1:] not in wanted:
            shapes = " or ".join(str(("N", *shape)).replace("'", "") for shape in dict.fromkeys(wanted))
            raise ValueError(f"inputs must have shape {shapes}, got {array.shape}.")
        if array.dtype.kind not in "fiub":
            raise ValueError(f"inputs must be numbers, got {array.dtype}.")
        if self.is_image and array.dtype == np.uint8:
            return torch.from_numpy(np.ascontiguousarray(array))
        with np.errstate(over="ignore"):  # infinities are reported
            values = torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
        if not bool(values.isfinite().all()):
            rows = int((~values.isfinite()).flatten(1).any(dim=1).sum())
            raise ValueError(f"inputs must be finite, but {rows} of {len(values)} contain NaN or infinity.")
        if self.kind == "image":
            _check_range(array)
        return values

    def prepare(self, inputs: Tensor) -> Tensor:
        """Crop and normalize a batch, (B, …)."""
        if self.crop is not None and inputs.shape[1:] != self.shape:
            inputs = center_crop(inputs, self.crop)
        return Normalize.from_stats(inputs, self.mean, self.std)(inputs)

    def batches(
        self,
        split: Split,
        device: torch.device,
        batch_size: int = BATCH_SIZE,
        *,
        channels_last: bool = False,
    ) -> Iterator[Batch]:
        """Iterate over prepared samples in order, without augmentation."""
        return evaluation_batches(
            split,
            batch_size=batch_size,
            mean=self.mean,
            std=self.std,
            size=self.crop,
            device=device,
            channels_last=channels_last,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with the facts that other programs need."""
        facts: dict[str, Any] = {"schema": SCHEMA, **asdict(self)}
        if self.kind == "image":
            facts |= {"channels": self.shape[0], "value_range": [0, 1], "interpolation": "bicubic"}
        return facts

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Preprocessing:
        """Create from plain values.

        >>> prepare = Preprocessing(None, None, None, (4,), "vector")
        >>> Preprocessing.from_dict(json.loads(json.dumps(prepare.to_dict()))) == prepare
        True
        """
        mean, std, resize = (None if facts[name] is None else tuple(facts[name]) for name in ("mean", "std", "resize"))
        table = None if facts["table"] is None else TableEncoder.from_dict(facts["table"])
        return cls(mean, std, facts["crop"], tuple(facts["shape"]), facts["kind"], resize, table)

    def save(self, path: Path) -> None:
        """Write ``preprocessing.json``."""
        atomic_write_text(path, json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> Preprocessing:
        """Read ``preprocessing.json``.

        Raises:
            ValueError: If the file is damaged or has another schema version.
        """
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
            if facts["schema"] != SCHEMA:
                raise ValueError(f"schema must be {SCHEMA}, got {facts['schema']!r}")
            loaded = cls.from_dict(facts)
            Normalize.from_stats(torch.empty(1, *loaded.shape, device="meta"), loaded.mean, loaded.std)  # checks them
            return loaded
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise ValueError(f"{path} cannot be read ({type(error).__name__}: {reason}); train again.") from None

    def _read_picture(self, inputs: Any) -> Tensor:
        if self.resize is None:
            raise ValueError(f"inputs must be arrays of shape {self.shape}, got {type(inputs).__name__}.")
        if isinstance(inputs, (str, os.PathLike)):
            with open_picture(os.fspath(inputs)) as picture:
                return self._fit(picture)
        if not hasattr(inputs, "convert"):
            raise ValueError(f"an image must be a Pillow image, a file name or an array, got {type(inputs).__name__}.")
        from PIL import ImageOps

        return self._fit(ImageOps.exif_transpose(inputs))

    def _fit(self, picture: Picture) -> Tensor:
        assert self.resize is not None
        return torch.from_numpy(fit_picture(picture, *self.resize, channels=self.shape[0]).copy())

    def _channels_first(self, array: np.ndarray, *, prefer: bool) -> np.ndarray:
        """Return an image array as (C, H, W). It may be (H, W) or (H, W, C), and gray, RGB or RGBA for any network."""
        if array.ndim == 2:
            return array[None]
        for channels in dict.fromkeys((self.shape[0], *CHANNELS)) if array.ndim == 3 else ():
            first, last = array.shape[0] == channels, array.shape[2] == channels
            if first and (prefer or not last):
                return array
            if last:
                return array.transpose(2, 0, 1)
        channels = self.shape[0]
        raise ValueError(
            f"an image must have shape (height, width, {channels}) or ({channels}, height, width), got {array.shape}."
        )


def _check_range(array: np.ndarray) -> None:
    """Reject pixels that are neither bytes nor numbers in [0, 1]; NaN is neither."""
    if array.dtype == np.uint8 or not array.size:
        return
    low, high = np.float32(array.min()), np.float32(array.max())
    if not (low >= 0 and high <= 1):
        raise ValueError(
            f"images must be uint8, or floats in [0, 1] without normalization; got {array.dtype} values from {low:g} "
            f"to {high:g}."
        )


def _as_picture(pixels_CHW: np.ndarray) -> Picture:
    """Return an image of bytes. Numbers in [0, 1] are rounded to bytes, as in the file they came from."""
    from PIL import Image

    if pixels_CHW.shape[0] not in CHANNELS:
        raise ValueError(
            f"images with {pixels_CHW.shape[0]} channels cannot be resized; pass them in the model's input size."
        )
    _check_range(pixels_CHW)
    pixels_HWC = pixels_CHW.transpose(1, 2, 0)
    if pixels_HWC.dtype != np.uint8:
        pixels_HWC = np.round(255.0 * pixels_HWC).astype(np.uint8)
    pixels_HWC = np.ascontiguousarray(pixels_HWC)
    return Image.fromarray(pixels_HWC[..., 0] if pixels_HWC.shape[2] == 1 else pixels_HWC)
