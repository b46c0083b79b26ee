"""Errors whose label is in doubt: samples that look like ordinary members of the class they are predicted as."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from classgap.audit._types import Floats
from classgap.audit.diagnosis.counterfactuals import Counterfactuals
from classgap.audit.io.predictions import Predictions
from classgap.audit.io.rows import read_rows

TYPICAL = 0.25  # quantile of the other class's own margins that a doubted sample must exceed
CONFIDENT = 0.8  # least calibrated probability of the predicted class
UNLIKELY = 0.05  # largest calibrated probability of the label
MIN_MEMBERS = 5


def doubted_labels(data: Predictions, found: Counterfactuals) -> NDArray[np.bool_]:
    """Return which errors look like ordinary members of the predicted class, (N,).

    An over-confident model is sure of its ordinary errors too, so confidence alone is no evidence. Two things must hold
    together. The calibrated, out-of-sample probabilities rule the label out. And the margin z_b - z_a of a sample of
    class a that is predicted as b is typical for the correct samples of b: an ordinary error lies near the boundary,
    where few samples of b lie, while a mislabeled sample of b lies anywhere b lies. Where features are known, neither a
    refitted head nor nearest neighbors may vote for the label.
    """
    doubted_N = np.zeros(len(data), dtype=np.bool_)
    if found.own_N is None or found.confidence_N is None or data.logits_NK is None:
        return doubted_N
    possible_N = (data.predictions_N != data.targets_N) & (found.confidence_N >= CONFIDENT) & (found.own_N <= UNLIKELY)
    for votes_N in (found.head_N, found.neighbors_N):
        if votes_N is not None:
            possible_N &= votes_N != data.targets_N
    rows = np.flatnonzero(possible_N)
    rank_N = _typicality(data, rows)
    doubted_N[rows] = rank_N >= TYPICAL
    return doubted_N


def _typicality(data: Predictions, rows: NDArray[np.int64]) -> Floats:
    """Fraction of the predicted class's correct samples whose margin to the label is at most that of each row."""
    assert data.logits_NK is not None
    rank_E = np.full(len(rows), -1.0)
    correct_N = data.predictions_N == data.targets_N
    labels_E, predicted_E = data.targets_N[rows], data.predictions_N[rows]
    for b in np.unique(predicted_E):
        members = np.flatnonzero(correct_N & (data.targets_N == b))
        if len(members) < MIN_MEMBERS:
            continue
        errors = np.flatnonzero(predicted_E == b)
        z_MK = read_rows(data.logits_NK, members).double().numpy()
        z_EK = read_rows(data.logits_NK, rows[errors]).double().numpy()
        own_margin_ME = z_MK[:, [b]] - z_MK[:, labels_E[errors]]
        margin_E = z_EK[:, b] - z_EK[np.arange(len(errors)), labels_E[errors]]
        rank_E[errors] = (own_margin_ME <= margin_E).mean(axis=0)
    return rank_E
