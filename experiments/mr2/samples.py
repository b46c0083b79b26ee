"""Which samples a plan may look at: those for choices, those of the test, and some that nothing has looked at."""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path

import numpy as np

from classgap._atomic_write import atomic_write
from classgap.data import load

PLACES = {
    "choice": {"data_seed": 7, "part": "val", "val_fraction": 0.3},
    "end": {"data_seed": 42, "part": "test", "val_fraction": 0.0},
    "new": {"data_seed": 2718, "part": "new", "val_fraction": 0.0},
}
DRAWN = 0.2  # the share of training samples that problems of features take


def source(path: Path, on: str) -> Path:
    """Where a plan on these samples finds the images of a folder or the features of a file."""
    if on == "choice" and path.is_dir():
        return only_training(path)
    if on == "new" and path.is_dir():
        raise SystemExit(
            f"{path}: of a folder of images there are no new samples, all of its test images are for the end"
        )
    if on == "new" and path.is_file():
        return with_new(path)
    return path


def only_training(folder: Path) -> Path:
    """Links to a folder's training images, of which every fifth is for testing: what choices are made on."""
    made = folder.with_name(f"{folder.name}-choice")
    if not made.exists():
        begun = Path(tempfile.mkdtemp(dir=folder.parent))
        for place in sorted((folder / "train").iterdir()):
            for part in ("train", "test"):
                (begun / part / place.name).mkdir(parents=True)
            for i, image in enumerate(sorted(place.iterdir())):
                (begun / ("train" if i % 5 else "test") / place.name / image.name).symlink_to(image.resolve())
        try:
            begun.rename(made)  # whole, or not there
        except OSError:  # another process was faster
            shutil.rmtree(begun)
    return made


@functools.cache
def with_new(file: Path) -> Path:
    """The arrays of a file of features, and as ``new`` those training samples that no place draws for training."""
    made = file.with_name(f"{file.stem}-new.npz")
    with np.load(file, allow_pickle=False) as arrays:
        kept = dict(arrays)
    new = np.ones(len(kept["train_y"]), dtype=bool)
    for place in PLACES.values():
        new[load(f"features:{file}:fraction={DRAWN}:data_seed={place['data_seed']}").train.index.numpy()] = False
    with atomic_write(made) as out:
        np.savez(out, **kept, new_x=kept["train_x"][new], new_y=kept["train_y"][new])
    return made
