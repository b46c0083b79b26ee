"""Where the predictions of a run are, or why there are none."""

from __future__ import annotations

import json
from pathlib import Path

IN_A_RUN = ("predictions.safetensors", "predictions.npz", "predictions.csv")
SAVED = "audit.json"  # what a run has of its own audit


def file_in_run(directory: Path) -> Path:
    """The prediction file in a run directory.

    Raises:
        ValueError: if there is none, with the reason as far as the directory tells it.
    """
    for name in IN_A_RUN:
        if (directory / name).is_file():
            return directory / name
    if (directory / SAVED).is_file():
        saved = directory / SAVED
        raise ValueError(f"{directory} holds no predictions but an audit: name {saved}, or read it with Audit.load.")
    if (directory / "failure.json").is_file():
        raise ValueError(f"{directory} holds no predictions, as its run failed: {_failure(directory / 'failure.json')}")
    if _is_unfinished(directory):
        raise ValueError(
            f"{directory} holds no predictions yet, as its run is not finished: wait for it, or go on with it by the "
            "same train command."
        )
    raise ValueError(f"{directory} holds no predictions: none of {', '.join((*IN_A_RUN, SAVED))} is in it.")


def _failure(path: Path) -> str:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return f"the loss was not finite at {record['where']}: {', '.join(record['not_finite'])}."
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # another program's, or damaged
        return f"see {path}."


def _is_unfinished(directory: Path) -> bool:
    from classgap.engine import RunDirectory  # an upper room, so only here

    run = RunDirectory(directory)
    return run.config.is_file() and run.checkpoints.is_dir() and not run.finished()
