"""Write predictions as ``.npz``, ``.safetensors`` or ``.csv``, in the layouts that ``classgap audit`` reads."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from torch import Tensor

from classgap._atomic_write import atomic_write
from classgap._csv_cells import escape_cell
from classgap._tensor_files import serialize_tensors
from classgap.audit.io.fields import LOGIT_COLUMN
from classgap.inference.results import PredictResult
from classgap.inference.samples import InputSamples

SUFFIXES = (".npz", ".safetensors", ".csv")
PROBABILITY_COLUMN = "probability:"


def check_suffix(path: Path) -> None:
    """Reject a file of another type.

    Raises:
        ValueError: If the suffix is none of :data:`SUFFIXES`.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"--out must end in {', '.join(SUFFIXES)}; got {path}.")


def write_predictions(
    path: Path,
    result: PredictResult,
    samples: InputSamples,
    *,
    top_k: int | None = None,
    train_counts: Tensor | None = None,
) -> None:
    """Write predictions completely or not at all.

    Arrays: ``logits``, ``probabilities`` and, where known, ``targets``, ``index``, ``filenames``, ``train_counts``,
    ``top_k`` (classes, best first) and ``top_k_scores``; ``class_names`` always. Safetensors has texts as JSON in its
    metadata. A CSV file has one row per sample: names in ``target``, ``prediction`` and ``top1``, …, and the columns
    ``logit:CLASS`` and ``probability:CLASS`` in full precision. There, text that a spreadsheet would run as a
    formula starts with an apostrophe, which ``classgap audit`` removes.

    Args:
        path: File to write.
        result: Predictions.
        samples: The predicted samples.
        top_k: Number of best classes to list.
        train_counts: Training samples of each class.

    Raises:
        ValueError: If the suffix is unknown or ``top_k`` is out of range.
    """
    check_suffix(path)
    tensors: dict[str, Tensor | None] = {
        "logits": result.logits,
        "probabilities": result.probabilities,
        "targets": samples.targets,
        "index": samples.index,
        "train_counts": train_counts,
    }
    if top_k is not None:
        tensors["top_k"], tensors["top_k_scores"] = result.top_k(top_k)
    given = {name: tensor.contiguous() for name, tensor in tensors.items() if tensor is not None}
    texts = {"class_names": result.class_names} | (
        {} if samples.filenames is None else {"filenames": samples.filenames}
    )
    write = {".npz": _write_npz, ".safetensors": _write_safetensors, ".csv": _write_csv}[path.suffix.lower()]
    with atomic_write(path) as file:
        write(file, given, texts)


def _write_npz(file: BinaryIO, tensors: dict[str, Tensor], texts: dict[str, tuple[str, ...]]) -> None:
    arrays: dict[str, Any] = {name: tensor.numpy() for name, tensor in tensors.items()}
    arrays |= {name: np.array(each) for name, each in texts.items()}
    np.savez(file, **arrays)


def _write_safetensors(file: BinaryIO, tensors: dict[str, Tensor], texts: dict[str, tuple[str, ...]]) -> None:
    metadata = {name: json.dumps(list(each), ensure_ascii=False) for name, each in texts.items()}
    file.write(serialize_tensors(tensors, metadata))


def _write_csv(file: BinaryIO, tensors: dict[str, Tensor], texts: dict[str, tuple[str, ...]]) -> None:
    names = texts["class_names"]
    cells = np.array([escape_cell(name) for name in names], dtype=object)
    logits_NK = tensors["logits"].numpy()
    columns: dict[str, Any] = {"filename": map(escape_cell, texts["filenames"])} if "filenames" in texts else {}
    if "index" in tensors:
        columns["index"] = tensors["index"].tolist()
    if "targets" in tensors:
        columns["target"] = cells[tensors["targets"].numpy()]
    columns["prediction"] = cells[logits_NK.argmax(axis=1)]
    if "top_k" in tensors:
        scores_Nk = tensors["top_k_scores"].numpy()
        for place in range(scores_Nk.shape[1]):
            columns[f"top{place + 1}"] = cells[tensors["top_k"][:, place].numpy()]
            columns[f"top{place + 1}_score"] = _digits(scores_Nk[:, place])
    columns |= {f"{LOGIT_COLUMN}{name}": _digits(logits_NK[:, k]) for k, name in enumerate(names)}
    if "probabilities" in tensors:
        columns |= {
            f"{PROBABILITY_COLUMN}{name}": _digits(tensors["probabilities"][:, k].numpy())
            for k, name in enumerate(names)
        }
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    text.detach()  # the caller closes the file


def _digits(values_N: np.ndarray) -> list[str]:
    """Return the shortest text of each float32 that reads back as the same number."""
    return [str(each) for each in values_N.astype(np.float32)]
