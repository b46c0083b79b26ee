"""Changes of classes and models by which constructed problems get their causes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from diagnosis_models import Floats, Integers, Outputs, Samples


def map_class(samples: Samples, k: int, change: Callable[[Floats], Floats]) -> Samples:
    """Change the inputs of class ``k``, in training and test."""
    train_ND, test_ND = samples.train_ND.copy(), samples.test_ND.copy()
    for inputs_ND, targets in ((train_ND, samples.train_targets), (test_ND, samples.test_targets)):
        inputs_ND[targets == k] = change(inputs_ND[targets == k])
    return replace(samples, train_ND=train_ND, test_ND=test_ND)


def move_class(samples: Samples, k: int, way_D: Floats) -> Samples:
    """Move all samples of class ``k`` by a vector."""
    return map_class(samples, k, lambda inputs_ND: inputs_ND + way_D)


def split_class(samples: Samples, a: int, b: int, rng: np.random.Generator) -> Samples:
    """Drop class ``b``, give its label to half the samples of ``a``, and halve the other classes in training."""

    def split(targets: Integers, kept: Integers) -> Integers:
        changed = targets[kept].copy()
        own = np.flatnonzero(changed == a)
        changed[rng.permutation(own)[: len(own) // 2]] = b
        return changed

    each = int((samples.train_targets == a).sum()) // 2
    train = [np.flatnonzero(samples.train_targets == k) for k in range(samples.num_classes) if k != b]
    train_kept = np.concatenate([own if samples.train_targets[own[0]] == a else own[:each] for own in train])
    test_kept = np.flatnonzero(samples.test_targets != b)
    return replace(
        samples,
        train_ND=samples.train_ND[train_kept],
        train_targets=split(samples.train_targets, train_kept),
        test_ND=samples.test_ND[test_kept],
        test_targets=split(samples.test_targets, test_kept),
    )


def turn_row(outputs: Outputs, train_targets: Integers, k: int, rng: np.random.Generator, lost: float) -> Outputs:
    """Add a direction without class means to a row of the head, as strong as costs the class ``lost`` in training."""
    assert outputs.head is not None
    weight_KD, bias_K = outputs.head
    features_ND, own_N = outputs.train_features, train_targets == k
    means_KD = np.stack([features_ND[train_targets == j].mean(axis=0) for j in np.unique(train_targets)])
    basis_DR, _ = np.linalg.qr((means_KD - means_KD.mean(axis=0)).T)
    turn_D = rng.normal(size=features_ND.shape[1])
    turn_D -= basis_DR @ (basis_DR.T @ turn_D)
    turn_D /= ((features_ND - features_ND.mean(axis=0)) @ turn_D).std()

    def turned(size: float) -> Outputs:
        weight, bias = weight_KD.copy(), bias_K.copy()
        weight[k] = weight_KD[k] + size * turn_D
        scores_NK = features_ND @ weight.T
        lead_N = scores_NK[:, k] - np.delete(scores_NK + bias, k, axis=1).max(axis=1)
        bias[k] = -np.sort(lead_N)[-int(own_N.sum())]  # as many predictions as samples
        return outputs.with_head(weight, bias)

    low, high = 0.0, 100.0 * float(np.abs(outputs.train_logits).max())
    goal = float((outputs.train_logits.argmax(axis=1) == k)[own_N].mean()) - lost
    for _ in range(40):
        middle = (low + high) / 2
        right = float((turned(middle).train_logits.argmax(axis=1) == k)[own_N].mean())
        low, high = (middle, high) if right > goal else (low, middle)
    return turned(high)
