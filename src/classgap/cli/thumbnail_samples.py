"""The test samples that ``classgap audit --thumbnails`` shows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from classgap.audit import Audit
from classgap.audit._types import SampleId
from classgap.audit.io.sample_columns import READERS, read_sample_column
from classgap.audit.io.shards import find_shards
from classgap.data.dataset import Split
from classgap.report.thumbnails import SamplesByNumber

MISSING = "pass --images FOLDER and filenames in the prediction file, texts in it, or a run directory of images"


def find_samples(audit: Audit, images: Path | None) -> SamplesByNumber:
    """Return the test samples of an audit: files in ``images``, texts of the prediction file, or the data of its run.

    Raises:
        ValueError: if the audit has none of them, or they are not its samples.
    """
    if audit.source is None:
        raise ValueError(f"--thumbnails needs samples: {MISSING}.")
    file = Path(audit.source.predictions)
    if find_shards(file) is None and not file.exists():  # of a saved audit
        raise ValueError(f"--thumbnails needs the prediction file {file}, which does not exist.")
    if images is not None:
        return _files(file, images, audit.source.key)
    if audit.source.run is not None:
        return _run_samples(audit, Path(audit.source.run))
    texts = read_sample_column(file, "texts", audit.source.key) if file.suffix.lower() in READERS else None
    if texts is None:
        raise ValueError(f"--thumbnails needs samples, but {file} has none: {MISSING}.")
    return texts


def _files(file: Path, folder: Path, key: str | None) -> dict[SampleId, Path]:
    if not folder.is_dir():
        raise ValueError(
            f"--images must be a folder, got {folder}, which {'is a file' if folder.exists() else 'does not exist'}."
        )
    names = read_sample_column(file, "filenames", key) if file.suffix.lower() in READERS else None
    if names is None:
        wanted = "column filename" if file.suffix.lower() in (".csv", ".parquet") else "array filenames"
        raise ValueError(f"--images needs filenames, but {file} has no {wanted}: add one with a path per sample.")
    for name in names.values():
        # By name alone: a link in the folder may lead elsewhere, a name must not.
        if os.path.isabs(name) or os.path.normpath(name).startswith(os.pardir):
            raise ValueError(f"filenames must be relative to --images {folder} and stay in it, got {name!r}.")
    return {sample: folder / name for sample, name in names.items()}


@dataclass(frozen=True)
class _SplitImages:
    """Images of a split by their position in its source."""

    split: Split
    row_of: dict[int, int]

    def __getitem__(self, number: int, /) -> torch.Tensor:
        return self.split.inputs[torch.tensor([self.row_of[number]])][0]


def _run_samples(audit: Audit, run: Path) -> _SplitImages:
    from classgap.data import load
    from classgap.engine import RunDirectory

    name = str(RunDirectory(run).stored_settings()["data"])
    data = load(name)
    if data.kind != "image":
        raise ValueError(f"--thumbnails needs images, but {name}, the data of {run}, has inputs of kind {data.kind!r}.")
    index_N = data.test.index.numpy()
    order = index_N.argsort(kind="stable")
    numbers_N = order if audit.samples.index is None else index_N[order]
    targets_N = data.test.targets.numpy()[order if audit.samples.index is not None else slice(None)]
    same = audit.samples.index is None or np.array_equal(audit.samples.index, numbers_N)
    if not same or not np.array_equal(audit.samples.targets, targets_N):
        raise ValueError(f"{name} no longer has the test samples of {run}: restore the data.")
    if audit.samples.index is None:
        return _SplitImages(data.test, {row: row for row in range(len(index_N))})
    return _SplitImages(data.test, dict(zip(numbers_N.tolist(), order.tolist(), strict=True)))
