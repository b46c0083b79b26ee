"""Read prediction files in CSV: a header and one row per sample, in one of three layouts.

- ``target`` and ``prediction`` columns, both class names or both class indices. The classes are the labels that occur.
  Other columns are ignored with a notice.
- A ``target`` column and one column of scores per class, named after the class. ``target`` is a class name or, if no
  name matches, a class index from 0. Scores in [0, 1] whose rows sum to 1 are probabilities, others are logits; with
  few decimals, a row sum may be off by half a unit of the last decimal per class. A column that numbers the samples is
  an error.

- The file of ``classgap predict``: a ``target`` column and one column ``logit:CLASS`` per class. Other columns are for
  people.

Instead of one column per class, a column ``logits`` or ``probabilities`` may hold a list for each sample. All layouts
may have an ``index`` column with the id of the sample (its position in the test set, another integer, or a string), a
``valid_labels`` column with the labels that are right for the sample, separated by "|" (empty if none is), columns that
divide the samples into slices, and columns ``filename`` and ``text`` for thumbnails. Among scores, these two are
classes if all their cells are numbers. Files of other tools are read as they come:
:mod:`classgap.audit.io.csv_layouts`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from classgap._csv_cells import unescape_cell
from classgap.audit._types import Floats, Integers
from classgap.audit.io.csv_layouts import LISTS, NumberedRows, is_timm, parse_lists, rename_columns, timm_content
from classgap.audit.io.fields import LOGIT_COLUMN, SAMPLE_COLUMNS, suggest_rename
from classgap.audit.io.probabilities import are_probabilities
from classgap.audit.io.wanted import NOTHING, Wanted
from classgap.audit.results import Notice

MAX_SHOWN = 40  # characters of a cell shown in a message

LIKELY_SUMS = (0.5, 2.0)  # median row sums of scores in [0, 1] that were probably meant to be 1

Content = tuple[dict[str, Any], tuple[Notice, ...]]  # arrays by name, and notices


def read_csv(path: Path, wanted: Wanted = NOTHING) -> Content:
    """Read a CSV file into arrays, named as in an ``.npz`` file, and notices about how it was interpreted.

    Args:
        path: file to read.
        wanted: columns to keep in addition to those of the layout.

    Raises:
        ValueError: if the file is not a valid prediction file. The message does not contain the path.
        OSError: if the file cannot be read.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, strict=True)
            header = [column.strip() for column in next(rows, [])]
            texts = _text_columns(path, header)
            if header[:1] == [""] and len(header) > 1:  # the row numbers of a DataFrame
                return _read_numbered(header, rows, wanted, texts)
            return _read(header, rows, wanted, texts)
    except UnicodeDecodeError:
        raise ValueError("the file is not UTF-8 text: save it with UTF-8 encoding.") from None
    except csv.Error as error:
        raise ValueError(f"the file is not valid CSV: {error}.") from None


def _read_numbered(header: list[str], rows: Any, wanted: Wanted, texts: Collection[str]) -> Content:
    """Read a file whose first column has no name; it is dropped if it numbers the rows."""
    numbered = NumberedRows(rows)
    content, notices = _read(header[1:], numbered, wanted, texts)
    if numbered.numbered:
        return content, notices
    if "predictions" not in content:
        raise ValueError("column 1 has no name: name it after its class or remove it.")
    return content, (*notices, Notice("unused-columns", {"names": ("column 1",)}))


def _read(header: list[str], rows: Any, wanted: Wanted, texts: Collection[str]) -> Content:
    if is_timm(header):
        columns = _read_columns(header, header, rows)
        wanted.check(header)
        return {name: columns[name] for name in wanted.names} | timm_content(columns), ()
    header = rename_columns(header)
    if "target" not in header:
        raise ValueError(f"column target is missing, found {_join(header)}{_target_hint(header)}.")
    if len(set(header)) != len(header):
        duplicate = next(column for i, column in enumerate(header) if column in header[:i])
        raise ValueError(f"column names must be unique, but {duplicate!r} appears more than once.")
    wanted.check(header)
    extra = ExtraColumns(header, wanted.names)
    if any(column.startswith(LOGIT_COLUMN) for column in header):
        return _read_logits(header, rows, extra)
    if "prediction" in header:
        return _read_labels(header, rows, extra)
    lists = [name for name in LISTS if name in header]
    return _read_lists(header, lists[0], rows, extra) if lists else _read_scores(header, rows, extra, texts)


def _read_lists(header: list[str], kind: str, rows: Any, extra: ExtraColumns) -> Content:
    """Read a column that holds the scores of all classes as a list."""
    wanted = ["target", kind, *(["index"] if "index" in header else [])]
    columns = _read_columns(header, wanted, rows, extra)
    content = {"targets": np.array(columns["target"]), kind: parse_lists(kind, columns[kind])}
    if "index" in columns:
        content["index"] = _to_ids(columns["index"])
    unused = tuple(_unnamed(header, {*wanted, *extra.places, *SAMPLE_COLUMNS}))
    return extra.content | content, (Notice("unused-columns", {"names": unused}),) if unused else ()


def _read_logits(header: list[str], rows: Any, extra: ExtraColumns) -> Content:
    """Read a file of ``classgap predict``: the columns ``logit:CLASS``."""
    columns = [i for i, name in enumerate(header) if name.startswith(LOGIT_COLUMN)]
    logits: list[NDArray[np.float32]] = []
    content = _read_numbers(header, rows, extra, columns, lambda row_K: logits.append(row_K.astype(np.float32)))
    names = [header[i].removeprefix(LOGIT_COLUMN) for i in columns]
    texts: dict[str, Any] = {
        name: [unescape_cell(cell) for cell in content[name]]
        for name in extra.places
        if name not in ("valid_labels", "index")
    }
    for name in ("targets", "index"):
        if name in content and content[name].dtype.kind == "U":
            texts[name] = np.array([unescape_cell(cell) for cell in content[name].tolist()])
    content |= texts
    return content | {"logits": np.stack(logits), "class_names": names}, ()


def _read_numbers(
    header: list[str], rows: Any, extra: ExtraColumns, columns: Sequence[int], add: Callable[[Floats], None]
) -> dict[str, Any]:
    """Pass the numbers of each sample to ``add``, and return its target, index and extra columns."""
    target, index = header.index("target"), header.index("index") if "index" in header else None
    targets, numbers = [], []
    for row in rows:
        if not row:
            continue
        _check_width(row, header, rows.line_num)
        extra.add(row)
        targets.append(row[target].strip())
        if index is not None:
            numbers.append(row[index].strip())
        try:
            add(np.array([row[i] for i in columns], dtype=np.float64))
        except ValueError:
            raise ValueError(_not_a_number(rows.line_num, {header[i]: row[i] for i in columns})) from None
    if not targets:
        raise ValueError("the file has no samples, only a header.")
    content = {**extra.content, "targets": np.array(targets)}
    return content if index is None else content | {"index": _to_ids(numbers)}


def _unnamed(header: list[str], taken: Collection[str]) -> list[str]:
    """Return the other columns, by name or number."""
    return [name or f"column {i + 1}" for i, name in enumerate(header) if name not in taken]


def _read_columns(
    header: list[str], wanted: Sequence[str], rows: Any, extra: ExtraColumns | None = None
) -> dict[str, list[str]]:
    """Read the cells of some columns and of the extra ones; only extra cells may be empty."""
    places = {name: header.index(name) for name in wanted}
    columns: dict[str, list[str]] = {name: [] for name in wanted}
    for row in rows:
        if row:
            _check_width(row, header, rows.line_num)
            if extra is not None:
                extra.add(row)
            for name, place in places.items():
                columns[name].append(row[place].strip())
                if not columns[name][-1]:
                    raise ValueError(f"line {rows.line_num}: {name} must not be empty.")
    if not columns[wanted[0]]:
        raise ValueError("the file has no samples, only a header.")
    return columns


def _read_labels(header: list[str], rows: Any, extra: ExtraColumns) -> Content:
    wanted = [name for name in ("target", "prediction", "index") if name in header]
    columns = _read_columns(header, wanted, rows, extra)
    content: dict[str, Any] = {name: np.array(column) for name, column in columns.items()}
    result = {"targets": content["target"], "predictions": content["prediction"]}
    if "index" in content:
        result["index"] = _to_ids(content["index"])
    unused = _unnamed(header, {*wanted, *extra.places, *SAMPLE_COLUMNS})
    return extra.content | result, _unused(unused, classes=len({*content["target"], *content["prediction"]}))


def _unused(columns: list[str], classes: int) -> tuple[Notice, ...]:
    """Notice about columns other than ``prediction``; if there are as many as classes, they may be scores."""
    if not columns:
        return ()
    code = "unused-columns-maybe-scores" if len(columns) >= classes > 1 else "unused-columns"
    return (Notice(code, {"names": tuple(columns)}),)


def _text_columns(path: Path, header: list[str]) -> set[str]:
    """Return the columns named ``filename`` or ``text`` that do not hold numbers."""
    columns = {i for i, name in enumerate(header) if name in SAMPLE_COLUMNS}
    found: set[int] = set()
    if columns:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, strict=True)
            next(rows)
            for row in rows:
                found |= {i for i in columns - found if i < len(row) and not _is_number(row[i])}
                if found == columns:
                    break
    return {header[i] for i in found}


def _read_scores(header: list[str], rows: Any, extra: ExtraColumns, texts: Collection[str]) -> Content:
    target, index = header.index("target"), header.index("index") if "index" in header else None
    others = {target, index, *extra.places.values(), *(header.index(name) for name in texts)}
    classes = [i for i in range(len(header)) if i not in others]
    if not classes:
        raise ValueError("column prediction is missing: add it, or one column of scores per class.")
    if "" in header:
        raise ValueError(f"column {header.index('') + 1} has no name: name it after its class or remove it.")
    scores = ScoreColumns([header[i] for i in classes])
    content = _read_numbers(header, rows, extra, classes, scores.add)
    kind, scores_NK = scores.finish(set(content["targets"].tolist()))
    content |= {kind: scores_NK, "class_names": scores.names}
    return content, (Notice("columns-are-classes", {"classes": len(classes), "kind": kind}),)


class ExtraColumns:
    """Collect the sets of valid labels and other columns to keep.

    >>> extra = ExtraColumns(["target", "valid_labels", "camera"], ["camera"])
    >>> extra.add(["cat", "cat|dog", "left"])
    >>> extra.content
    {'valid_labels': [['cat', 'dog']], 'camera': ['left']}
    """

    def __init__(self, header: Sequence[str], kept: Sequence[str]) -> None:
        self.places = {name: header.index(name) for name in ("valid_labels", *kept) if name in header}
        self.content: dict[str, list[Any]] = {name: [] for name in self.places}

    def add(self, row: Sequence[str]) -> None:
        """Add the cells of one sample."""
        for name, place in self.places.items():
            cell = row[place].strip()
            self.content[name].append(split_labels(cell) if name == "valid_labels" else cell)


def split_labels(cell: str) -> list[str]:
    """Split a cell of valid labels.

    >>> split_labels("cat | dog"), split_labels("")
    (['cat', 'dog'], [])
    """
    return [label.strip() for label in cell.split("|")] if cell else []


class ScoreColumns:
    """Collect rows of scores and decide whether they are probabilities or logits.

    Rows are checked as they are added, so that only one copy is kept, in single precision.

    >>> columns = ScoreColumns(["cat", "dog"])
    >>> columns.add(np.array([0.67, 0.34]))
    >>> kind, scores_NK = columns.finish(targets={"cat"})
    >>> kind, scores_NK.sum(axis=1).tolist()
    ('probabilities', [1.0])
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.rows: list[NDArray[np.float32]] = []
        self.sums: list[float] = []
        self.in_range = True
        # Values of each column that holds distinct integers so far.
        self.distinct: dict[int, set[float]] = {i: set() for i in range(len(names))}

    def add(self, row_K: Floats) -> None:
        """Add the scores of one sample."""
        for i in list(self.distinct):
            value = float(row_K[i])
            if value.is_integer() and value not in self.distinct[i]:
                self.distinct[i].add(value)
            else:
                del self.distinct[i]
        self.in_range = self.in_range and bool(((row_K >= 0) & (row_K <= 1)).all())
        if self.in_range:
            self.sums.append(float(row_K.sum()))
        with np.errstate(over="ignore"):  # infinities are reported
            self.rows.append(row_K.astype(np.float32))

    def finish(self, targets: Collection[str]) -> tuple[str, NDArray[np.float32]]:
        """Return "probabilities" or "logits", and the scores; rounded probabilities are rescaled to sum to 1.

        Raises:
            ValueError: if a column numbers the samples, or it is unclear whether the scores are probabilities.
        """
        self._check_sample_numbers(targets)
        scores_NK = np.stack(self.rows)
        if not self.in_range:
            return "logits", scores_NK
        sums_N = np.array(self.sums)
        if are_probabilities(torch.from_numpy(scores_NK)):
            return "probabilities", (scores_NK / sums_N[:, None]).astype(np.float32)
        if LIKELY_SUMS[0] <= float(np.median(sums_N)) <= LIKELY_SUMS[1]:
            worst = int(np.abs(sums_N - 1).argmax())
            raise ValueError(
                f"the scores look like probabilities, but those of sample {worst + 1} sum to {sums_N[worst]:.4g} "
                "instead of 1: keep exactly one column per class, or save logits."
            )
        return "logits", scores_NK

    def _check_sample_numbers(self, targets: Collection[str]) -> None:
        # If all columns hold distinct integers, these are the scores.
        if len(self.rows) < 2 or len(self.distinct) == len(self.names):
            return
        for i in self.distinct:
            if self.names[i] not in targets:
                raise ValueError(
                    f"column {self.names[i]!r} seems to number the samples (distinct integers, and no target is "
                    f"{self.names[i]!r}): rename it to index or remove it."
                )


def _not_a_number(line: int, cells: dict[str, str]) -> str:
    name = next(name for name, text in cells.items() if not _is_number(text))
    value = cells[name] if len(cells[name]) <= MAX_SHOWN else cells[name][:MAX_SHOWN] + "…"
    hint = suggest_rename(["prediction"], [name]) or "remove columns that are not scores of a class"
    return f"line {line}: column {name!r} must be a number, got {value!r}: {hint}."


def _is_number(text: str) -> bool:
    try:
        np.array([text], dtype=np.float64)  # the conversion used for the whole row
    except ValueError:
        return False
    return True


def _check_width(row: list[str], header: list[str], line: int) -> None:
    if len(row) != len(header):
        raise ValueError(f"line {line} must have {len(header)} fields, like the header, got {len(row)}.")


def _to_ids(texts: Sequence[str]) -> Integers | NDArray[np.str_]:
    """Return sample ids as integers if all of them are, else as strings."""
    try:
        return np.array([int(text) for text in texts])
    except ValueError:
        if all(map(_is_number, texts)):  # the same samples may be 1 in another file
            odd = next(text for text in texts if not text.removeprefix("-").isdecimal())
            raise ValueError(
                f"column index must hold integers or strings, got {str(odd)!r}: save whole numbers."
            ) from None
    return np.array(texts)


def _join(columns: list[str]) -> str:
    return ", ".join(columns[:6]) + (" …" if len(columns) > 6 else "") if any(columns) else "nothing"


def _target_hint(header: list[str]) -> str:
    """Suggest how to fix a header without ``target``."""
    for separator, name in ((";", "semicolons"), ("\t", "tabs")):
        if any(separator in column for column in header):
            return f": separate columns with commas, not {name}"
    hint = suggest_rename(["target"], header)
    return f": {hint}" if hint else ""
