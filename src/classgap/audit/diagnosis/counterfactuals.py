"""Cross-fitted counterfactuals: what the model would predict with other class offsets or with another head.

Every change is fitted on some samples and applied to others, so an error that it removes is removed on samples that the
fit did not see.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from classgap.audit._types import Floats, Integers
from classgap.audit.diagnosis.linear_head import ClassMoments, linear_scores
from classgap.audit.io.predictions import Predictions
from classgap.audit.metrics.scores import row_chunks, score_samples

N_FOLDS = 5
MAX_ENTRIES = 4_000_000  # scores that a fit uses at most; larger inputs are subsampled
MAX_LOSS = 0.003  # accuracy over all samples that offsets may cost on the fitting side
PRIOR_SAMPLES = 2.0  # samples per class that pull offsets towards 0
STRENGTHS = (0.25, 0.5, 0.75, 1.0)
NEIGHBORS = 10
MAX_REFERENCES = 5_000  # samples that nearest neighbors are searched in
MAX_QUERIES = 5_000  # errors whose nearest neighbors are searched


@dataclass(frozen=True)
class Counterfactuals:
    """Predictions under each change, and calibrated probabilities; ``None`` where inputs are missing.

    Attributes:
        own_N: calibrated probability of the label.
        confidence_N: calibrated probability of the predicted class.
        decision_N: predictions with class offsets.
        offsets_K: mean offsets over the folds, in calibrated logits.
        head_N: predictions with a refitted linear head.
        neighbors_N: predictions of nearest neighbors; -1 where they were not computed.
        head_is_lower_bound: whether the head was refitted on test features only.
    """

    own_N: Floats | None = None
    confidence_N: Floats | None = None
    decision_N: Integers | None = None
    offsets_K: Floats | None = None
    head_N: Integers | None = None
    neighbors_N: Integers | None = None
    head_is_lower_bound: bool = True


def counterfactuals(data: Predictions, seed: int) -> Counterfactuals:
    """Fit every change that the inputs allow."""
    rng = np.random.default_rng(seed)
    folds_N = stratified_folds(data.targets_N, _difficulty(data), N_FOLDS)
    own = confidence = decision = offsets = head = neighbors = None
    temperatures = np.ones(N_FOLDS)
    if data.logits_NK is not None and data.num_classes > 1:
        own, confidence, decision, offsets, temperatures = _decision(data, folds_N, rng)
    if data.features_ND is not None and data.num_classes > 1:
        head = _head(data, folds_N, temperatures, rng)
        neighbors = _neighbors(data, folds_N, head, rng)
    return Counterfactuals(own, confidence, decision, offsets, head, neighbors, data.train_features_MD is None)


def stratified_folds(labels_N: Integers, key_N: Floats, n_folds: int) -> Integers:
    """Return the fold of each sample, with each class spread evenly over the folds in the order of a key.

    The folds depend on the samples and not on their order.

    >>> stratified_folds(np.array([0, 0, 0, 1, 1]), np.array([0.3, 0.1, 0.2, 0.5, 0.4]), 2).tolist()
    [0, 0, 1, 0, 1]
    """
    order_N = np.lexsort((key_N, labels_N))
    support_K = np.bincount(labels_N)
    start_N = np.repeat(np.cumsum(support_K) - support_K, support_K)
    shift_N = np.repeat(np.arange(len(support_K)), support_K)  # classes start in different folds
    folds_N = np.empty(len(labels_N), dtype=np.int64)
    folds_N[order_N] = (np.arange(len(labels_N)) - start_N + shift_N) % n_folds
    return folds_N


def _difficulty(data: Predictions) -> Floats:
    """A number that orders the samples of a class: the logit margin, or else the first feature."""
    if data.logits_NK is not None:
        return score_samples(data.logits_NK, data.targets_N).logit_margin_N
    if data.features_ND is not None:
        return data.features_ND[:, 0].double().numpy()
    return np.zeros(len(data))


def fit_temperature(logits_NK: Tensor, labels_N: Tensor) -> float:
    """Return the inverse temperature that minimizes cross-entropy."""
    from scipy.optimize import minimize_scalar

    z_NK = logits_NK - logits_NK.amax(dim=1, keepdim=True)

    def cross_entropy(log_scale: float) -> float:
        return float(torch.nn.functional.cross_entropy(z_NK * float(np.exp(log_scale)), labels_N))

    return float(np.exp(minimize_scalar(cross_entropy, bounds=(-5, 4), method="bounded", options={"xatol": 0.02}).x))


def fit_offsets(logits_NK: Tensor, labels_N: Tensor, *, iterations: int = 40) -> Tensor:
    """Return offsets that give each class as much probability as it has samples, all classes weighted alike.

    At the optimum of the class-balanced cross-entropy over offsets δ, Σ_i w_i p_k(z_i + δ) = Σ_i w_i [y_i = k] with
    w_i = 1 / n_{y_i}; both sides are pulled towards equality by ``PRIOR_SAMPLES``. A model whose classes overlap but
    whose probabilities are unbiased gets offsets of 0.

    >>> z = torch.log(torch.tensor([[0.8, 0.2], [0.8, 0.2], [0.6, 0.4], [0.6, 0.4]]))
    >>> delta = fit_offsets(z, torch.tensor([0, 1, 0, 1]))
    >>> bool(delta[1] > delta[0])
    True
    """
    support_K = torch.bincount(labels_N, minlength=logits_NK.shape[1])
    seen_K = support_K > 0
    weight_N = 1 / support_K[labels_N].to(logits_NK.dtype)
    pull = PRIOR_SAMPLES / float(support_K[seen_K].to(torch.float64).median())
    offsets_K = torch.zeros(logits_NK.shape[1], dtype=logits_NK.dtype)
    for _ in range(iterations):
        mass_K = weight_N @ (logits_NK + offsets_K).softmax(dim=1)
        step_K = torch.where(seen_K, torch.log((1 + pull) / (mass_K + pull)), 0)
        offsets_K = offsets_K + step_K
        offsets_K = offsets_K - offsets_K[seen_K].mean()
        if float(step_K.abs().max()) < 1e-3:
            break
    return offsets_K


def _decision(
    data: Predictions, folds_N: Integers, rng: np.random.Generator
) -> tuple[Floats, Floats, Integers, Floats, Floats]:
    assert data.logits_NK is not None
    own_N, confidence_N = np.empty(len(data)), np.empty(len(data))
    decision_N = np.empty(len(data), dtype=np.int64)
    offsets, temperatures = [], np.ones(N_FOLDS)
    for fold in range(N_FOLDS):
        fit = _subsample(np.flatnonzero(folds_N != fold), data.num_classes, rng)
        held = np.flatnonzero(folds_N == fold)
        if not len(fit) or not len(held):
            decision_N[held], own_N[held], confidence_N[held] = data.predictions_N[held], np.nan, np.nan
            continue
        z_FK, y_F = _float(data.logits_NK[torch.from_numpy(fit)]), torch.from_numpy(data.targets_N[fit])
        some = torch.from_numpy(rng.permutation(len(fit))[: max(1, 1_000_000 // data.num_classes)])
        temperatures[fold] = fit_temperature(z_FK[some], y_F[some])
        z_FK = z_FK * temperatures[fold]
        offsets_K = _limited(z_FK, y_F, _candidates(z_FK, y_F, data))
        offsets.append(offsets_K.double().numpy())
        for rows in row_chunks(len(held), data.num_classes):
            z_BK = _float(data.logits_NK[torch.from_numpy(held[rows])]) * temperatures[fold]
            p_BK = z_BK.softmax(dim=1)
            inside = torch.arange(len(p_BK))
            own_N[held[rows]] = p_BK[inside, torch.from_numpy(data.targets_N[held[rows]])].double().numpy()
            predicted = torch.from_numpy(data.predictions_N[held[rows]])
            confidence_N[held[rows]] = p_BK[inside, predicted].double().numpy()
            decision_N[held[rows]] = (z_BK + offsets_K).argmax(dim=1).numpy()
    mean_K = np.mean(offsets, axis=0) if offsets else np.zeros(data.num_classes)
    return own_N, confidence_N, decision_N, mean_K, temperatures


def _candidates(z_FK: Tensor, y_F: Tensor, data: Predictions) -> list[Tensor]:
    """Directions of offsets: fitted ones, and the prior correction where training counts are known."""
    found = [fit_offsets(z_FK, y_F)]
    counts_K = data.train_counts_K
    if counts_K is not None and (counts_K > 0).all() and counts_K.max() > counts_K.min():
        prior_K = torch.from_numpy(np.log(counts_K / counts_K.sum())).to(z_FK.dtype)
        found.append(prior_K.mean() - prior_K)
    return found


def _limited(z_FK: Tensor, y_F: Tensor, candidates: list[Tensor]) -> Tensor:
    """Return the offsets with the best balanced accuracy among those that keep the accuracy, on the fitting side."""
    support_K = torch.bincount(y_F, minlength=z_FK.shape[1])
    weight_F = 1 / support_K[y_F].double()
    correct_F = z_FK.argmax(dim=1) == y_F
    accuracy = float(correct_F.double().mean())
    best, best_balanced = torch.zeros(z_FK.shape[1], dtype=z_FK.dtype), float((weight_F * correct_F).sum())
    for direction_K in candidates:
        for strength in STRENGTHS:
            correct_F = (z_FK + strength * direction_K).argmax(dim=1) == y_F
            balanced = float((weight_F * correct_F).sum())
            if float(correct_F.double().mean()) >= accuracy - MAX_LOSS and balanced > best_balanced:
                best, best_balanced = strength * direction_K, balanced
    return best


def _head(data: Predictions, folds_N: Integers, temperatures: Floats, rng: np.random.Generator) -> Integers:
    """Predict with a linear discriminant, mixed with the given logits as much as helps on the fitting side."""
    assert data.features_ND is not None
    predictions_N = data.predictions_N.copy()
    given = None
    if data.train_features_MD is not None and data.train_targets_M is not None:
        moments = ClassMoments.from_features(data.train_features_MD, data.train_targets_M, data.num_classes)
        given = moments.discriminant()
    else:
        parts = [
            ClassMoments.from_features(data.features_ND, data.targets_N, data.num_classes, folds_N == fold)
            for fold in range(N_FOLDS)
        ]
        whole = ClassMoments.sum(parts)
    for fold in range(N_FOLDS):
        held = np.flatnonzero(folds_N == fold)
        inner = (fold + 1) % N_FOLDS
        probe = rng.permutation(np.flatnonzero(folds_N == inner))[:4_000]
        if not len(held) or not len(probe):
            continue
        outer_head = given or (whole - parts[fold]).discriminant()
        inner_head = given or (whole - parts[fold] - parts[inner]).discriminant()
        weight = _mixing_weight(data, probe, inner_head, float(temperatures[fold]))
        for rows in row_chunks(len(held), data.num_classes):
            scores_BK = _mixed(data, held[rows], outer_head, weight, float(temperatures[fold]))
            predictions_N[held[rows]] = scores_BK.argmax(dim=1).numpy()
    return predictions_N


def _mixing_weight(data: Predictions, rows: Integers, head: tuple[Tensor, Tensor], temperature: float) -> float:
    if data.logits_NK is None:
        return 1.0
    labels_B = torch.from_numpy(data.targets_N[rows])
    accuracies = {
        weight: float((_mixed(data, rows, head, weight, temperature).argmax(dim=1) == labels_B).double().mean())
        for weight in (0.0, *STRENGTHS)
    }
    return max(accuracies, key=lambda weight: (accuracies[weight], -weight))


def _mixed(data: Predictions, rows: Integers, head: tuple[Tensor, Tensor], weight: float, temperature: float) -> Tensor:
    assert data.features_ND is not None
    at = torch.from_numpy(rows)
    scores_BK = linear_scores(data.features_ND[at], head)
    if data.logits_NK is None or weight == 1:
        return scores_BK
    return weight * scores_BK + (1 - weight) * temperature * data.logits_NK[at].to(scores_BK.dtype)


def _neighbors(data: Predictions, folds_N: Integers, head_N: Integers, rng: np.random.Generator) -> Integers:
    """Predict errors that the refitted head leaves by the vote of their nearest neighbors in other folds."""
    assert data.features_ND is not None
    votes_N = np.full(len(data), -1, dtype=np.int64)
    wrong = np.flatnonzero((data.predictions_N != data.targets_N) & (head_N != data.targets_N))
    wrong = rng.permutation(wrong)[:MAX_QUERIES]
    references = rng.permutation(len(data))[:MAX_REFERENCES]
    scale_D = 1 / _float(data.features_ND[torch.from_numpy(references)]).std(dim=0, correction=0).clamp(min=1e-12)
    for fold in range(N_FOLDS):
        query, near = wrong[folds_N[wrong] == fold], references[folds_N[references] != fold]
        if not len(query) or not len(near):
            continue
        a_QD, b_RD = (_float(data.features_ND[torch.from_numpy(rows)]) * scale_D for rows in (query, near))
        k = min(NEIGHBORS, len(near))
        nearest_Qk = torch.cdist(a_QD, b_RD).topk(k, dim=1, largest=False).indices.numpy()
        labels_Qk = data.targets_N[near][nearest_Qk]
        counts_QK = np.zeros((len(query), data.num_classes), dtype=np.int64)
        np.add.at(counts_QK, (np.arange(len(query))[:, None], labels_Qk), 1)
        votes_N[query] = counts_QK.argmax(axis=1)
    return votes_N


def _subsample(rows: Integers, columns: int, rng: np.random.Generator) -> Integers:
    limit = max(1, MAX_ENTRIES // columns)
    return rows if len(rows) <= limit else np.sort(rng.choice(rows, limit, replace=False))


def _float(values: Tensor) -> Tensor:
    return values.to(torch.promote_types(values.dtype, torch.float32))


def removed_by(predictions_N: Integers | None, data: Predictions) -> NDArray[np.bool_]:
    """Whether a change corrects each error; all false if the change could not be tried."""
    wrong_N = data.predictions_N != data.targets_N
    return np.zeros(len(data), dtype=np.bool_) if predictions_N is None else wrong_N & (predictions_N == data.targets_N)
