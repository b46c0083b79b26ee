"""CSV files as other tools write them, brought to the layouts of :mod:`classgap.audit.io.csv`.

- ``DataFrame.to_csv()`` of pandas puts the row numbers into a first column without a name.
- Hugging Face ``datasets`` name the true class ``label`` (or ``labels``), evaluation loops add ``pred`` (``preds``,
  ``prediction``, ``predictions``, ``predicted_label``), or lists of scores as ``logits`` or ``probabilities``.
- timm's ``inference.py`` writes ``filename`` and, for the top k classes, ``index`` (with ``--include-index``),
  ``label`` and ``prob`` (or ``logit``), each as one column or as columns ``index_0``, ``index_1``, … There ``label`` is
  the predicted class. With ``--topk 0``, ``prob`` holds the scores of all classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

LABELS = ("label", "labels")
PREDICTED = ("pred", "preds", "prediction", "predictions", "predicted_label")
LISTS = ("logits", "probabilities")
TIMM_SCORES = {"prob": "probabilities", "logit": "logits"}


class NumberedRows:
    """Rows of a CSV file without their first cell, and whether that cell always was the number of the row.

    >>> rows = NumberedRows(iter([["0", "a"], ["1", "b"]]))
    >>> list(rows), rows.numbered
    ([['a'], ['b']], True)
    """

    def __init__(self, rows: Any) -> None:
        self.rows = rows
        self.numbered = True
        self._count = 0

    @property
    def line_num(self) -> int:
        """Line of the file that was read last."""
        return int(self.rows.line_num)

    def __iter__(self) -> Iterator[list[str]]:
        for row in self.rows:
            if row:
                self.numbered = self.numbered and row[0].strip() == str(self._count)
                self._count += 1
            yield row[1:]


def rename_columns(header: Sequence[str]) -> list[str]:
    """Rename the columns of Hugging Face files to ``target`` and ``prediction``; leave other files alone.

    >>> rename_columns(["text", "label", "pred"])
    ['text', 'target', 'prediction']
    >>> rename_columns(["label", "score"])
    ['label', 'score']
    """
    labels = [name for name in header if name in LABELS]
    predicted = [name for name in header if name in PREDICTED]
    if "target" in header or len(labels) != 1 or len(predicted) > 1:
        return list(header)
    if not predicted and not any(name in LISTS for name in header):
        return list(header)
    renamed = {labels[0]: "target", **dict.fromkeys(predicted, "prediction")}
    return [renamed.get(name, name) for name in header]


def is_timm(header: Sequence[str]) -> bool:
    """Return whether a header is that of timm's ``inference.py``.

    >>> is_timm(["filename", "label", "prob"]), is_timm(["filename", "label", "pred"])
    (True, False)
    """
    rest = {name.rpartition("_")[0] if name.rpartition("_")[2].isdigit() else name for name in header}
    return "filename" in rest and rest <= {"filename", "index", "label", *TIMM_SCORES} and len(rest) > 1


def timm_content(columns: dict[str, list[str]]) -> dict[str, Any]:
    """Return the predicted classes, or all scores, of timm's columns.

    With both, ``predictions`` are class indices and ``predicted_names`` the names, for targets that are names.

    >>> timm_content({"filename": ["a", "b"], "index_0": ["3", "1"], "index_1": ["5", "2"]})["predictions"].tolist()
    ['3', '1']
    """
    files = {"filename": np.array(columns["filename"])}
    found = [
        np.array([first_entry(text) for text in columns[column]])
        for name in ("index", "label")
        for column in (name, f"{name}_0")
        if column in columns
    ]
    if found:
        return files | dict(zip(("predictions", "predicted_names"), found, strict=False))
    for name, kind in TIMM_SCORES.items():
        if name in columns:
            return files | {kind: parse_lists(name, columns[name])}
        if f"{name}_0" in columns:
            names = [f"{name}_{i}" for i in range(sum(column.startswith(f"{name}_") for column in columns))]
            return files | {kind: np.array([columns[each] for each in names]).astype(np.float32).T}
    raise ValueError(f"columns index, label, prob or logit are missing, found {', '.join(columns)}.")


def first_entry(text: str) -> str:
    """Return the first entry of a list that NumPy printed, or the text itself.

    >>> first_entry("[7 3 5]"), first_entry("['tabby' 'lynx']"), first_entry("tabby")
    ('7', 'tabby', 'tabby')
    """
    inner = text.strip()
    if not (inner.startswith("[") and inner.endswith("]")):
        return inner
    inner = inner[1:-1].strip()
    if inner[:1] in ("'", '"'):
        return inner[1:].partition(inner[0])[0]
    return inner.replace(",", " ").split()[0] if inner else ""


def parse_lists(what: str, texts: Sequence[str]) -> NDArray[np.float32]:
    """Parse lists of numbers, separated by commas or spaces, into a matrix.

    Raises:
        ValueError: if an entry is not a list of numbers, or the lists have different lengths.

    >>> parse_lists("logits", ["[1, 2.5]", "[0.5 3]"]).tolist()
    [[1.0, 2.5], [0.5, 3.0]]
    """
    rows: list[NDArray[np.float32]] = []
    for i, text in enumerate(texts):
        try:
            rows.append(np.array(text.strip().strip("[]()").replace(",", " ").split(), dtype=np.float32))
        except ValueError:
            raise ValueError(
                f"column {what} must hold lists of numbers, got {text[:40]!r} in sample {i + 1}."
            ) from None
        if len(rows[i]) != len(rows[0]):
            raise ValueError(
                f"column {what} must hold lists of equal length, got {len(rows[0])} numbers in sample 1 and "
                f"{len(rows[i])} in sample {i + 1}."
            )
    return np.stack(rows)
