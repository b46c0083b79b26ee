"""Sample sets of a plan: for choosing settings, for the final test, and samples no other plan has used."""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path

import numpy as np

from classgap._atomic_write import atomic_write
from classgap.data import load

SAMPLE_SETS = {
    "choice": {"data_seed": 7, "part": "val", "val_fraction": 0.3},
    "end": {"data_seed": 42, "part": "test", "val_fraction": 0.0},
    "new": {"data_seed": 2718, "part": "new", "val_fraction": 0.0},
}
DRAWN = 0.2  # fraction of the training samples that feature problems use


def resolve_source(path: Path, samples: str) -> Path:
    """Return the folder of images or the file of features for a sample set."""
    if samples == "choice" and path.is_dir():
        return split_training_images(path)
    if samples == "new" and path.is_dir():
        raise SystemExit(f"{path}: a folder has no new samples; all of its test images belong to the set 'end'")
    if samples == "new" and path.is_file():
        return add_new_samples(path)
    return path


def split_training_images(folder: Path) -> Path:
    """Link a folder's training images, every fifth as a test image, to choose settings on."""
    made = folder.with_name(f"{folder.name}-choice")
    if not made.exists():
        partial = Path(tempfile.mkdtemp(dir=folder.parent))
        for class_dir in sorted((folder / "train").iterdir()):
            for part in ("train", "test"):
                (partial / part / class_dir.name).mkdir(parents=True)
            for i, image in enumerate(sorted(class_dir.iterdir())):
                (partial / ("train" if i % 5 else "test") / class_dir.name / image.name).symlink_to(image.resolve())
        try:
            partial.rename(made)  # atomic
        except OSError:  # another process finished first
            shutil.rmtree(partial)
    return made


@functools.cache
def add_new_samples(file: Path) -> Path:
    """Copy a file of features and add the training samples that no sample set trains on as ``new``."""
    made = file.with_name(f"{file.stem}-new.npz")
    with np.load(file, allow_pickle=False) as arrays:
        kept = dict(arrays)
    new = np.ones(len(kept["train_y"]), dtype=bool)
    for sample_set in SAMPLE_SETS.values():
        new[load(f"features:{file}:fraction={DRAWN}:data_seed={sample_set['data_seed']}").train.index.numpy()] = False
    with atomic_write(made) as out:
        np.savez(out, **kept, new_x=kept["train_x"][new], new_y=kept["train_y"][new])
    return made
