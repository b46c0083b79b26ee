"""Small runs of images, features and embedded data, and the commands that use them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from classgap.cli import main

SIZES = ((20, 14), (11, 17), (16, 16))  # heights and widths: every image is resized and cropped
CLASSES = ("cat", "cat-2", "dog")  # "cat-2/…" sorts before "cat/…" by path, but after it by class


def write_photos(base: Path, *, train: int = 12, test: int = 7) -> Path:
    """Write images of three classes, in several sizes, that differ in color."""
    rng = np.random.default_rng(0)
    for split, count in {"train": train, "test": test}.items():
        for k, name in enumerate(CLASSES):
            (base / split / name).mkdir(parents=True)
            for i in range(count):
                pixels = rng.integers(0, 200, (*SIZES[i % len(SIZES)], 3), dtype=np.uint8)
                pixels[..., k] += 55
                Image.fromarray(pixels).save(base / split / name / f"{i}.png")
    return base


def write_features(path: Path, *, val: bool = False) -> Path:
    """Write feature vectors of four classes with names."""
    rng = np.random.default_rng(1)
    arrays: dict[str, Any] = {"class_names": np.array(["ant", "bee", "cow", "doe"])}
    for split, count in ({"train": 160, "test": 90} | ({"val": 60} if val else {})).items():
        targets = rng.integers(0, 4, count)
        arrays[f"{split}_features"] = rng.normal(size=(count, 6)) + np.eye(4, 6)[targets]
        arrays[f"{split}_targets"] = targets
    np.savez(path, **arrays)
    return path


def run(*words: str | Path) -> None:
    """Run a command that must succeed."""
    assert main([str(each) for each in words]) == 0, words


def figures(audit: Path) -> dict[str, Any]:
    """Read the figures of a saved audit that follow from logits and targets, without names of files."""
    content = json.loads(audit.read_text())
    keys = ("name", "support", "accuracy", "interval", "f1", "predicted", "calibration_error", "logit_margin")
    classes = [{key: each[key] for key in (*keys, "confusions")} for each in content["classes"]]
    groups = {name: {key: each[key] for key in ("accuracy", "interval")} for name, each in content["groups"].items()}
    return {key: content[key] for key in ("overall", "gap")} | {"groups": groups, "classes": classes}
