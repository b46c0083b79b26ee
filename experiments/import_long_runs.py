"""Take finished long runs into the result store, as the scale ``full-200``.

    python experiments/import_long_runs.py RUNS [--results-dir results] [--dry-run]

RUNS holds run directories of commit ce1e2db, which trained on CIFAR-100 for days. Their settings have the names of that
version; they are converted here, once. Metrics go to ``entries/KEY.json`` like those of every run, and test predictions
to ``predictions/KEY.npz`` (logits in half precision), because they cannot be computed again in reasonable time. Runs
that are not finished, and runs that no recipe has at the scale full-200, are named and left alone.
"""

from __future__ import annotations

import argparse
import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from classgap._atomic_write import atomic_write
from classgap._yaml_files import read_yaml
from classgap.audit import read_predictions
from classgap.audit.serialization import read_json
from classgap.engine import RunDirectory
from classgap.reproduce.catalog import load_recipe, recipe_names
from classgap.reproduce.cells import Cell, make_plan
from classgap.reproduce.metrics import measure_run
from classgap.reproduce.store import ResultStore

COMMIT = "ce1e2db"
SCALE = "full-200"
RENAMED = {
    "batch": "batch_size",
    "steps": "max_steps",
    "clip": "clip_grad",
    "accumulate": "micro_batches",
    "warmup": "warmup_epochs",
    "sampling": "sampler",
    "validation": "val_fraction",
    "select": "monitor",
    "interpolate": "wise_ft_alpha",
}
NOT_SETTINGS = ("out", "report", "save_every", "device", "tensorboard")


def convert_settings(old: dict[str, Any]) -> dict[str, Any]:
    """Return settings of commit ce1e2db under the names of this version.

    The folder of PNG files holds all of CIFAR-100, in the same order of classes.

    >>> convert_settings({"data": "folder:x:size=32:lt=100", "method": "mr2:strength=0:margin=2", "batch": 128})
    {'data': 'cifar100:imbalance=100', 'method': 'mr2:margin=2:strength=0', 'batch_size': 128}
    """
    new = {RENAMED.get(name, name): value for name, value in old.items() if name not in NOT_SETTINGS}
    match = re.fullmatch(r"folder:.*?:size=32(:lt=(\d+))?", new["data"])
    if match is None:
        raise ValueError(f"data must be the folder of CIFAR-100 with size=32, got {new['data']!r}.")
    new["data"] = "cifar100" if match[2] is None else f"cifar100:imbalance={match[2]}"
    if new.get("sampler") == "shuffled":
        new["sampler"] = "random"
    name, *options = new["method"].split(":")
    new["method"] = ":".join([name, *sorted(options)])
    return new


def known_keys() -> dict[str, str]:
    """Return the keys of all runs of the scale, with the recipes that use them."""
    found: dict[str, list[str]] = {}
    for name in recipe_names():
        recipe = load_recipe(name)
        if SCALE in recipe.scales:
            plan = make_plan(recipe, SCALE)
            for cell in plan.cells:
                found.setdefault(cell.key(0), []).append(name)
    return {key: ", ".join(names) for key, names in found.items()}


def import_run(path: Path, store: ResultStore, *, dry_run: bool = False) -> str:
    """Store a run and return a line that says what happened."""
    directory = RunDirectory(path)
    settings, _ = read_yaml(directory.config)
    if not directory.finished():
        epochs = len(directory.read_metrics()) if directory.metrics.exists() else 0
        return f"{path.name}: not finished ({epochs} of {settings['epochs']} epochs)"
    converted = convert_settings(settings)
    seed = int(converted.pop("seed"))
    cell = Cell.from_settings(converted)
    key, recipes = cell.key(seed), known_keys().get(cell.key(0))
    if recipes is None:
        return f"{path.name}: no recipe has these settings at the scale {SCALE}: {cell.to_dict()}"
    if dry_run:
        return f"{path.name}: would be stored as {key}, for {recipes}"
    timing = [line["timing"]["seconds"] for line in directory.read_metrics() if "timing" in line]
    found = {
        "version": COMMIT,
        "code": COMMIT,
        "environment": read_json(directory.environment),
        "seconds": round(sum(timing), 1),
        **measure_run(path),
    }
    save_predictions(path, store.path / "predictions" / f"{key}.npz")
    store.add({"key": key, "seed": seed, "settings": cell.training_settings(), **found})
    return f"{path.name}: stored as {key}, for {recipes}"


def save_predictions(run: Path, path: Path) -> None:
    """Write logits (half precision), targets and class names of the test samples, which `classgap audit` reads."""
    data = read_predictions(run)
    assert data.logits_NK is not None
    buffer = io.BytesIO()
    logits = np.asarray(data.logits_NK, dtype=np.float16)
    np.savez_compressed(buffer, logits=logits, targets=data.targets_N, class_names=np.array(data.class_names))
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(buffer.getvalue())


def main(arguments: list[str] | None = None) -> None:
    """Import all runs of a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, help="folder of run directories")
    parser.add_argument("--results-dir", type=Path, default=Path("results"), help="result store")
    parser.add_argument("--dry-run", action="store_true", help="show what would be stored")
    options = parser.parse_args(arguments)
    store = ResultStore(options.results_dir)
    for path in sorted(each for each in options.runs.iterdir() if (each / "config.yaml").is_file()):
        print(import_run(path, store, dry_run=options.dry_run))
    if not options.dry_run:
        store.rebuild_index()


if __name__ == "__main__":
    main()
