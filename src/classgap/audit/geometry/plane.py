"""Decision boundaries of a classifier of points in the plane (ELM Fig. 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from classgap.audit._types import Floats

Segment = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class PlaneGrid:
    """A grid of points in the plane.

    Attributes:
        x_W: horizontal coordinates.
        y_H: vertical coordinates.

    >>> grid = PlaneGrid.around([[0.0, 0.0], [1.0, 2.0]], steps=3, room=0.0)
    >>> grid.x_W, grid.y_H, grid.points_M2.shape
    (array([0. , 0.5, 1. ]), array([0., 1., 2.]), (9, 2))
    """

    x_W: Floats
    y_H: Floats

    @classmethod
    def around(cls, points_N2: Any, *, steps: int = 160, room: float = 0.06) -> PlaneGrid:
        """Cover the points, with some room around them.

        Args:
            points_N2: points in the plane.
            steps: grid points in each direction, at least 2.
            room: room on each side, as a fraction of the extent.
        """
        points_N2 = np.asarray(points_N2, dtype=float)
        if points_N2.ndim != 2 or points_N2.shape[1] != 2 or not len(points_N2):
            raise ValueError(f"points_N2 must be rows of two coordinates, got shape {points_N2.shape}.")
        if steps < 2:
            raise ValueError(f"steps must be >= 2, got {steps!r}.")
        low_2, high_2 = points_N2.min(axis=0), points_N2.max(axis=0)
        room_2 = np.where(high_2 > low_2, room * (high_2 - low_2), 1.0)  # equal coordinates still need a square
        axes = [np.linspace(low - r, high + r, steps) for low, high, r in zip(low_2, high_2, room_2, strict=True)]
        return cls(*axes)

    @property
    def points_M2(self) -> Floats:
        """All grid points, row by row, to pass to the classifier."""
        x_HW, y_HW = np.meshgrid(self.x_W, self.y_H)
        return np.stack([x_HW.ravel(), y_HW.ravel()], axis=1)


def decision_boundary(grid: PlaneGrid, scores_MK: Any) -> list[Segment]:
    """Find the lines on which the predicted class changes, by marching squares with linear interpolation.

    For each class k the boundary is the zero of z_k - max_{j≠k} z_j, which falls on the same line for both of its
    classes; with more than two classes each line is found from both sides.

    Args:
        grid: the grid.
        scores_MK: finite logits or probabilities at ``grid.points_M2``, at least two classes.

    >>> grid = PlaneGrid(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    >>> decision_boundary(grid, [[1, 0], [0, 3], [1, 0], [0, 3]])  # vertical, a quarter of the way
    [((0.25, 0.0), (0.25, 1.0))]
    """
    scores_MK = np.asarray(scores_MK, dtype=float)
    size = len(grid.x_W) * len(grid.y_H)
    if scores_MK.ndim != 2 or len(scores_MK) != size or scores_MK.shape[1] < 2:
        raise ValueError(
            f"scores_MK must have {size} rows, one per grid point, and at least two columns; got {scores_MK.shape}."
        )
    if not np.isfinite(scores_MK).all():
        raise ValueError("scores_MK must be finite, but contains NaN or infinity: pass logits or probabilities.")
    classes = scores_MK.shape[1]
    segments: list[Segment] = []
    for k in range(1 if classes == 2 else classes):
        others_M = np.delete(scores_MK, k, axis=1).max(axis=1)
        segments += _zero_lines(grid, (scores_MK[:, k] - others_M).reshape(len(grid.y_H), len(grid.x_W)))
    return segments


def _zero_lines(grid: PlaneGrid, lead_HW: Floats) -> list[Segment]:
    """Return the zero lines of a function on the grid, cell by cell."""
    above_HW = lead_HW > 0
    corners = (above_HW[:-1, :-1], above_HW[:-1, 1:], above_HW[1:, 1:], above_HW[1:, :-1])
    mixed = np.logical_or.reduce(corners) & ~np.logical_and.reduce(corners)
    segments = []
    for i, j in np.argwhere(mixed):
        # Corners in the order in which the edges of the cell visit them.
        places = ((i, j), (i, j + 1), (i + 1, j + 1), (i + 1, j))
        crossings = []
        for (a, b), (c, d) in zip(places, (*places[1:], places[0]), strict=True):
            start, end = lead_HW[a, b], lead_HW[c, d]
            if (start > 0) != (end > 0):
                t = start / (start - end)
                x = grid.x_W[b] + t * (grid.x_W[d] - grid.x_W[b])
                y = grid.y_H[a] + t * (grid.y_H[c] - grid.y_H[a])
                crossings.append((float(x), float(y)))
        # A saddle has four crossings: which two belong together does not matter at the size of a cell.
        segments += [(crossings[n], crossings[n + 1]) for n in range(0, len(crossings), 2)]
    return segments
