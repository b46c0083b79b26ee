"""Small pictures and short texts of misclassified test samples, within a size budget.

Samples are read by number, ``samples[number]``, so a test set, a list or a mapping will do; a mapping may have the ids
that were audited as keys. A sample is

- a string: a text;
- a path, an image of Pillow, or an array or tensor of shape (H, W), (H, W, C) or (C, H, W): a picture;
- a tuple or list whose first item is one of these, or a mapping with "image", "img" or "text", as datasets return.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from markupsafe import Markup

from classgap._regular_files import check_regular_file
from classgap.audit._types import SampleId
from classgap.audit.audit import Audit
from classgap.audit.figures import ClassResult
from classgap.audit.io.sample_ids import sample_number
from classgap.report.formatting import printable, truncate, word_parts
from classgap.report.ordering import sort_by_accuracy
from classgap.report.sample_numbers import misclassified, predicted_classes

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

MAX_BYTES = 1_000_000  # that thumbnails may add to a page
MARKUP_BYTES = 600  # of the headings of a class, without its name
MAX_CLASSES = 10
PER_ROW = 8
SIDE = 112  # pixels of the longer side of a picture
TINY = 64  # pictures up to this size are stored without loss and drawn larger
QUALITY = 80
MAX_TEXT = 360  # characters
MAX_NAME = 60  # columns of a class name below a picture
KEYS = ("image", "img", "text")  # of samples that are mappings


class SamplesByNumber(Protocol):
    """Test samples by number or id."""

    def __getitem__(self, number: Any, /) -> Any:
        """Return one sample."""
        ...


@dataclass(frozen=True)
class ThumbnailRow:
    """Samples of one kind: its title, and an element for each sample."""

    title: str
    items: tuple[Markup, ...]


@dataclass(frozen=True)
class ThumbnailSection:
    """Samples of the worst classes.

    Attributes:
        classes: each class with its rows.
        left_out: samples without a place in the size budget.
        unreadable: samples that could not be read.
    """

    classes: tuple[tuple[ClassResult, tuple[ThumbnailRow, ...]], ...]
    left_out: int
    unreadable: int


def thumbnail_section(audit: Audit, samples: SamplesByNumber) -> ThumbnailSection:
    """Read and shrink the samples to show, for the classes with the lowest accuracy.

    A row's first sample comes before any row's second, so the budget cuts all rows alike.

    Args:
        audit: the audit.
        samples: test samples by number; see the module's docstring.

    Raises:
        ValueError: if no sample can be read.
    """
    wanted = _wanted(audit)
    ids = {sample_number(key): key for key in samples if isinstance(key, str)} if isinstance(samples, Mapping) else {}
    predicted = predicted_classes(audit, {n for rows in wanted.values() for numbers in rows.values() for n in numbers})
    room = MAX_BYTES - sum(MARKUP_BYTES + _size(Markup.escape(audit.class_names[index])) for index in wanted)
    found: dict[tuple[int, str], list[Markup]] = {}
    left_out, unreadable, reason = 0, 0, ""
    for index, title, sample in _round_robin(wanted):
        number = sample_number(sample)
        shown = ids.get(number, sample)
        try:
            content = _content(samples[ids.get(number, number)])
            item = _element(content, printable(str(shown)), audit.class_names[predicted[sample]])
        except MemoryError:
            raise
        except Exception as error:  # Pillow's decoders and datasets raise errors of many kinds
            unreadable, reason = unreadable + 1, reason or f"sample {shown}: {error or type(error).__name__}"
            continue
        if _size(item) > room:
            left_out += 1
            continue
        room -= _size(item)
        found.setdefault((index, title), []).append(item)
    if unreadable and not found and not left_out:
        raise ValueError(f"thumbnails: none of the {unreadable} samples can be read ({reason}).")
    return ThumbnailSection(
        tuple((audit.classes[index], rows) for index in wanted if (rows := _rows(found, index))), left_out, unreadable
    )


def _wanted(audit: Audit) -> dict[int, dict[str, tuple[SampleId, ...]]]:
    """Class → title of the row → samples, for the worst classes with errors."""
    wanted = {}
    for entry in sort_by_accuracy(audit.classes):
        rows: dict[str, tuple[SampleId, ...]] = {
            "Doubted labels": entry.doubted_samples[:PER_ROW],
            "Confidently wrong": tuple(n for n in entry.confident_errors if n not in entry.doubted_samples)[:PER_ROW],
        }
        shown = {sample_number(sample) for samples in rows.values() for sample in samples}
        if len(shown) < PER_ROW:
            errors = misclassified(audit, entry.index, 2 * PER_ROW)
            rest = tuple(number for number in errors if number not in shown)[: PER_ROW - len(shown)]
            rows["Other errors" if shown else "Errors"] = rest
        rows = {title: numbers for title, numbers in rows.items() if numbers}
        if rows:
            wanted[entry.index] = rows
        if len(wanted) == MAX_CLASSES:
            break
    return wanted


def _round_robin(wanted: Mapping[int, Mapping[str, tuple[SampleId, ...]]]) -> Iterator[tuple[int, str, SampleId]]:
    for place in range(PER_ROW):
        for index, rows in wanted.items():
            for title, numbers in rows.items():
                if place < len(numbers):
                    yield index, title, numbers[place]


def _rows(found: Mapping[tuple[int, str], list[Markup]], index: int) -> tuple[ThumbnailRow, ...]:
    return tuple(ThumbnailRow(title, tuple(items)) for (owner, title), items in found.items() if owner == index)


def _element(sample: Any, shown: str, predicted: str) -> Markup:
    """Return the list item of one sample, with its id."""
    name = truncate(printable(predicted), MAX_NAME)
    caption = Markup("<span>→ {}</span><small>{}</small>").format(
        Markup("<wbr>").join(word_parts(name)), Markup("<wbr>").join(word_parts(shown))
    )
    if isinstance(sample, str):
        text = printable(" ".join(sample.split()))
        shown = text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
        return Markup("<li class=text><q dir=auto>{}</q>{}</li>").format(shown, caption)
    picture = _shrink(_open(sample))
    hint = f"{os.path.basename(os.fspath(sample))}, " if isinstance(sample, os.PathLike) else ""
    return Markup('<li><img src="{}" alt="{}" width={} height={}{}>{}</li>').format(
        _data_uri(picture),
        printable(f"{hint}test sample {shown}, predicted as {name}"),
        picture.width,
        picture.height,
        Markup(" class=tiny") if max(picture.size) <= TINY else "",
        caption,
    )


def _content(sample: Any) -> Any:
    """Return the picture or text of a dataset's item."""
    if isinstance(sample, Mapping):
        return next(sample[key] for key in KEYS if key in sample)
    return sample[0] if isinstance(sample, tuple | list) else sample


def _open(sample: Any) -> Picture:
    """Return a sample as an RGB image."""
    from PIL import Image, ImageOps

    if isinstance(sample, os.PathLike):
        check_regular_file(sample)
        with Image.open(sample) as file:
            file.draft("RGB", (2 * SIDE, 2 * SIDE))  # decodes large JPEG files at a fraction of their size
            return _to_rgb(ImageOps.exif_transpose(file))
    if isinstance(sample, Image.Image):
        return _to_rgb(sample)
    if hasattr(sample, "detach"):
        sample = sample.detach().cpu().numpy()
    return Image.fromarray(to_pixels(np.asarray(sample)))


def _to_rgb(image: Picture) -> Picture:
    from PIL import Image

    if image.mode.startswith("I;16"):  # convert() would clip 16 bits at 255 instead of scaling
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    return image.convert("RGBA").convert("RGB") if "transparency" in image.info else image.convert("RGB")


def to_pixels(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Convert an array of shape (H, W), (H, W, C) or (C, H, W) to uint8 pixels of shape (H, W, 3).

    Integers are used as they are, and floats in [0, 1] are scaled to 255. Other floats, such as normalized images, are
    scaled from their smallest to their largest value.

    >>> to_pixels(np.array([[0.0, 1.0]]))[0].tolist()
    [[0, 0, 0], [255, 255, 255]]
    """
    if array.ndim == 2:
        array = array[:, :, None]
    elif array.ndim == 3 and array.shape[0] in (1, 3, 4) and array.shape[2] not in (1, 3, 4):
        array = array.transpose(1, 2, 0)
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4) or not array.size:
        raise ValueError(f"an image must have shape (H, W), (H, W, C) or (C, H, W), got {array.shape}")
    if array.dtype.kind == "f":
        array = np.nan_to_num(array.astype(np.float64))
        low, high = (0.0, 1.0) if array.min() >= 0 and array.max() <= 1 else (array.min(), array.max())
        array = np.rint(255 * (array - low) / ((high - low) or 1.0))
    elif array.dtype.kind == "b":
        array = 255 * array.astype(np.int64)
    array = array[:, :, :3].clip(0, 255).astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(array, (*array.shape[:2], 3)))


def _shrink(image: Picture) -> Picture:
    if max(image.size) > SIDE:
        from PIL import Image

        image = image.copy()
        image.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    return image


def _data_uri(image: Picture) -> str:
    file = io.BytesIO()
    kind = "PNG" if max(image.size) <= TINY else "JPEG"
    clean = image.copy()
    clean.info = {}  # no metadata of the original, such as where a photograph was taken
    clean.save(file, kind, **({"optimize": True} if kind == "PNG" else {"quality": QUALITY, "optimize": True}))
    return f"data:image/{kind.lower()};base64,{base64.b64encode(file.getvalue()).decode('ascii')}"


def _size(markup: Markup) -> int:
    return len(markup.encode()) + 1  # with a line break
