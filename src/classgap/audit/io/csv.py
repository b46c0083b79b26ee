"""Prediction files in CSV: a header line and a line a sample, in one of two forms.

- ``target`` and ``prediction``, both class names or both class numbers; the classes are those that occur, and further
  columns are passed over, with a remark;
- ``target`` and one column a class, headed by the class's name, that holds its probability or its logit. ``target`` is
  a class name or, if no name fits, a class number from 0. Scores from 0 to 1 of which every row sums to 1 are
  probabilities; two decimals may be 0.005 a class off. A column that numbers the samples is refused.

A column ``index`` may hold each sample's number in the test set.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from classgap.audit.io.csv_scores import ScoreColumns
from classgap.audit.io.near_names import renaming
from classgap.audit.results import Notice

LONGEST = 40  # letters of a cell that are shown

Content = tuple[dict[str, Any], tuple[Notice, ...]]  # arrays by name, and notices


def read_csv(path: Path) -> Content:
    """What the file holds, by the names of the arrays in an ``.npz``, and remarks on how it was taken.

    Raises:
        ValueError: in one sentence, without the file's name.
        OSError: if it cannot be read.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, strict=True)
            header = [column.strip() for column in next(rows, [])]
            if "target" not in header:
                raise ValueError(f"the column target is missing; the header has {_short(header)}{_mending(header)}.")
            if len(set(header)) != len(header):
                twice = next(column for i, column in enumerate(header) if column in header[:i])
                raise ValueError(f"column names, and so class names, must differ; {twice!r} appears more than once.")
            return _labels(header, rows) if "prediction" in header else _scores(header, rows)
    except UnicodeDecodeError:
        raise ValueError("it is not a text file in UTF-8.") from None
    except csv.Error as error:
        raise ValueError(f"it is not well-formed CSV: {error}.") from None


def _labels(header: list[str], rows: Any) -> Content:
    wanted = [name for name in ("target", "prediction", "index") if name in header]
    columns = [header.index(name) for name in wanted]
    entries: list[list[str]] = []
    for row in rows:
        if row:
            _check_width(row, header, rows.line_num)
            entries.append([row[column].strip() for column in columns])
            if "" in entries[-1]:
                raise ValueError(f"line {rows.line_num} has an empty {wanted[entries[-1].index('')]}.")
    if not entries:
        raise ValueError("there are no samples below the header.")
    content: dict[str, Any] = dict(
        zip(wanted, (np.array(column) for column in zip(*entries, strict=True)), strict=True)
    )
    result = {"targets": content["target"], "predictions": content["prediction"]}
    if "index" in content:
        result["index"] = _whole(content["index"])
    unused = [name or f"column {i + 1}" for i, name in enumerate(header) if name not in wanted]
    return result, _unused(unused, classes=len({*content["target"], *content["prediction"]}))


def _unused(columns: list[str], classes: int) -> tuple[Notice, ...]:
    """Notice about columns beside ``prediction``; as many as there are classes may be the scores of these."""
    if not columns:
        return ()
    code = "unused-columns-maybe-scores" if len(columns) >= classes > 1 else "unused-columns"
    return (Notice(code, {"names": tuple(columns)}),)


def _scores(header: list[str], rows: Any) -> Content:
    target, index = header.index("target"), header.index("index") if "index" in header else None
    classes = [i for i in range(len(header)) if i not in (target, index)]
    if not classes:
        raise ValueError("the column prediction is missing, and there is no column for any class either.")
    if "" in header:
        raise ValueError(f"column {header.index('') + 1} has no name: head it with a class, or leave it out.")
    targets, numbers, scores = [], [], ScoreColumns([header[i] for i in classes])
    for row in rows:
        if not row:
            continue
        _check_width(row, header, rows.line_num)
        targets.append(row[target].strip())
        if index is not None:
            numbers.append(row[index].strip())
        try:
            scores.add(np.array([row[i] for i in classes], dtype=np.float64))
        except ValueError:
            raise ValueError(_no_number(rows.line_num, {header[i]: row[i] for i in classes})) from None
    if not targets:
        raise ValueError("there are no samples below the header.")
    kind, scores_NK = scores.finish(set(targets))
    content = {"targets": np.array(targets), kind: scores_NK, "class_names": scores.names}
    if index is not None:
        content["index"] = _whole(numbers)
    return content, (Notice("columns-are-classes", {"classes": len(classes), "kind": kind}),)


def _no_number(line: int, cells: dict[str, str]) -> str:
    name = next(name for name, text in cells.items() if not _is_number(text))
    value = cells[name] if len(cells[name]) <= LONGEST else cells[name][:LONGEST] + "…"
    hint = renaming(["prediction"], [name]) or "leave out columns that score no class"
    return f"line {line} must hold a number for each class, but has {value!r} in the column {name!r}: {hint}."


def _is_number(text: str) -> bool:
    try:
        np.array([text], dtype=np.float64)  # as the whole line is read
    except ValueError:
        return False
    return True


def _check_width(row: list[str], header: list[str], line: int) -> None:
    if len(row) != len(header):
        raise ValueError(f"line {line} has {len(row)} fields, the header {len(header)}.")


def _whole(texts: Any) -> Any:
    try:
        return np.array([int(text) for text in texts])
    except ValueError:
        raise ValueError("the column index must hold whole numbers.") from None


def _short(header: list[str]) -> str:
    return ", ".join(header[:6]) + (" …" if len(header) > 6 else "") if any(header) else "nothing"


def _mending(header: list[str]) -> str:
    """How a header without ``target`` may get one."""
    for sign, called in ((";", "';'"), ("\t", "a tab")):
        if any(sign in column for column in header):
            return f": columns must be separated by a comma, not by {called}"
    hint = renaming(["target"], header)
    return f": {hint}" if hint else ""
