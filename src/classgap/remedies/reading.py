"""Read what ``fix`` is given: prediction files, or run directories with their validation samples."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from classgap.audit import read_predictions
from classgap.audit.io.predictions import Predictions
from classgap.remedies.samples import Samples

FilePath = str | os.PathLike[str]


def read_samples(
    fit: FilePath | Predictions | Sequence[FilePath | Predictions],
    test: FilePath | Predictions | Sequence[FilePath | Predictions] | None,
    progress: Callable[[str], None] | None = None,
) -> Samples:
    """Read prediction files, or run directories with their validation samples; see :func:`classgap.remedies.fix`."""
    if test is None and (paths := _run_paths(fit)):
        from classgap.remedies.runs import read_runs

        return read_runs(paths, progress or (lambda message: None))
    samples = Samples.from_predictions(_read(fit), None if test is None else _read(test))
    if samples.fit.train_features_MD is None:
        return samples
    from classgap.remedies.refits import refit_predictions

    heads, notices = refit_predictions(samples.fit, samples.test, progress or (lambda message: None))
    return replace(samples, sources=(*samples.sources, *heads), notices=(*samples.notices, *notices))


def _read(given: FilePath | Predictions | Sequence[FilePath | Predictions]) -> list[Predictions]:
    sources = _as_list(given)
    if not sources:
        raise ValueError("fit and test must name at least one prediction file, got none.")
    read = [each if isinstance(each, Predictions) else read_predictions(each) for each in sources]
    if len({each.name for each in read}) < len(read):
        names = [f"model {i}" if isinstance(each, Predictions) else str(each) for i, each in enumerate(sources)]
        read = [replace(each, name=name) for each, name in zip(read, names, strict=True)]
    return read


def _as_list(given: Any) -> list[FilePath | Predictions]:
    one = isinstance(given, str | os.PathLike | Predictions)
    sources = list(given) if isinstance(given, Iterable) and not (one or isinstance(given, Mapping)) else [given]
    wrong = next((each for each in sources if not isinstance(each, str | os.PathLike | Predictions)), sources)
    if wrong is not sources:
        raise ValueError(
            f"fit and test must be prediction files, run directories or Predictions, got a {type(wrong).__name__}: for "
            "arrays, pass classgap.audit.Predictions.from_arrays(targets, logits=...)."
        )
    return sources


def _run_paths(given: FilePath | Predictions | Sequence[FilePath | Predictions]) -> list[Path]:
    """Return the paths if all of them are run directories, otherwise none."""
    sources = _as_list(given)
    paths = [Path(each) for each in sources if not isinstance(each, Predictions)]
    files = [path / name for path in paths for name in ("config.yaml", "env.json")]
    return paths if len(paths) == len(sources) and all(file.is_file() for file in files) else []
