"""The confusion matrix, dense or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np

from classgap.audit._types import Integers

DENSE_CLASSES = 1000  # a dense matrix of this many classes takes 8 MB
NORMALIZE = ("true", "pred", "all")


def confusion_matrix(
    targets_N: Integers,
    predictions_N: Integers,
    num_classes: int,
    *,
    normalize: str | None = None,
    sparse: bool | None = None,
) -> Any:
    """Count samples of each true class (rows) and predicted class (columns), as in scikit-learn.

    Args:
        targets_N: true classes.
        predictions_N: predicted classes.
        num_classes: number of classes K.
        normalize: ``None`` for counts; "true", "pred" or "all" to divide by the sums of the rows, of the columns or of
            the matrix. A row or column without samples stays 0.
        sparse: ``True`` for a SciPy CSR array, ``False`` for a NumPy array; ``None`` is sparse above 1000 classes.

    Returns:
        matrix (K, K), of int64 counts or float64 fractions.

    >>> confusion_matrix(np.array([0, 0, 1]), np.array([0, 1, 1]), 2, normalize="true").tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    if normalize is not None and normalize not in NORMALIZE:
        raise ValueError(f'normalize must be None, "true", "pred" or "all", got {normalize!r}.')
    cells, count = np.unique(targets_N * num_classes + predictions_N, return_counts=True)
    rows, columns = cells // num_classes, cells % num_classes
    values = count.astype(np.int64)
    if normalize is not None:
        total = {
            "true": np.bincount(targets_N, minlength=num_classes)[rows],
            "pred": np.bincount(predictions_N, minlength=num_classes)[columns],
            "all": np.full(len(cells), len(targets_N)),
        }[normalize]
        values = values / total
    if num_classes > DENSE_CLASSES if sparse is None else sparse:
        from scipy.sparse import csr_array

        return csr_array((values, (rows, columns)), shape=(num_classes, num_classes))
    matrix_KK = np.zeros((num_classes, num_classes), dtype=values.dtype)
    matrix_KK[rows, columns] = values
    return matrix_KK
