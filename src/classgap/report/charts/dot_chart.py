"""Charts of many dots: scatter plots and the embedding map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from classgap.report.charts.svg import (
    WIDE,
    Layout,
    Point,
    Scale,
    draw_both,
    draw_dots,
    draw_levels,
    draw_lines,
    linear_scale,
    nice_ticks,
    svg_chart,
    tag,
)
from classgap.report.formatting import display_width, truncate

LETTER_WIDTH = 7.5  # approximate
BOLD_LETTER_WIDTH = 8.8  # of DejaVu Sans, a wide font
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


@dataclass(frozen=True)
class Frame:
    """The plot of a drawing: its ends, in chart units.

    Attributes:
        layout: size of the drawing.
        height: height of the drawing.
        left: left end of the plot.
        right: right end of the plot.
        top: upper end of the plot.
        floor: lower end of the plot.
    """

    layout: Layout
    height: float
    left: float
    right: float
    top: float
    floor: float

    @classmethod
    def from_layout(cls, layout: Layout, height: float) -> Frame:
        """Leave room for ticks and labels; ``height`` is that of the wide drawing."""
        height = min(height, 340.0) if layout.narrow else height
        left, right = (62.0, 10.0) if layout.narrow else (66.0, 12.0)
        return cls(layout, height, left, layout.width - right, 12.0, height - 44.0)

    def scales(self, axes: Axes) -> tuple[Scale, Scale]:
        """Return the horizontal and the vertical scale."""
        return linear_scale(axes.x_domain, (self.left, self.right)), linear_scale(axes.y_domain, (self.floor, self.top))


def dot_chart(key: str, title: str, description: str, points: Sequence[Dot], axes: Axes, height: float) -> Markup:
    """Draw dots on two axes, as one path per kind to keep ten thousand of them small."""

    def draw(layout: Layout) -> Markup:
        frame = Frame.from_layout(layout, height)
        parts = _draw_points(points, axes, frame)
        return svg_chart(key, title, description, frame.height, *parts, layout=layout)

    return draw_both(draw)


def _draw_points(points: Sequence[Dot], axes: Axes, frame: Frame) -> list[Markup]:
    x, y = frame.scales(axes)
    crowd = len(points) * WIDE.width / frame.layout.width
    size = "large" if crowd <= 150 else "small" if crowd <= 1500 else "tiny"
    parts = [draw_frame(axes, x, y, frame)]
    kinds = list(dict.fromkeys(point.kind for point in points))
    by_kind = {kind: [point for point in points if point.kind == kind] for kind in kinds}
    narrow = frame.layout.narrow
    digits = 0 if narrow and size == "tiny" else 1  # the drawing for phones must not double the size of a page
    # Where intervals of neighbors cover each other, one per unit of the chart shows the same area.
    step, weight = (1, size) if digits else (max(1, round(len(points) / frame.layout.width)), "small")
    for kind, some in by_kind.items():
        known = [(round(x(p.x), digits), p.band) for p in some[::step] if p.band is not None]
        bands = [((at, round(y(low), digits)), (at, round(y(high), digits))) for at, (low, high) in known]
        parts.append(draw_lines(bands, f"interval {weight} {kind}"))
    for kind, some in by_kind.items():
        # The script knows the classes of the narrow drawing from the wide one.
        centers = [(round(x(p.x), digits), round(y(p.y), digits)) for p in some]
        parts.append(draw_dots(centers, f"{size} {kind}", () if narrow else [p.index for p in some]))
    labels = [(x(point.x), y(point.y), truncate(point.label, LABEL_WIDTH)) for point in points if point.label]
    return [*parts, *place_labels_beside(labels, frame)]


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
    return draw_both(lambda layout: _draw_map(key, title, description, correct, wrong, names, layout))


def _draw_map(
    key: str,
    title: str,
    description: str,
    correct: Sequence[Dot],
    wrong: Sequence[Dot],
    names: dict[str, str],
    layout: Layout,
) -> Markup:
    height = 420.0 if layout.narrow else 600.0
    x, y = linear_scale((0, 1), (20, layout.width - 20)), linear_scale((0, 1), (height - 20, 20))
    parts, labels = [], []
    for kind, name in names.items():
        dots = [p for p in correct if p.kind == kind]
        centers = [(x(p.x), y(p.y)) for p in dots]
        crosses = [(x(p.x), y(p.y)) for p in wrong if p.kind == kind]
        parts.append(draw_dots(centers, f"small {kind}", () if layout.narrow else [p.index for p in dots]))
        strokes = [((a - 3, b - 3), (a + 3, b + 3)) for a, b in crosses]
        strokes += [((a - 3, b + 3), (a + 3, b - 3)) for a, b in crosses]
        parts.append(draw_lines(strokes, f"cross {kind}"))
        both = [*centers, *crosses]
        if both:  # the name goes to the median of the class
            middle = len(both) // 2
            at = sorted(a for a, _ in both)[middle], sorted(b for _, b in both)[middle]
            labels.append((*at, truncate(name, LABEL_WIDTH)))
    placed = _place_labels_over(labels, layout.width, height)
    return svg_chart(key, title, description, height, *parts, *placed, layout=layout)


def _place_labels_over(labels: Sequence[tuple[float, float, str]], width: float, height: float) -> list[Markup]:
    """Center labels on their points, shifted up or down to avoid overlaps; omit a label that has no room."""
    taken: list[Box] = []
    placed = []
    for x, y, name in labels:
        half = BOLD_LETTER_WIDTH * display_width(name) / 2
        middle = min(max(x, half + 4), width - half - 4)
        for shift in LABEL_SHIFTS:
            box = (middle - half, y + shift - 12, middle + half, y + shift + 5)
            if box[1] > 0 and box[3] < height and not any(_overlaps(box, other) for other in taken):
                taken.append(box)
                placed.append(tag("text", name, class_="place", x=middle, y=y + shift, text_anchor="middle"))
                break
    return placed


def place_labels_beside(
    labels: Sequence[tuple[float, float, str]], frame: Frame, *, diagonal: bool = False, reserved: Sequence[Box] = ()
) -> list[Markup]:
    """Put labels next to their dots; omit a label that has no room.

    Args:
        labels: position of the dot and text.
        frame: plot that labels must stay in.
        diagonal: whether to put labels between the arms of a cross, instead of right, left, above or below.
        reserved: areas that labels must not cover.
    """
    taken: list[Box] = [*reserved, *((x - 5, y - 5, x + 5, y + 5) for x, y, _ in labels)]
    placed = []
    for x, y, name in labels:
        width = LETTER_WIDTH * display_width(name)
        right, left, center = x + 9, x - 9 - width, x - width / 2
        places = ((right, y), (left, y), (center, y - 15), (center, y + 15))
        if diagonal:
            places = ((right, y - 11), (left, y - 11), (right, y + 13), (left, y + 13))
        for start, middle in places:
            box = (start, middle - 7, start + width, middle + 7)
            if start > frame.left and box[2] < frame.layout.width and not any(_overlaps(box, other) for other in taken):
                taken.append(box)
                style = "near haloed" if diagonal else "near"
                placed.append(tag("text", name, class_=style, x=start + width / 2, y=middle + 4, text_anchor="middle"))
                break
    return placed


def _overlaps(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def draw_frame(axes: Axes, x: Scale, y: Scale, frame: Frame) -> Markup:
    """Draw grid lines, ticks and labels of both axes."""
    parts = draw_levels(y, nice_ticks(*axes.y_domain), frame.left, frame.right, axes.y_tick)
    if axes.x_tick is not None:
        texts = [(x(t), axes.x_tick(t)) for t in nice_ticks(*axes.x_domain, frame.layout.ticks)]
        parts += [
            tag("text", text, class_="tick", x=at, y=frame.floor + 16, text_anchor="middle") for at, text in texts
        ]
    middle = (frame.left + frame.right) / 2
    parts.append(tag("text", axes.x_label, class_="axis", x=middle, y=frame.height - 8, text_anchor="middle"))
    turned = f"translate(14 {(frame.top + frame.floor) / 2:.0f}) rotate(-90)"
    parts.append(tag("text", axes.y_label, class_="axis", transform=turned, text_anchor="middle"))
    return Markup("").join(parts)
