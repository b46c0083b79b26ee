"""Norms of the head's rows and angles between them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from classgap.audit._types import Floats
from classgap.audit.io.rows import row_chunks


@dataclass(frozen=True)
class HeadGeometry:
    """Norms and angles of the head's rows; angles are ``None`` with one class.

    Attributes:
        weight_norm_K: ‖w_k‖ (MR² Fig. 3).
        angle: m_c, the smallest angle between two rows in degrees (MR² Table 4).
        angle_pair: indices of these two rows.
        mean_cosine: mean cosine over pairs of rows.
        std_cosine: standard deviation of the cosine over pairs of rows.
    """

    weight_norm_K: Floats
    angle: float | None
    angle_pair: tuple[int, int] | None
    mean_cosine: float | None
    std_cosine: float | None


def head_geometry(weight_KD: Tensor) -> HeadGeometry:
    """Compute norms and angles; a zero row has cosine 0 with all others.

    >>> geometry = head_geometry(torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0]]))
    >>> round(geometry.angle), geometry.angle_pair, geometry.weight_norm_K.tolist()
    (90, (0, 1), [1.0, 2.0, 1.0])
    """
    rows_KD = weight_KD.double()
    norm_K = torch.linalg.vector_norm(rows_KD, dim=1)
    classes = len(norm_K)
    if classes < 2:
        return HeadGeometry(norm_K.numpy(), None, None, None, None)
    unit_KD = rows_KD / torch.where(norm_K > 0, norm_K, 1)[:, None]
    total, squares = 0.0, 0.0
    largest, pair = -math.inf, (0, 1)
    for rows in row_chunks(classes, classes):
        cosine = unit_KD[rows] @ unit_KD.T
        # Above the diagonal, each pair occurs once.
        later = torch.ones_like(cosine, dtype=torch.bool).triu(diagonal=rows.start + 1)
        total += float(cosine[later].sum())
        squares += float(cosine[later].square().sum())
        masked = cosine.masked_fill(~later, -math.inf)
        position = int(masked.argmax())
        if float(masked.flatten()[position]) > largest:
            largest = float(masked.flatten()[position])
            pair = (rows.start + position // classes, position % classes)
    pairs = classes * (classes - 1) / 2
    mean = total / pairs
    # Near ±1, the arc cosine of a rounded product is inaccurate; this formula is not.
    a_D, b_D = unit_KD[pair[0]], unit_KD[pair[1]]
    angle = 2 * math.atan2(float((a_D - b_D).norm()), float((a_D + b_D).norm())) if largest > -1 else math.pi
    return HeadGeometry(
        weight_norm_K=norm_K.numpy(),
        angle=math.degrees(angle),
        angle_pair=pair,
        mean_cosine=mean,
        std_cosine=math.sqrt(max(squares / pairs - mean**2, 0.0)),
    )
