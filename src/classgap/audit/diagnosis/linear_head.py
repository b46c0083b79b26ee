"""Linear discriminant heads from sums that can be added and subtracted, so that folds are left out for free."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from classgap.audit._types import Integers
from classgap.audit.io.rows import Matrix, read_rows, row_chunks

SHRINKAGE = 0.1  # least weight of the diagonal in the covariance

ROUNDING = 16  # rounding errors of a sum, in units of the last place


@dataclass(frozen=True)
class ClassMoments:
    """Sums over samples: per class Σ 1 and Σ f, and Σ f fᵀ over all classes, around a fixed origin.

    >>> f, y = torch.tensor([[0.0, 1.0], [2.0, 1.0], [5.0, 4.0]]), np.array([0, 0, 1])
    >>> moments = ClassMoments.from_features(f, y, 2)
    >>> moments.counts_K.tolist(), (moments - moments).counts_K.tolist()
    ([2.0, 1.0], [0.0, 0.0])
    """

    counts_K: Tensor
    sums_KD: Tensor
    products_DD: Tensor
    origin_D: Tensor

    @classmethod
    def from_features(
        cls, features_ND: Matrix, labels_N: Integers, num_classes: int, chosen_N: NDArray[np.bool_] | None = None
    ) -> ClassMoments:
        """Sum over the chosen samples, chunk by chunk."""
        wide = features_ND.shape[1]
        kind = torch.float64 if wide <= 256 else torch.float32  # double precision is slow for wide features
        # Any origin near the data avoids cancellation; the first samples give the same one for every fold.
        origin_D = features_ND[:1_000].to(kind).mean(dim=0)
        counts_K, sums_KD = torch.zeros(num_classes, dtype=kind), torch.zeros(num_classes, wide, dtype=kind)
        products_DD = torch.zeros(wide, wide, dtype=kind)
        rows = np.arange(len(labels_N)) if chosen_N is None else np.flatnonzero(chosen_N)
        for chunk in row_chunks(len(rows), wide):
            f_BD, y_B = read_rows(features_ND, rows[chunk]).to(kind) - origin_D, torch.from_numpy(labels_N[rows[chunk]])
            counts_K += torch.bincount(y_B, minlength=num_classes)
            sums_KD.index_add_(0, y_B, f_BD)
            products_DD += torch.from_numpy(f_BD.numpy().T @ f_BD.numpy())  # NumPy computes only one triangle
        return cls(counts_K, sums_KD, products_DD, origin_D)

    @classmethod
    def sum(cls, parts: list[ClassMoments]) -> ClassMoments:
        """Add moments with the same origin."""
        total = parts[0]
        for part in parts[1:]:
            total = cls(
                total.counts_K + part.counts_K,
                total.sums_KD + part.sums_KD,
                total.products_DD + part.products_DD,
                total.origin_D,
            )
        return total

    def __sub__(self, other: ClassMoments) -> ClassMoments:
        return ClassMoments(
            self.counts_K - other.counts_K,
            self.sums_KD - other.sums_KD,
            self.products_DD - other.products_DD,
            self.origin_D,
        )

    def discriminant(self) -> tuple[Tensor, Tensor]:
        """Return weight and bias of Fisher's linear discriminant with equal priors and a shrunk covariance.

        s_k(f) = μ_kᵀ Σ⁻¹ f - ½ μ_kᵀ Σ⁻¹ μ_k; classes without samples get a score of -inf.
        """
        wide = self.sums_KD.shape[1]
        means_KD = self.sums_KD / self.counts_K.clamp(min=1)[:, None]
        degrees = max(float(self.counts_K.sum()) - float((self.counts_K > 0).sum()), 1.0)
        within_DD = (self.products_DD - (means_KD * self.counts_K[:, None]).T @ means_KD) / degrees
        # A difference of sums leaves rounding errors where a feature does not vary within classes.
        noise_D = ROUNDING * torch.finfo(within_DD.dtype).eps * self.products_DD.diagonal() / degrees
        varies_D = within_DD.diagonal() > noise_D
        scale_D = torch.where(varies_D, within_DD.diagonal(), 0).sqrt()
        largest = scale_D.max()
        scale_D = torch.where(varies_D, scale_D, torch.where(largest > 0, largest, 1))
        correlation_DD = (within_DD / scale_D[:, None] / scale_D).clamp(-1, 1)
        correlation_DD = torch.where(varies_D[:, None] & varies_D, correlation_DD, 0)
        weight = min(1.0, max(SHRINKAGE, wide / (wide + degrees)))
        correlation_DD = (1 - weight) * correlation_DD + weight * torch.eye(wide, dtype=within_DD.dtype)
        factor_DD, failed = torch.linalg.cholesky_ex(correlation_DD)
        if int(failed):  # rounding errors outweigh the shrinkage
            weight_KD = torch.linalg.solve(correlation_DD, (means_KD / scale_D).T).T / scale_D
        else:
            weight_KD = (means_KD / scale_D) @ torch.cholesky_inverse(factor_DD) / scale_D
        bias_K = -0.5 * (weight_KD * means_KD).sum(dim=1)
        bias_K = torch.where(self.counts_K > 0, bias_K - weight_KD @ self.origin_D, -torch.inf)
        return weight_KD, bias_K


def linear_scores(features_BD: Tensor, head: tuple[Tensor, Tensor]) -> Tensor:
    """Scores (B, K) of a head (weight, bias)."""
    weight_KD, bias_K = head
    return features_BD.to(weight_KD.dtype) @ weight_KD.T + bias_K
