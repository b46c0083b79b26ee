"""Charts of many dots: classes in order of their accuracy, one figure against another, and a map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from classgap.report.svg import WIDTH, Point, Scale, chart, columns, dots, fitted, linear, round_ticks, segments, tag

LEFT, RIGHT, TOP, BOTTOM = 56.0, 12.0, 12.0, 44.0
LETTER = 7.5  # about how wide a letter is
WIDE_LETTER = 8.2  # in bold
SHIFTS = (0, -18, 18, -36, 36, -54, 54)  # of a name that has no room where it belongs


@dataclass(frozen=True)
class Dot:
    """One dot.

    Attributes:
        x: horizontally.
        y: vertically.
        kind: class name for the style sheet.
        index: the class it stands for.
        band: ends of a vertical line through it, such as an interval.
        name: beside it, if it is to be named.
    """

    x: float
    y: float
    kind: str
    index: int
    band: Point | None = None
    name: str = ""


@dataclass(frozen=True)
class Axes:
    """Both axes: smallest and largest value, label, how a tick is written; no ticks if that is ``None``."""

    x_domain: Point
    y_domain: Point
    x_label: str
    y_label: str
    x_tick: Callable[[float], str] | None
    y_tick: Callable[[float], str]


def dot_chart(key: str, title: str, description: str, points: Sequence[Dot], axes: Axes, height: float) -> Markup:
    """Dots on two axes, one path a kind, so that ten thousand stay small."""
    x = linear(axes.x_domain, (LEFT, WIDTH - RIGHT))
    y = linear(axes.y_domain, (height - BOTTOM, TOP))
    size = "large" if len(points) <= 150 else "small" if len(points) <= 1500 else "tiny"
    parts = [_frame(axes, x, y, height)]
    kinds = list(dict.fromkeys(point.kind for point in points))
    chosen = {kind: [point for point in points if point.kind == kind] for kind in kinds}
    for kind, some in chosen.items():
        bands = [((x(p.x), y(p.band[0])), (x(p.x), y(p.band[1]))) for p in some if p.band is not None]
        parts.append(segments(bands, f"interval {size} {kind}"))
    for kind, some in chosen.items():
        parts.append(dots([(x(p.x), y(p.y)) for p in some], f"{size} {kind}", [p.index for p in some]))
    named = [(x(point.x), y(point.y), fitted(point.name, 24)) for point in points if point.name]
    return chart(key, title, description, height, *parts, *_names_beside(named))


def map_chart(
    key: str, title: str, description: str, points: Sequence[Dot], names: dict[str, str], wrong: Sequence[Dot]
) -> Markup:
    """A map without axes: dots for samples predicted right, crosses for the others, a name over each kind.

    Args:
        key: tells the chart's ids from others'.
        title: what it shows.
        description: what is to be seen in it.
        points: samples predicted right, coordinates from 0 to 1.
        names: kind → its label.
        wrong: samples predicted wrong.
    """
    height = 600.0
    x, y = linear((0, 1), (20, WIDTH - 20)), linear((0, 1), (height - 20, 20))
    parts = []
    for kind in names:
        right_ones = [p for p in points if p.kind == kind]
        crosses = [(x(p.x), y(p.y)) for p in wrong if p.kind == kind]
        parts.append(dots([(x(p.x), y(p.y)) for p in right_ones], f"small {kind}", [p.index for p in right_ones]))
        strokes = [((a - 3, b - 3), (a + 3, b + 3)) for a, b in crosses]
        strokes += [((a - 3, b + 3), (a + 3, b - 3)) for a, b in crosses]
        parts.append(segments(strokes, f"cross {kind}"))
    places = []
    for kind, name in names.items():
        some = [p for p in [*points, *wrong] if p.kind == kind]
        if some:  # the name sits where the class's middle sample is
            middle = len(some) // 2
            at = sorted(x(p.x) for p in some)[middle], sorted(y(p.y) for p in some)[middle]
            places.append((*at, fitted(name, 24)))
    return chart(key, title, description, height, *parts, *_names_over(places, height))


def _names_over(places: Sequence[tuple[float, float, str]], height: float) -> list[Markup]:
    """Names over their places, moved up or down if another is there; too far from its place a name is left out."""
    taken: list[tuple[float, float, float, float]] = []
    found = []
    for x, y, name in places:
        half = WIDE_LETTER * sum(map(columns, name)) / 2
        middle = min(max(x, half + 4), WIDTH - half - 4)  # within the frame
        for shift in SHIFTS:
            box = (middle - half, y + shift - 12, middle + half, y + shift + 5)
            if box[1] > 0 and box[3] < height and not any(_cover(box, other) for other in taken):
                taken.append(box)
                found.append(tag("text", name, class_="place", x=middle, y=y + shift, text_anchor="middle"))
                break
    return found


def _names_beside(places: Sequence[tuple[float, float, str]]) -> list[Markup]:
    """Names right of, left of, above or below their dots, where they cover nothing; without room a name is left out."""
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y, _ in places]
    found = []
    for x, y, name in places:
        width = LETTER * sum(map(columns, name))
        for left, middle in ((x + 9, y), (x - 9 - width, y), (x - width / 2, y - 15), (x - width / 2, y + 15)):
            box = (left, middle - 7, left + width, middle + 7)
            if left > LEFT and box[2] < WIDTH and not any(_cover(box, other) for other in taken):
                taken.append(box)
                found.append(tag("text", name, class_="near", x=left + width / 2, y=middle + 4, text_anchor="middle"))
                break
    return found


def _cover(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _frame(axes: Axes, x: Scale, y: Scale, height: float) -> Markup:
    floor = height - BOTTOM
    y_ticks = round_ticks(*axes.y_domain)
    parts = [segments((((LEFT, y(t)), (WIDTH - RIGHT, y(t))) for t in y_ticks), "grid")]
    parts += [tag("text", axes.y_tick(t), class_="tick", x=LEFT - 8, y=y(t) + 4, text_anchor="end") for t in y_ticks]
    if axes.x_tick is not None:
        texts = [(x(t), axes.x_tick(t)) for t in round_ticks(*axes.x_domain)]
        parts += [tag("text", text, class_="tick", x=at, y=floor + 16, text_anchor="middle") for at, text in texts]
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(tag("text", axes.x_label, class_="axis", x=middle, y=height - 8, text_anchor="middle"))
    turned = f"translate(14 {(TOP + floor) / 2:.0f}) rotate(-90)"
    parts.append(tag("text", axes.y_label, class_="axis", transform=turned, text_anchor="middle"))
    return Markup("").join(parts)
