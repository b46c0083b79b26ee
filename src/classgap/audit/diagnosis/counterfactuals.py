"""Cross-fitted counterfactuals: what the model would predict with other class offsets or with another head.

Every change is fitted on some samples and applied to others, so an error that it removes is removed on samples that the
fit did not see.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from classgap.audit._types import Floats, Integers
from classgap.audit.diagnosis.linear_head import ClassMoments, linear_scores
from classgap.audit.io.predictions import Predictions
from classgap.audit.io.rows import (
    CACHED_ENTRIES,
    Matrix,
    highest_columns,
    highest_scores,
    read_rows,
    row_chunks,
    single_or_double,
)

N_FOLDS = 5
CANDIDATES = 24  # highest scores of a sample that are considered; lower ones decide nothing
LOWEST = -1e30  # a score relative to the highest one; times any temperature, it must not overflow
LOG_ZERO = -86.5  # probabilities of 0 are stored as the logarithm of the smallest normal float32, -87.3
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
        folds_N: fold of each sample; the other folds fitted its changes.
    """

    own_N: Floats | None = None
    confidence_N: Floats | None = None
    decision_N: Integers | None = None
    offsets_K: Floats | None = None
    head_N: Integers | None = None
    neighbors_N: Integers | None = None
    head_is_lower_bound: bool = True
    folds_N: Integers | None = None


def counterfactuals(data: Predictions, seed: int) -> Counterfactuals:
    """Fit every change that the inputs allow.

    Args:
        data: predictions.
        seed: seed of random subsets.
    """
    rng = np.random.default_rng(seed)
    folds_N = stratified_folds(data.targets_N, _difficulty(data), N_FOLDS)
    own = confidence = decision = offsets = head = neighbors = None
    temperatures = np.ones(N_FOLDS)
    if data.logits_NK is not None and data.num_classes > 1:
        own, confidence, decision, offsets, temperatures = _decision(data, folds_N)
    if data.features_ND is not None and data.num_classes > 1:
        head = _head(data, folds_N, temperatures, rng)
        neighbors = _neighbors(data, folds_N, head, rng)
    return Counterfactuals(own, confidence, decision, offsets, head, neighbors, data.train_features_MD is None, folds_N)


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
    scores = data.scored().scores
    if scores is not None:
        return scores.logit_margin_N
    if data.features_ND is not None:
        return data.features_ND[:, 0].double().numpy()
    return np.zeros(len(data))


@dataclass(frozen=True)
class TopScores:
    """The highest scores of each sample, which decide predictions, and the score of its label.

    Attributes:
        logits_Nm: highest logits minus the highest one, descending, then that of the label (-inf if it is among them).
        classes_Nm: their classes.
        labels_N: labels.
        num_classes: number of classes.
    """

    logits_Nm: Tensor
    classes_Nm: Tensor
    labels_N: Tensor
    num_classes: int

    @classmethod
    def from_logits(cls, logits_NK: Matrix, targets_N: Integers) -> TopScores:
        """Take the ``CANDIDATES`` highest scores, chunk by chunk; the predicted class is the first."""
        labels_N, width = torch.from_numpy(targets_N), min(CANDIDATES, logits_NK.shape[1])
        parts = []
        for rows in row_chunks(logits_NK.shape[0], logits_NK.shape[1], CACHED_ENTRIES):
            z_BK = single_or_double(logits_NK[rows])
            top_Bm, found_Bm = highest_scores(z_BK, width)
            predicted_B1 = torch.from_numpy(highest_columns(z_BK))[:, None]
            # Among equal scores topk takes any and argmax the first: without offsets both must predict the same class.
            place_B1 = (found_Bm == predicted_B1).to(torch.uint8).argmax(dim=1, keepdim=True)
            classes_Bm = found_Bm.scatter(1, place_B1, found_Bm[:, :1])
            classes_Bm[:, :1] = predicted_B1
            y_B1 = labels_N[rows][:, None]
            scores_Bm = torch.cat([top_Bm, z_BK.gather(1, y_B1)], dim=1)
            zero_Bm = scores_Bm < LOG_ZERO
            scores_Bm = (scores_Bm - top_Bm[:, :1]).clamp(min=LOWEST)
            scores_Bm[:, -1:].masked_fill_((classes_Bm == y_B1).any(dim=1, keepdim=True), -torch.inf)
            parts.append((scores_Bm, torch.cat([classes_Bm, y_B1], dim=1), zero_Bm))
        scores, classes, zero = (torch.cat(column) for column in zip(*parts, strict=True))
        return cls(_raise_zeros(scores, zero), classes, labels_N, logits_NK.shape[1])

    def take(self, rows: Integers) -> TopScores:
        """Return some of the samples."""
        at = torch.from_numpy(rows)
        logits, classes, labels = (
            each.index_select(0, at) for each in (self.logits_Nm, self.classes_Nm, self.labels_N)
        )
        return replace(self, logits_Nm=logits, classes_Nm=classes, labels_N=labels)

    def scaled(self, factor: float) -> TopScores:
        """Return the logits times a factor."""
        return replace(self, logits_Nm=self.logits_Nm * factor)

    def of_classes(self, values_K: Tensor) -> Tensor:
        """Values of the candidates' classes, (N, m)."""
        # Several times faster than values_K[self.classes_Nm].
        return values_K.index_select(0, self.classes_Nm.flatten()).view_as(self.classes_Nm)

    def predict(self, offsets_K: Tensor) -> Tensor:
        """Predicted classes with offsets; the label is no candidate of its own."""
        shifted_Nm = (self.logits_Nm + self.of_classes(offsets_K))[:, :-1]
        return self.classes_Nm.gather(1, shifted_Nm.argmax(dim=1, keepdim=True))[:, 0]

    def probability(self, classes_N: Tensor) -> Tensor:
        """Probability of one class per sample; 0 if it is not among the candidates."""
        p_Nm = self.logits_Nm.softmax(dim=1)
        return (p_Nm * (self.classes_Nm == classes_N[:, None])).amax(dim=1)


def _raise_zeros(scores_Nm: Tensor, zero_Nm: Tensor) -> Tensor:
    """Replace logarithms of zero probabilities by a value just below all others.

    Rounded probabilities are often 0. Read literally, one such label would outweigh all other samples in a fit.
    """
    finite_Nm = scores_Nm.isfinite()
    others = scores_Nm[finite_Nm & ~zero_Nm]
    if not bool(zero_Nm.any()) or not len(others):
        return scores_Nm
    return torch.where(finite_Nm & zero_Nm, scores_Nm.clamp(min=float(others.min()) - 1), scores_Nm)


def fit_temperature(scores: TopScores) -> float:
    """Return the inverse temperature that minimizes cross-entropy."""
    from scipy.optimize import minimize_scalar

    at_N = (scores.classes_Nm == scores.labels_N[:, None]) & scores.logits_Nm.isfinite()
    place_N1 = at_N.to(torch.uint8).argmax(dim=1, keepdim=True)

    def cross_entropy(log_scale: float) -> float:
        log_p_Nm = (scores.logits_Nm * float(np.exp(log_scale))).log_softmax(dim=1)
        return -float(log_p_Nm.gather(1, place_N1).mean())

    return float(np.exp(minimize_scalar(cross_entropy, bounds=(-5, 4), method="bounded", options={"xatol": 0.02}).x))


def fit_offsets(scores: TopScores, *, iterations: int = 25) -> Tensor:
    """Return offsets that give each class as much probability as it has samples, all classes weighted alike.

    At the optimum of the class-balanced cross-entropy over offsets δ, Σ_i w_i p_k(z_i + δ) = Σ_i w_i [y_i = k] with
    w_i = 1 / n_{y_i}; both sides are pulled towards equality by ``PRIOR_SAMPLES``. A model whose classes overlap but
    whose probabilities are unbiased gets offsets of 0.
    """
    from scipy.sparse import csr_array

    labels_N = scores.labels_N.numpy()
    support_K = np.bincount(labels_N, minlength=scores.num_classes)
    seen_K, weight_N = support_K > 0, 1 / support_K[labels_N]
    pull = PRIOR_SAMPLES / float(np.median(support_K[seen_K]))
    # p_k(z_i + δ) = e^{z_ik} e^{δ_k} / Σ_j e^{z_ij} e^{δ_j}: the exponentials of the logits are taken once.
    samples, width = scores.logits_Nm.shape
    flat, starts = scores.classes_Nm.flatten().numpy(), np.arange(0, samples * width + 1, width)
    exp_NK = csr_array((scores.logits_Nm.double().exp().flatten().numpy(), flat, starts), (samples, scores.num_classes))
    exp_KN, offsets_K = exp_NK.T.tocsr(), np.zeros(scores.num_classes)
    for _ in range(iterations):
        factor_K = np.exp(offsets_K)
        mass_K = factor_K * (exp_KN @ (weight_N / (exp_NK @ factor_K)))
        step_K = np.where(seen_K, np.log((1 + pull) / (mass_K + pull)), 0)
        offsets_K = offsets_K + step_K
        offsets_K = offsets_K - offsets_K[seen_K].mean()
        if np.abs(step_K).max() < 5e-3:
            break
    return torch.from_numpy(offsets_K).to(scores.logits_Nm.dtype)


def _decision(data: Predictions, folds_N: Integers) -> tuple[Floats, Floats, Integers, Floats, Floats]:
    """Fit temperature and offsets on three folds, choose the strength on the fourth, and predict the fifth."""
    assert data.logits_NK is not None
    scores = TopScores.from_logits(data.logits_NK, data.targets_N)
    own_N, confidence_N = np.full(len(data), np.nan), np.full(len(data), np.nan)
    decision_N, temperatures = data.predictions_N.copy(), np.ones(N_FOLDS)
    offsets = [np.zeros(data.num_classes)]
    predicted_N = torch.from_numpy(data.predictions_N)
    for fold in range(N_FOLDS):
        inner_N = folds_N == (fold + 1) % N_FOLDS
        held, inner = np.flatnonzero(folds_N == fold), np.flatnonzero(inner_N)
        outer = np.flatnonzero((folds_N != fold) & ~inner_N)
        if not len(held) or not len(inner) or not len(outer):
            continue
        temperatures[fold] = fit_temperature(scores.take(outer))
        fit, probe = (scores.take(rows).scaled(temperatures[fold]) for rows in (outer, inner))
        offsets_K = _choose(_directions(fit, data), probe)
        offsets.append(offsets_K.double().numpy())
        left = scores.take(held).scaled(temperatures[fold])
        own_N[held] = left.probability(left.labels_N).double().numpy()
        confidence_N[held] = left.probability(predicted_N[torch.from_numpy(held)]).double().numpy()
        decision_N[held] = left.predict(offsets_K).numpy()
    return own_N, confidence_N, decision_N, np.mean(offsets, axis=0), temperatures


def _directions(fit: TopScores, data: Predictions) -> list[Tensor]:
    """Offsets to try: fitted ones, and the prior correction where training counts are known."""
    found = [fit_offsets(fit)]
    counts_K = data.train_counts_K
    if counts_K is not None and (counts_K > 0).all() and counts_K.max() > counts_K.min():
        prior_K = torch.from_numpy(np.log(counts_K / counts_K.sum())).to(fit.logits_Nm.dtype)
        found.append(prior_K.mean() - prior_K)
    return found


def _choose(directions: list[Tensor], probe: TopScores) -> Tensor:
    """Return the offsets with the best balanced accuracy that cost at most ``MAX_LOSS`` accuracy."""
    support_K = torch.bincount(probe.labels_N, minlength=probe.num_classes)
    weight_N = 1 / support_K[probe.labels_N].double()
    correct_N = probe.predict(torch.zeros_like(directions[0])) == probe.labels_N
    accuracy, best_balanced = float(correct_N.double().mean()), float((weight_N * correct_N).sum())
    best = torch.zeros_like(directions[0])
    for direction_K in directions:
        for strength in STRENGTHS:
            correct_N = probe.predict(strength * direction_K) == probe.labels_N
            balanced = float((weight_N * correct_N).sum())
            if float(correct_N.double().mean()) >= accuracy - MAX_LOSS and balanced > best_balanced:
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
        inner_head = given or (whole - parts[fold] - parts[inner]).discriminant()
        weight = _mixing_weight(data, probe, inner_head, float(temperatures[fold]))
        if not weight:  # the given logits alone, which made the predictions
            continue
        outer_head = given or (whole - parts[fold]).discriminant()
        for rows in row_chunks(len(held), data.num_classes):
            scores_BK = _mixed(data, held[rows], outer_head, weight, float(temperatures[fold]))
            predictions_N[held[rows]] = highest_columns(scores_BK)
    return predictions_N


def _mixing_weight(data: Predictions, rows: Integers, head: tuple[Tensor, Tensor], temperature: float) -> float:
    """Weight of the refitted head, mixed with the given logits, that has the best accuracy on some samples."""
    if data.logits_NK is None:
        return 1.0
    labels_B = data.targets_N[rows]
    assert data.features_ND is not None
    correct = dict.fromkeys((0.0, *STRENGTHS), 0)
    for part in row_chunks(len(rows), data.num_classes, entries=CACHED_ENTRIES):
        refitted_BK = linear_scores(read_rows(data.features_ND, rows[part]), head)
        given_BK = temperature * read_rows(data.logits_NK, rows[part]).to(refitted_BK.dtype)
        for weight in correct:
            mixed_BK = torch.lerp(given_BK, refitted_BK, weight) if weight else given_BK
            correct[weight] += int((highest_columns(mixed_BK) == labels_B[part]).sum())
    return max(correct, key=lambda weight: (correct[weight], -weight))


def _mixed(data: Predictions, rows: Integers, head: tuple[Tensor, Tensor], weight: float, temperature: float) -> Tensor:
    assert data.features_ND is not None
    scores_BK = linear_scores(read_rows(data.features_ND, rows), head)
    if data.logits_NK is None or weight == 1:
        return scores_BK
    return torch.lerp(temperature * read_rows(data.logits_NK, rows).to(scores_BK.dtype), scores_BK, weight)


def _neighbors(data: Predictions, folds_N: Integers, head_N: Integers, rng: np.random.Generator) -> Integers:
    """Predict errors that the refitted head leaves by the vote of their nearest neighbors in other folds."""
    assert data.features_ND is not None
    votes_N = np.full(len(data), -1, dtype=np.int64)
    wrong = np.flatnonzero((data.predictions_N != data.targets_N) & (head_N != data.targets_N))
    wrong = rng.permutation(wrong)[:MAX_QUERIES]
    references = rng.permutation(len(data))[:MAX_REFERENCES]
    scale_D = 1 / single_or_double(data.features_ND[torch.from_numpy(references)]).std(dim=0, correction=0).clamp(
        min=1e-12
    )
    for fold in range(N_FOLDS):
        query, near = wrong[folds_N[wrong] == fold], references[folds_N[references] != fold]
        if not len(query) or not len(near):
            continue
        a_QD, b_RD = (single_or_double(data.features_ND[torch.from_numpy(rows)]) * scale_D for rows in (query, near))
        # The nearest b maximizes a·b - ‖b‖²/2, since ‖a - b‖² = ‖a‖² - 2 (a·b - ‖b‖²/2).
        nearness_QR = torch.addmm(-0.5 * b_RD.square().sum(dim=1), a_QD, b_RD.T)
        nearest_Qk = highest_scores(nearness_QR, min(NEIGHBORS, len(near)))[1].numpy()
        labels_Qk = data.targets_N[near][nearest_Qk]
        counts_QK = np.zeros((len(query), data.num_classes), dtype=np.int64)
        np.add.at(counts_QK, (np.arange(len(query))[:, None], labels_Qk), 1)
        votes_N[query] = counts_QK.argmax(axis=1)
    return votes_N


def removed_by(predictions_N: Integers | None, data: Predictions) -> NDArray[np.bool_]:
    """Whether a change corrects each error; all false if the change could not be tried."""
    wrong_N = data.predictions_N != data.targets_N
    return np.zeros(len(data), dtype=np.bool_) if predictions_N is None else wrong_N & (predictions_N == data.targets_N)
