"""A small classifier whose features, head and failures are known, for several test files."""

import numpy as np
import torch

from classgap.audit import Audit, AuditSettings

QUICK = AuditSettings(map="none", n_resamples=200)


def blobs(spreads, *, apart=10.0, each=100, dim=16, seed=0, moved=None):
    """Features around the corners of a simplex, with the head that separates the corners halfway.

    Args:
        spreads: standard deviation of each class in every direction.
        apart: how far class means are from the origin.
        each: samples of each class.
        dim: number of features, at least the number of classes.
        seed: of the noise.
        moved: class → the place of its mean, instead of its own corner.
    """
    rng = np.random.default_rng(seed)
    classes = len(spreads)
    corners = np.eye(classes, dim) * apart
    places = corners.copy()
    for k, place in (moved or {}).items():
        places[k] = place(corners)
    targets = np.repeat(np.arange(classes), each)
    features = places[targets] + np.asarray(spreads)[targets, None] * rng.normal(size=(len(targets), dim))
    weight, bias = places, -0.5 * (places**2).sum(axis=1)
    return targets, features, weight, bias


def audit_of(targets, features, weight, bias, *, settings=QUICK, **given):
    """The audit of a linear head on these features."""
    names = [f"class {k}" for k in range(len(weight))]
    head = (torch.from_numpy(weight), torch.from_numpy(bias))
    logits = features @ weight.T + bias
    return Audit.from_predictions(
        logits, targets, features=features, head=head, class_names=names, settings=settings, **given
    )


def causes(audit, k):
    """Names of the causes of a class, strongest first."""
    return [cause.name for cause in audit.classes[k].diagnosis]
