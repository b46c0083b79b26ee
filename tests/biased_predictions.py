"""Predictions of models with a known bias against some classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

NAMES = [f"class {letter}" for letter in "abcdefghi"]


def biased(n: int, seed: int, *, bias: float = 1.0, noise: float = 0.0, names: list[str] = NAMES) -> dict[str, Any]:
    """Return the arrays of a model whose logits favor the first classes; class offsets undo the bias.

    Args:
        n: number of samples.
        seed: seed of the samples.
        bias: logit added to the first class and subtracted from the last, linear in between.
        noise: independent noise of this model; models with the same seed share the rest.
        names: names of the classes.
    """
    k = len(names)
    rng, targets = np.random.default_rng(seed), np.arange(n) % k
    logits = 2.5 * np.eye(k)[targets] + rng.normal(size=(n, k)) + np.linspace(bias, -bias, k)
    logits += noise * np.random.default_rng([seed, round(100 * noise)]).normal(size=(n, k))
    return {"targets": targets, "logits": logits.astype(np.float32), "class_names": np.array(names)}


def save(path: Path, **arrays: Any) -> str:
    """Write a prediction file."""
    np.savez(path, **arrays)
    return str(path)
