"""Problems with known properties."""

import numpy as np

from classgap.audit.io.predictions import Predictions


def biased_logits(num_classes, per_class, seed=0, *, bias=1.5, separation=2.0):
    """Labels and logits of a model that favors class 0."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(num_classes), per_class))
    logits = separation * np.eye(num_classes)[labels] + rng.normal(size=(len(labels), num_classes))
    logits[:, 0] += bias
    return labels, logits.astype(np.float32)


def biased(num_classes, per_class, seed=0, **settings):
    """Predictions of a model that favors class 0."""
    labels, logits = biased_logits(num_classes, per_class, seed, **settings)
    return Predictions.from_arrays(labels, logits=logits)


def exact_posteriors(num_classes, n_samples, seed, separation=2.0):
    """Labels and exact log-posteriors (up to a constant) of balanced Gaussian classes: argmax is optimal."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n_samples) % num_classes)
    points = rng.normal(size=(n_samples, num_classes)) + separation * np.eye(num_classes)[labels]
    return labels, (separation * points).astype(np.float32)


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)
