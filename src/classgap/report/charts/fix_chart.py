"""The charts of a fix: hard against easy changes of all remedies, and the proof of the chosen one."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from classgap.remedies.results import FixResult, RemedyResult
from classgap.report.charts.diff_charts import points_axis, signed_tick
from classgap.report.charts.dot_chart import Axes, Box, Frame, draw_frame, place_labels_beside
from classgap.report.charts.row_chart import Row, row_chart
from classgap.report.charts.svg import Layout, Point, Scale, draw_both, draw_dots, draw_lines, svg_chart, tag
from classgap.report.fix_summary import NAMES, exceeded_limits, shown_measures
from classgap.report.formatting import format_percent, format_points, truncate

HEIGHT = 440.0
LABEL_WIDTH = 36  # columns
LIMIT_WIDTH = 84.0  # of the limit's label
CROSS = 4.5  # half the size of a cross
MIN_REACH = 0.005  # of each axis


def remedy_scatter(result: FixResult) -> Markup:
    """Change of the hard third against that of the easy third, one mark per remedy.

    The chosen remedy has a ring, remedies within the limits a dot, and the others a cross.
    """
    limit = result.limits["easy"] if result.goal != "cost" and result.limits["easy"] < 1 else None
    axes = Axes(
        _domain(result, "easy", () if limit is None else (-limit,)),
        _domain(result, "hard", ()),
        "easy third, change in points",
        "hard third, change in points",
        signed_tick,
        signed_tick,
    )
    description = "; ".join(
        f"{remedy.name}: hard {format_points(remedy.change['hard'])}, easy {format_points(remedy.change['easy'])}"
        for remedy in result.remedies
    )

    def draw(layout: Layout) -> Markup:
        frame = Frame.from_layout(layout, HEIGHT)
        return svg_chart(
            "remedies-chart",
            "Change of the hard third against the change of the easy third",
            f"{description} percentage points. The table below lists all values.",
            frame.height,
            *_draw_remedies(result, axes, limit, frame),
            layout=layout,
        )

    return draw_both(draw)


def _draw_remedies(result: FixResult, axes: Axes, limit: float | None, frame: Frame) -> list[Markup]:
    x, y = frame.scales(axes)
    # The chosen remedy is drawn last, on top, and labeled first, where there is most room.
    order = sorted(result.remedies, key=lambda remedy: remedy.chosen)
    marks = [_draw_remedy(result, remedy, x, y) for remedy in order]
    labels = [
        (x(remedy.change["easy"]), y(remedy.change["hard"]), truncate(remedy.name, LABEL_WIDTH))
        for remedy in reversed(order)
    ]
    # The label of the limit is at the bottom of the plot, on the side that has room.
    reserved = [] if limit is None else [_limit_box(x(-limit), frame)]
    zero = [((x(0), frame.top), (x(0), frame.floor)), ((frame.left, y(0)), (frame.right, y(0)))]
    return [
        *([] if limit is None else [_draw_region(x(-limit), frame)]),
        draw_frame(axes, x, y, frame),
        draw_lines(zero, "zero"),
        *([] if limit is None else [_draw_limit(x(-limit), limit, frame)]),
        *marks,
        *place_labels_beside(labels, frame, diagonal=True, reserved=reserved),
    ]


def proof_chart(result: FixResult) -> Markup:
    """Change of each measure of the proof, with its interval."""
    assert result.proof is not None
    known = {name: result.proof[name] for name in shown_measures(result) if name in result.proof}
    rows = [
        Row(
            NAMES[name],
            proof.change,
            format_points(proof.change),
            name if name in ("easy", "medium", "hard") else "other",
            proof.interval,
        )
        for name, proof in known.items()
    ]
    description = "; ".join(f"{row.label} {row.text}" for row in rows)
    return row_chart(
        "proof-chart", "Change made by the chosen remedy", f"{description} points.", rows, points_axis(rows)
    )


def mark_kind(result: FixResult, remedy: RemedyResult) -> str:
    """Return the CSS class of a remedy: blue if chosen, orange if it exceeds a limit, otherwise gray."""
    if remedy.chosen:
        return "gained"
    return "regressed" if exceeded_limits(result, remedy) else "unclear"


def _domain(result: FixResult, name: str, others: Sequence[float]) -> Point:
    values = [0.0, *others]
    for remedy in result.remedies:
        values += [remedy.change[name], *remedy.interval[name]]
    low, high = min(values), max(values)
    pad = max(0.05 * (high - low), MIN_REACH / 2)
    return low - pad, high + pad


def _draw_region(edge: float, frame: Frame) -> Markup:
    width, height = max(edge - frame.left, 0.0), frame.floor - frame.top
    return tag("rect", class_="beyond", x=frame.left, y=frame.top, width=width, height=height)


def _draw_limit(edge: float, limit: float, frame: Frame) -> Markup:
    line = draw_lines([((edge, frame.top), (edge, frame.floor))], "limit")
    left, _, right, bottom = _limit_box(edge, frame)
    before = left < edge
    text = tag(
        "text",
        f"limit −{format_percent(limit)}",
        class_="tick haloed",
        x=right if before else left,
        y=bottom - 4,
        text_anchor="end" if before else "start",
    )
    return line + text


def _limit_box(edge: float, frame: Frame) -> Box:
    """Place of the limit's label: left of the line if there is room, else right of it."""
    left = edge - 6 - LIMIT_WIDTH if edge - frame.left > LIMIT_WIDTH + 6 else edge + 6
    return left, frame.floor - 20, left + LIMIT_WIDTH, frame.floor - 4


def _draw_remedy(result: FixResult, remedy: RemedyResult, x: Scale, y: Scale) -> Markup:
    at = x(remedy.change["easy"]), y(remedy.change["hard"])
    (left, right), (low, high) = remedy.interval["easy"], remedy.interval["hard"]
    reach = draw_lines([((x(left), at[1]), (x(right), at[1])), ((at[0], y(low)), (at[0], y(high)))], "reach")
    if remedy.chosen:
        mark = draw_dots([at], "dot") + tag("circle", class_="ring", cx=at[0], cy=at[1], r=9)
    elif exceeded_limits(result, remedy):
        a, b = at
        strokes = [((a - CROSS, b - CROSS), (a + CROSS, b + CROSS)), ((a - CROSS, b + CROSS), (a + CROSS, b - CROSS))]
        mark = draw_lines(strokes, "cross")
    else:
        mark = draw_dots([at], "dot")
    hint = f"{remedy.name}: hard {format_points(remedy.change['hard'])}, easy {format_points(remedy.change['easy'])}"
    return tag("g", tag("title", hint), reach, mark, class_=mark_kind(result, remedy))
