"""Sums over samples from which most metrics follow: tensors of a fixed size that add up over batches and processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from classgap.audit._types import Floats
from classgap.audit.geometry.class_clouds import ClassClouds
from classgap.audit.geometry.features import FeatureMetrics, describe_clouds
from classgap.audit.io.predictions import Predictions
from classgap.audit.io.rows import as_tensor
from classgap.audit.metrics.accuracy import ClassCounts
from classgap.audit.metrics.calibration import BINS
from classgap.audit.metrics.class_order import ClassOrder
from classgap.audit.metrics.score_summary import ScoreSummary
from classgap.audit.results import Distribution


@dataclass(frozen=True)
class MetricSums:
    """Sums over samples.

    Attributes:
        confusion_KK: samples by true and predicted class, int64.
        ranks_R: samples by rank of the true class, from 0 to R - 1, int64.
        surplus_KB: Σ (correct - confidence) by predicted class and bin of confidence, float64.
        margin_K: Σ output margin of the samples of each class, float64.
        logit_margin_K: Σ logit margin of the samples of each class, float64; NaN if one is undefined.
        logit_square_K: Σ of their squares, float64.
        feature_KD: Σ f of each class, float64; D is 0 without features.
        square_K: Σ ‖f‖² of each class, float64.
        probabilities: samples whose scores were probabilities, int64.
    """

    confusion_KK: Tensor
    ranks_R: Tensor
    surplus_KB: Tensor
    margin_K: Tensor
    logit_margin_K: Tensor
    logit_square_K: Tensor
    feature_KD: Tensor
    square_K: Tensor
    probabilities: Tensor

    @classmethod
    def zeros(cls, num_classes: int, feature_dim: int, ranks: int) -> MetricSums:
        """Return the sums over no samples."""
        return cls(
            torch.zeros(num_classes, num_classes, dtype=torch.int64),
            torch.zeros(ranks, dtype=torch.int64),
            torch.zeros(num_classes, BINS, dtype=torch.float64),
            torch.zeros(num_classes, dtype=torch.float64),
            torch.zeros(num_classes, dtype=torch.float64),
            torch.zeros(num_classes, dtype=torch.float64),
            torch.zeros(num_classes, feature_dim, dtype=torch.float64),
            torch.zeros(num_classes, dtype=torch.float64),
            torch.zeros((), dtype=torch.int64),
        )

    def add(self, data: Predictions) -> None:
        """Add the samples of one batch in place."""
        scores = data.scored().scores
        assert scores is not None
        classes, ranks = data.num_classes, len(self.ranks_R)
        correct_N = data.targets_N == data.predictions_N
        bin_N = np.clip(np.ceil(scores.confidence_N * BINS).astype(np.int64) - 1, 0, BINS - 1)
        y_N, p_N = torch.from_numpy(data.targets_N), torch.from_numpy(data.predictions_N)
        self.confusion_KK.view(-1).index_add_(0, y_N * classes + p_N, torch.ones_like(y_N))
        self.ranks_R.add_(torch.from_numpy(np.bincount(scores.rank_N, minlength=ranks)[:ranks]))
        cell_N = p_N * BINS + torch.from_numpy(bin_N)
        self.surplus_KB.view(-1).index_add_(0, cell_N, torch.from_numpy(correct_N - scores.confidence_N))
        self.margin_K.index_add_(0, y_N, torch.from_numpy(scores.output_margin_N))
        logit_margin_N = torch.from_numpy(scores.logit_margin_N)
        if not data.logit_margins:  # unknown for some samples, and therefore for the sums
            logit_margin_N = torch.full_like(logit_margin_N, torch.nan)
        self.logit_margin_K.index_add_(0, y_N, logit_margin_N)
        self.logit_square_K.index_add_(0, y_N, logit_margin_N.square())
        if data.features_ND is not None:
            f_ND = as_tensor(data.features_ND).double()
            self.feature_KD.index_add_(0, y_N, f_ND)
            self.square_K.index_add_(0, y_N, f_ND.square().sum(dim=1))
        if any(notice.code == "logits-are-probabilities" for notice in data.notices):
            self.probabilities.add_(len(data))

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.confusion_KK.sum())

    def scores(self, counts: ClassCounts, top_k: Sequence[int]) -> ScoreSummary:
        """Return the metrics of scores."""
        classes, samples = len(self.margin_K), self.n_samples
        surplus_KB, margin_K = self.surplus_KB.numpy(), self.margin_K.numpy()
        reached_R = np.cumsum(self.ranks_R.numpy())
        with np.errstate(invalid="ignore", divide="ignore"):  # NaN for classes without samples
            calibration_K = np.abs(surplus_KB).sum(axis=1) / counts.predicted_K
            mean_K = margin_K / counts.support_K
        return ScoreSummary(
            calibration_error=float(np.abs(surplus_KB.sum(axis=0)).sum() / samples),
            calibration_K=calibration_K,
            margin=float(margin_K.sum() / samples),
            margin_K=mean_K,
            top_k={k: float(reached_R[k - 1] / samples) for k in top_k if k == 1 or k < classes},
            logit_margins=self._logit_margins(counts),
        )

    def _logit_margins(self, counts: ClassCounts) -> list[Distribution | None] | None:
        """Mean and standard deviation of the logit margins of each class; their quantiles do not follow from sums."""
        if not bool(torch.isfinite(self.logit_margin_K).all()):
            return None
        size_K = np.maximum(counts.support_K, 1)
        mean_K, square_K = self.logit_margin_K.numpy() / size_K, self.logit_square_K.numpy() / size_K
        std_K = np.sqrt(np.maximum(square_K - mean_K**2, 0.0))
        known = zip(mean_K.tolist(), std_K.tolist(), counts.seen_K.tolist(), strict=True)
        return [Distribution(mean, std, quantiles=()) if seen else None for mean, std, seen in known]

    def features(self, order: ClassOrder, accuracy_K: Floats, names: Sequence[str]) -> FeatureMetrics:
        """Return the metrics of features: means and spreads, and distances between means."""
        if not self.feature_KD.shape[1]:
            return FeatureMetrics()
        support_K = torch.from_numpy(order.support_K).double()
        centroids_KD = self.feature_KD / support_K.clamp(min=1)[:, None]
        norm_K = torch.linalg.vector_norm(centroids_KD, dim=1)
        # Deviations from the mean need a second pass. In double precision, the difference of the sums is as exact as
        # single precision unless the mean is some 10,000 times the spread.
        within_K = (self.square_K - support_K * norm_K.square()).clamp(min=0)
        seen_K, several_K = support_K > 0, support_K > 1
        unknown_K = np.full(len(support_K), np.nan)
        clouds = ClassClouds(
            centroids_KD=centroids_KD,
            mean_norm_K=torch.where(seen_K, norm_K, torch.nan).numpy(),
            size_K=torch.where(seen_K, self.square_K / support_K, torch.nan).numpy(),
            spread_K=torch.where(several_K, (within_K / (support_K - 1)).sqrt(), torch.nan).numpy(),
            dispersion_K=unknown_K,
            max_intra_distance_K=unknown_K,
        )
        return describe_clouds(clouds, order, accuracy_K, names)
