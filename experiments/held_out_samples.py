"""Make the samples that recipes choose settings on, or test them on, from files that have no such split.

    python experiments/held_out_samples.py FEATURES.npz    # writes FEATURES-new.npz, the file clinc150_new
    python experiments/held_out_samples.py IMAGES          # writes IMAGES-search/, the folder cifar100_search

The first adds the training samples that no recipe trains on as the split ``new``. The second links the training images
of a folder, every fifth as a test image, so that the test images choose nothing.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from classgap._atomic_write import atomic_write
from classgap.data import load

FRACTION = 0.2  # of the training samples that recipes draw
DATA_SEEDS = (7, 42, 2718)  # of all draws: the search, its second test, and the test on new samples


def add_new_samples(file: Path) -> Path:
    """Copy a file of features with the split ``new``: the training samples that no draw contains."""
    made = file.with_name(f"{file.stem}-new.npz")
    with np.load(file, allow_pickle=False) as arrays:
        kept = dict(arrays)
    new = np.ones(len(kept["train_y"]), dtype=bool)
    for seed in DATA_SEEDS:
        new[load(f"features:{file}:fraction={FRACTION}:data_seed={seed}").train.index.numpy()] = False
    with atomic_write(made) as out:
        np.savez(out, **kept, new_x=kept["train_x"][new], new_y=kept["train_y"][new])
    return made


def split_training_images(folder: Path) -> Path:
    """Link the training images of a folder, every fifth as a test image."""
    made = folder.with_name(f"{folder.name}-search")
    if made.exists():
        return made
    partial = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        for class_dir in sorted((folder / "train").iterdir()):
            for part in ("train", "test"):
                (partial / part / class_dir.name).mkdir(parents=True)
            for i, image in enumerate(sorted(class_dir.iterdir())):
                (partial / ("train" if i % 5 else "test") / class_dir.name / image.name).symlink_to(image.resolve())
        partial.rename(made)  # atomic
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return made


if __name__ == "__main__":
    for source in map(Path, sys.argv[1:]):
        print(add_new_samples(source) if source.is_file() else split_training_images(source))
