"""Charts of many dots: scatter plots and the feature map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from classgap.report.charts.svg import (
    WIDTH,
    Point,
    Scale,
    draw_dots,
    draw_lines,
    linear_scale,
    nice_ticks,
    svg_chart,
    tag,
)
from classgap.report.formatting import display_width, truncate

LEFT, RIGHT, TOP, BOTTOM = 56.0, 12.0, 12.0, 44.0
LETTER_WIDTH = 7.5  # approximate
BOLD_LETTER_WIDTH = 8.2
LABEL_WIDTH = 24  # columns
LABEL_SHIFTS = (0, -18, 18, -36, 36, -54, 54)  # vertical offsets to try when labels collide

Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Dot:
    """One dot.

    Attributes:
        x: horizontal value.
        y: vertical value.
        kind: CSS class.
        index: class index.
        band: ends of a vertical line through the dot, for example an interval.
        label: text next to the dot.
    """

    x: float
    y: float
    kind: str
    index: int
    band: Point | None = None
    label: str = ""


@dataclass(frozen=True)
class Axes:
    """Domains, labels and tick formats of both axes; an axis whose tick format is ``None`` has no ticks."""

    x_domain: Point
    y_domain: Point
    x_label: str
    y_label: str
    x_tick: Callable[[float], str] | None
    y_tick: Callable[[float], str]


def dot_chart(key: str, title: str, description: str, points: Sequence[Dot], axes: Axes, height: float) -> Markup:
    """Draw dots on two axes, as one path per kind to keep ten thousand of them small."""
    x = linear_scale(axes.x_domain, (LEFT, WIDTH - RIGHT))
    y = linear_scale(axes.y_domain, (height - BOTTOM, TOP))
    size = "large" if len(points) <= 150 else "small" if len(points) <= 1500 else "tiny"
    parts = [draw_frame(axes, x, y, height)]
    kinds = list(dict.fromkeys(point.kind for point in points))
    by_kind = {kind: [point for point in points if point.kind == kind] for kind in kinds}
    for kind, some in by_kind.items():
        bands = [((x(p.x), y(p.band[0])), (x(p.x), y(p.band[1]))) for p in some if p.band is not None]
        parts.append(draw_lines(bands, f"interval {size} {kind}"))
    for kind, some in by_kind.items():
        parts.append(draw_dots([(x(p.x), y(p.y)) for p in some], f"{size} {kind}", [p.index for p in some]))
    labels = [(x(point.x), y(point.y), truncate(point.label, LABEL_WIDTH)) for point in points if point.label]
    return svg_chart(key, title, description, height, *parts, *place_labels_beside(labels))


def map_chart(
    key: str, title: str, description: str, correct: Sequence[Dot], wrong: Sequence[Dot], names: dict[str, str]
) -> Markup:
    """Draw a map without axes: a dot per correct sample, a cross per wrong one, and the name of each kind.

    Args:
        key: prefix of the chart's ids, unique on the page.
        title: short title.
        description: one or two sentences on the content.
        correct: correctly predicted samples, coordinates in [0, 1].
        wrong: wrongly predicted samples.
        names: label of each kind.
    """
    height = 600.0
    x, y = linear_scale((0, 1), (20, WIDTH - 20)), linear_scale((0, 1), (height - 20, 20))
    parts, labels = [], []
    for kind, name in names.items():
        dots = [p for p in correct if p.kind == kind]
        centers = [(x(p.x), y(p.y)) for p in dots]
        crosses = [(x(p.x), y(p.y)) for p in wrong if p.kind == kind]
        parts.append(draw_dots(centers, f"small {kind}", [p.index for p in dots]))
        strokes = [((a - 3, b - 3), (a + 3, b + 3)) for a, b in crosses]
        strokes += [((a - 3, b + 3), (a + 3, b - 3)) for a, b in crosses]
        parts.append(draw_lines(strokes, f"cross {kind}"))
        both = [*centers, *crosses]
        if both:  # the name goes to the median of the class
            middle = len(both) // 2
            at = sorted(a for a, _ in both)[middle], sorted(b for _, b in both)[middle]
            labels.append((*at, truncate(name, LABEL_WIDTH)))
    return svg_chart(key, title, description, height, *parts, *_place_labels_over(labels, height))


def _place_labels_over(labels: Sequence[tuple[float, float, str]], height: float) -> list[Markup]:
    """Center labels on their points, shifted up or down to avoid overlaps; omit a label that has no room."""
    taken: list[Box] = []
    placed = []
    for x, y, name in labels:
        half = BOLD_LETTER_WIDTH * display_width(name) / 2
        middle = min(max(x, half + 4), WIDTH - half - 4)
        for shift in LABEL_SHIFTS:
            box = (middle - half, y + shift - 12, middle + half, y + shift + 5)
            if box[1] > 0 and box[3] < height and not any(_overlaps(box, other) for other in taken):
                taken.append(box)
                placed.append(tag("text", name, class_="place", x=middle, y=y + shift, text_anchor="middle"))
                break
    return placed


def place_labels_beside(labels: Sequence[tuple[float, float, str]], *, diagonal: bool = False) -> list[Markup]:
    """Put labels next to their dots; omit a label that has no room.

    Args:
        labels: position of the dot and text.
        diagonal: whether to put labels between the arms of a cross, instead of right, left, above or below.
    """
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y, _ in labels]
    placed = []
    for x, y, name in labels:
        width = LETTER_WIDTH * display_width(name)
        right, left, center = x + 9, x - 9 - width, x - width / 2
        places = ((right, y), (left, y), (center, y - 15), (center, y + 15))
        if diagonal:
            places = ((right, y - 11), (left, y - 11), (right, y + 13), (left, y + 13))
        for start, middle in places:
            box = (start, middle - 7, start + width, middle + 7)
            if start > LEFT and box[2] < WIDTH and not any(_overlaps(box, other) for other in taken):
                taken.append(box)
                style = "near haloed" if diagonal else "near"
                placed.append(tag("text", name, class_=style, x=start + width / 2, y=middle + 4, text_anchor="middle"))
                break
    return placed


def _overlaps(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def draw_frame(axes: Axes, x: Scale, y: Scale, height: float) -> Markup:
    """Draw grid lines, ticks and labels of both axes."""
    floor = height - BOTTOM
    y_ticks = nice_ticks(*axes.y_domain)
    parts = [draw_lines((((LEFT, y(t)), (WIDTH - RIGHT, y(t))) for t in y_ticks), "grid")]
    parts += [tag("text", axes.y_tick(t), class_="tick", x=LEFT - 8, y=y(t) + 4, text_anchor="end") for t in y_ticks]
    if axes.x_tick is not None:
        texts = [(x(t), axes.x_tick(t)) for t in nice_ticks(*axes.x_domain)]
        parts += [tag("text", text, class_="tick", x=at, y=floor + 16, text_anchor="middle") for at, text in texts]
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(tag("text", axes.x_label, class_="axis", x=middle, y=height - 8, text_anchor="middle"))
    turned = f"translate(14 {(TOP + floor) / 2:.0f}) rotate(-90)"
    parts.append(tag("text", axes.y_label, class_="axis", transform=turned, text_anchor="middle"))
    return Markup("").join(parts)
