"""Predictions with sets of valid labels, and slow references that count them sample by sample."""

import numpy as np


def labeled(classes: int = 6, each: int = 40, seed: int = 0):
    """Targets, predictions and sets: some labels are invalid, some samples have several or no valid labels."""
    rng = np.random.default_rng(seed)
    targets = np.repeat(np.arange(classes), each)
    wrong = rng.random(len(targets)) < np.linspace(0.05, 0.6, classes)[targets]
    predictions = np.where(wrong, rng.integers(0, classes, len(targets)), targets)
    sets = []
    for target, prediction in zip(targets.tolist(), predictions.tolist(), strict=True):
        chosen = {target} if rng.random() < 0.85 else set()
        chosen |= {prediction} if rng.random() < 0.3 else set()
        chosen |= {int(rng.integers(classes))} if rng.random() < 0.1 else set()
        sets.append([] if rng.random() < 0.07 else sorted(chosen))
    return targets, predictions, sets


def slow_accuracies(targets, labels, sets, classes):
    """Fraction of each class's samples with a set whose label is in it, with a loop; NaN without samples."""
    right, total = [0] * classes, [0] * classes
    for target, label, valid in zip(targets.tolist(), labels.tolist(), sets, strict=True):
        if valid:
            total[target] += 1
            right[target] += label in valid
    return np.array([r / t if t else np.nan for r, t in zip(right, total, strict=True)]), np.array(total)
