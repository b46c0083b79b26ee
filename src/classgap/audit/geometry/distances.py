"""Euclidean distances between rows of two matrices: fast by a product, exact where a product would lose them."""

from __future__ import annotations

from torch import Tensor

# ‖a‖² + ‖b‖² - 2ab is wrong by about the rounding of ‖a‖² + ‖b‖². Below this part of that sum the square is computed
# from the difference itself; float32 then keeps three digits of every distance.
DOUBTFUL = 1e-3


def row_distances(a_MD: Tensor, b_KD: Tensor) -> Tensor:
    """‖a_i - b_j‖ for all pairs, (M, K).

    >>> import torch
    >>> row_distances(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[5.0, 0.0]]
    """
    sums_MK = a_MD.square().sum(dim=1)[:, None] + b_KD.square().sum(dim=1)
    squares_MK = sums_MK - 2 * a_MD @ b_KD.T
    i, j = (squares_MK <= DOUBTFUL * sums_MK).nonzero(as_tuple=True)
    for start in range(0, len(i), 4096):  # few, unless the rows hardly differ
        part = slice(start, start + 4096)
        squares_MK[i[part], j[part]] = (a_MD[i[part]] - b_KD[j[part]]).square().sum(dim=1)
    return squares_MK.clamp_(min=0).sqrt_()
