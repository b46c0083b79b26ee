"""Marks of several shapes, so that points and lines differ without color."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from classgap.report.charts.svg import Point, draw_dots, format_coordinate, tag

SIZE = 3.4  # half the width of a mark


def draw_marks(places: Sequence[Point], number: int, kind: str) -> Markup:
    """Draw marks as one path.

    Args:
        places: centers.
        number: which shape: dot, cross, square, triangle, plus, diamond, and again from the first.
        kind: CSS class of the color.

    >>> draw_marks([(1, 2)], 4, "hard")
    Markup('<path class="mark hard" d="M1 2m-3.91 0h7.82m-3.91 -3.91v7.82"/>')
    """
    shape = _SHAPES[number % len(_SHAPES)]
    if not places or shape is None:
        return draw_dots(places, f"small {kind}")
    path = "".join(f"M{format_coordinate(x)} {format_coordinate(y)}{shape}" for x, y in places)
    return tag("path", class_=f"mark {kind}", d=path)


def _polygon(*corners: Point) -> str:
    """Return a closed path through corners relative to the center."""
    (first_x, first_y), *others = corners
    steps = "".join(f"l{x - p:g} {y - q:g}" for (p, q), (x, y) in zip(corners[:-1], others, strict=True))
    return f"m{first_x:g} {first_y:g}{steps}z"


_S, _W = SIZE, SIZE * 1.15
_SHAPES: tuple[str | None, ...] = (
    None,
    f"m{-_S:g} {-_S:g}l{2 * _S:g} {2 * _S:g}m0 {-2 * _S:g}l{-2 * _S:g} {2 * _S:g}",
    _polygon((-_S, -_S), (_S, -_S), (_S, _S), (-_S, _S)),
    _polygon((0, -_W), (_W, _W), (-_W, _W)),
    f"m{-_W:g} 0h{2 * _W:g}m{-_W:g} {-_W:g}v{2 * _W:g}",
    _polygon((0, -_W), (_W, 0), (0, _W), (-_W, 0)),
)
