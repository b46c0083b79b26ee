"""Points of the plane with the decision boundary of a classifier (ELM Fig. 1); classes differ in color and shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from classgap.audit.geometry.plane import Segment
from classgap.report.charts.dot_chart import Axes, draw_frame
from classgap.report.charts.legend import SAMPLE_WIDTH
from classgap.report.charts.line_chart import TONES, frame_below, plain_tick
from classgap.report.charts.marks import draw_marks
from classgap.report.charts.svg import Layout, draw_both, draw_lines, svg_chart


def plane_chart(
    points_N2: Any,
    targets_N: Any,
    class_names: Sequence[str],
    *,
    boundary: Sequence[Segment] = (),
    key: str = "plane",
    title: str = "Points and decision boundary",
    x_label: str = "first coordinate",
    y_label: str = "second coordinate",
    height: float = 480.0,
) -> Markup:
    """Draw points as one kind of mark per class, and the decision boundary as a line.

    Args:
        points_N2: inputs or features, two coordinates each.
        targets_N: class of each point.
        class_names: name of each class.
        boundary: lines, from :func:`classgap.audit.geometry.plane.decision_boundary`.
        key: prefix of the chart's ids, unique on the page.
        title: short title.
        x_label: label of the horizontal axis.
        y_label: label of the vertical axis.
        height: height of the plot in the wide drawing.

    >>> chart = plane_chart([[0, 0], [1, 2]], [0, 1], ["head", "tail"], boundary=[((0.5, 0.0), (0.5, 2.0))])
    >>> chart.count('class="boundary"')  # with its sample in the legend, wide and narrow
    4
    """
    points_N2, targets_N = np.asarray(points_N2, dtype=float), np.asarray(targets_N, dtype=np.int64)
    if points_N2.ndim != 2 or points_N2.shape[1] != 2 or not len(points_N2):
        raise ValueError(f"points_N2 must be rows of two coordinates, at least one; got shape {points_N2.shape}.")
    if len(targets_N) != len(points_N2) or targets_N.min() < 0 or targets_N.max() >= len(class_names):
        raise ValueError(
            f"targets_N must be {len(points_N2)} classes from 0 to {len(class_names) - 1}, one per point; got "
            f"{len(targets_N)} from {targets_N.min(initial=0)} to {targets_N.max(initial=0)}."
        )
    corners = np.array([end for segment in boundary for end in segment]).reshape(-1, 2)
    low_2, high_2 = (end(np.concatenate([points_N2, corners]), axis=0) for end in (np.min, np.max))
    room_2 = np.maximum(0.03 * (high_2 - low_2), 1e-9)
    x_domain, y_domain = ((float(low_2[i] - room_2[i]), float(high_2[i] + room_2[i])) for i in (0, 1))
    axes = Axes(x_domain, y_domain, x_label, y_label, plain_tick, plain_tick)
    counts = np.bincount(targets_N, minlength=len(class_names))
    seen = [k for k in range(len(class_names)) if counts[k]]
    described = "; ".join(f"{class_names[k]}: {counts[k]} points" for k in seen)

    def draw(layout: Layout) -> Markup:
        items = [(class_names[k], _sample(k)) for k in seen]
        if boundary:
            items.append(("decision boundary", _boundary_sample))
        frame, legend = frame_below(layout, height, items)
        x, y = frame.scales(axes)
        parts = [*legend, draw_frame(axes, x, y, frame)]
        for k in seen:
            places = [(x(float(a)), y(float(b))) for a, b in points_N2[targets_N == k]]
            parts.append(draw_marks(places, k, f"tone{k % TONES}"))
        lines = [((x(a[0]), y(a[1])), (x(b[0]), y(b[1]))) for a, b in boundary]
        parts.append(draw_lines(lines, "boundary"))
        return svg_chart(key, title, f"{described}.", frame.height, *parts, layout=layout)

    return draw_both(draw)


def _sample(label: int) -> Callable[[float, float], Markup]:
    return lambda x, y: draw_marks([(x + SAMPLE_WIDTH / 2, y)], label, f"tone{label % TONES}")


def _boundary_sample(x: float, y: float) -> Markup:
    return draw_lines([((x, y), (x + SAMPLE_WIDTH, y))], "boundary")
