"""What the score columns of a CSV file hold: logits, probabilities, or something that is no class's score at all."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from classgap.audit.io.probabilities import sum_to_one

NEAR_ONE = (0.5, 2.0)  # sums of scores in [0, 1] that were probably meant to be 1


class ScoreColumns:
    """Rows of scores, looked at as they are read, so that they are held once and in single precision.

    >>> columns = ScoreColumns(["cat", "dog"])
    >>> columns.add(np.array([0.67, 0.34]))
    >>> kind, scores_NK = columns.finish(targets={"cat"})
    >>> kind, scores_NK.sum(axis=1).tolist()
    ('probabilities', [1.0])
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.rows: list[NDArray[np.float32]] = []
        self.sums: list[float] = []
        self.in_range = True
        self.two_decimals = True
        self.numbers: dict[int, set[float]] = {
            i: set() for i in range(len(names))
        }  # columns of different whole numbers

    def add(self, row_K: NDArray[np.float64]) -> None:
        """The next sample's scores."""
        for i in list(self.numbers):
            value = float(row_K[i])
            if value.is_integer() and value not in self.numbers[i]:
                self.numbers[i].add(value)
            else:
                del self.numbers[i]
        self.in_range = self.in_range and bool(((row_K >= 0) & (row_K <= 1)).all())
        if self.in_range:
            self.two_decimals = self.two_decimals and bool((np.abs(row_K - row_K.round(2)) < 1e-9).all())
            self.sums.append(float(row_K.sum()))
        self.rows.append(row_K.astype(np.float32))

    def finish(self, targets: Collection[str]) -> tuple[str, NDArray[np.float32]]:
        """Say "probabilities" or "logits" and give the scores; probabilities that were rounded are scaled to sum to 1.

        Raises:
            ValueError: if a column numbers the samples, or the scores can be neither of the two with any certainty.
        """
        self._refuse_sample_numbers(targets)
        scores_NK = np.stack(self.rows)
        if not self.in_range:
            return "logits", scores_NK
        sums_N = np.array(self.sums)
        if sum_to_one(sums_N, len(self.names), two_decimals=self.two_decimals):
            return "probabilities", (scores_NK / sums_N[:, None]).astype(np.float32)
        if NEAR_ONE[0] <= float(np.median(sums_N)) <= NEAR_ONE[1]:
            worst = int(np.abs(sums_N - 1).argmax())
            raise ValueError(
                f"the scores are all from 0 to 1 like probabilities, but those of sample {worst + 1} sum to "
                f"{sums_N[worst]:.4g}, not 1: check that there is one column for every class and none besides, or "
                "write logits."
            )
        return "logits", scores_NK

    def _refuse_sample_numbers(self, targets: Collection[str]) -> None:
        # If every column is so, the scores are whole numbers and no column stands out.
        if len(self.rows) < 2 or len(self.numbers) == len(self.names):
            return
        for i in self.numbers:
            if self.names[i] not in targets:
                raise ValueError(
                    f"the column {self.names[i]!r} seems to number the samples, not to score a class (different whole "
                    f"numbers, and no target is {self.names[i]!r}): name it index, or leave it out."
                )
