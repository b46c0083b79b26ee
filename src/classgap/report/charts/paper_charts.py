"""Charts as the papers draw them, from plain arrays: class statistics by epoch, distributions, and values by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from classgap.audit.stats.curves import check_values, density, ecdf, group_means
from classgap.report.charts.dot_chart import Axes, Dot, dot_chart
from classgap.report.charts.line_chart import DASHES, TONES, Line, line_chart, plain_tick
from classgap.report.charts.row_chart import Axis, Row, row_chart
from classgap.report.formatting import format_number
from classgap.report.ordering import THIRDS

MAX_ROWS = 40  # with more classes, dots instead of rows


def class_stats_chart(
    runs: Mapping[str, Sequence[Sequence[float | None]]],
    groups: Mapping[str, Sequence[int]],
    *,
    key: str = "class-stats",
    title: str = "Feature spread by epoch",
    y_label: str = "mean spread ‖ŝ‖ of the classes",
    epochs: Sequence[float] | None = None,
) -> Markup:
    """Draw a statistic of the classes by epoch, averaged over groups, for several runs (MR² Fig. 7).

    Colors and marks stand for groups, dashes for runs.

    Args:
        runs: name of each run and its values: one row per epoch with one entry per class, for example ``"spread"`` of
            each line of ``class_stats.jsonl``; ``None`` if unknown.
        groups: class indices of each group, for example the thirds of an audit.
        key: prefix of the chart's ids, unique on the page.
        title: short title.
        y_label: label of the vertical axis.
        epochs: epoch of each row; by default 1, 2, …

    >>> spreads = {"ERM": [[1.0, 2.0], [1.5, 4.0]], "MR²": [[1.0, 2.0], [1.0, 1.2]]}
    >>> class_stats_chart(spreads, {"easy": [0], "hard": [1]}).count('class="line hard')  # wide, narrow, legends
    8
    """
    lines, ends = [], []
    for i, (run, values) in enumerate(runs.items()):
        at = list(range(1, len(values) + 1)) if epochs is None else list(epochs)
        for j, (group, means) in enumerate(group_means(values, groups).items()):
            kind = group if group in THIRDS else f"tone{j % TONES}"
            lines.append(Line(f"{run}, {group}", at, means.tolist(), kind, i % DASHES, mark=j))
            ends.append(f"{run}, {group} {format_number(float(means[-1]))}")
    description = f"At the end: {'; '.join(ends)}."
    return line_chart(key, title, description, lines, x_label="epoch", y_label=y_label)


def distribution_chart(
    samples: Mapping[str, Any],
    *,
    key: str,
    title: str,
    x_label: str,
    cumulative: bool = False,
    zero: bool = False,
    lower: float | None = None,
) -> Markup:
    """Draw the distribution of a value, one line per run or method (ELM Fig. 3 and 6).

    Args:
        samples: name of each line and its values, at least one.
        key: prefix of the chart's ids, unique on the page.
        title: short title.
        x_label: label of the horizontal axis.
        cumulative: fractions up to each value instead of a density.
        zero: whether to draw a vertical line at 0.
        lower: smallest possible value, for example 0 for distances.

    >>> chart = distribution_chart({"ERM": [0.1, 2.0, 3.0]}, key="m", title="Margins", x_label="m", cumulative=True)
    >>> "samples up to this value" in chart
    True
    """
    known = {name: check_values(values) for name, values in samples.items()}
    lines = []
    low = min((float(values.min()) for values in known.values()), default=0.0)
    high = max((float(values.max()) for values in known.values()), default=1.0)
    for name, values in known.items():
        x, y = ecdf(values) if cumulative else density(values, lower=lower)
        if cumulative:  # from 0 at the left end to 1 at the right end
            line = Line(name, [low, *x.tolist(), high], [0.0, *y.tolist(), 1.0], step=True)
        else:
            line = Line(name, x.tolist(), y.tolist())
        lines.append(line)
    medians = "; ".join(f"{name} {format_number(float(np.median(values)))}" for name, values in known.items())
    return line_chart(
        key,
        title,
        f"Medians: {medians}.",
        lines,
        x_label=x_label,
        y_label="samples up to this value, %" if cumulative else "density",
        y_domain=(0.0, 1.0) if cumulative else None,
        y_tick=(lambda value: f"{100 * value:g}") if cumulative else plain_tick,
        zero=zero,
    )


def margin_distribution_chart(
    samples: Mapping[str, Any], *, name: str, key: str = "margin-distribution", cumulative: bool = False
) -> Markup:
    """Draw the logit margins of one class for several methods: ELM Fig. 3, or Fig. 6 if cumulative.

    Args:
        samples: name of each method, and the logit of the true class minus the largest other logit of each sample.
        name: name of the class.
        key: prefix of the chart's ids, unique on the page.
        cumulative: fractions up to each margin instead of a density.
    """
    title = f"Logit margins of {name}"
    label = "logit of the true class − max other logit"
    return distribution_chart(samples, key=key, title=title, x_label=label, cumulative=cumulative, zero=True)


def farthest_distance_chart(
    samples: Mapping[str, Any], *, name: str, key: str = "farthest-distance", cumulative: bool = False
) -> Markup:
    """Draw the distance of each sample of a class to the farthest one of the class, for several methods: ELM Fig. 4.

    Args:
        samples: name of each method, and the distances of the samples, from ``theory.elm.farthest_distances`` divided
            by the largest norm of a feature.
        name: name of the class.
        key: prefix of the chart's ids, unique on the page.
        cumulative: fractions up to each distance instead of a density.
    """
    title = f"Distance to the farthest sample of {name}"
    label = "farthest distance / largest norm"
    return distribution_chart(samples, key=key, title=title, x_label=label, cumulative=cumulative, lower=0.0)


def class_value_chart(
    values: Sequence[float],
    names: Sequence[str],
    *,
    key: str,
    title: str,
    label: str,
    kinds: Sequence[str] = (),
    indices: Sequence[int] = (),
    order: str = "classes in their order",
) -> Markup:
    """Draw one nonnegative value per class: rows with bars from 0, or dots if there are many classes.

    Args:
        values: value of each class.
        names: name of each class.
        key: prefix of the chart's ids, unique on the page.
        title: short title.
        label: label of the axis.
        kinds: CSS class of each class, for example its third.
        indices: class index of each class on the page, for details on a click; by default their positions.
        order: description of the order.
    """
    if not values or len(values) != len(names):
        raise ValueError(f"values must be one number per name, at least one; got {len(values)} for {len(names)} names.")
    kinds, indices = kinds or ["other"] * len(values), indices or list(range(len(values)))
    top = max(*values, 1e-9) * 1.05
    low, high = (min(zip(values, names, strict=True)), max(zip(values, names, strict=True)))
    description = f"From {format_number(low[0])} ({low[1]}) to {format_number(high[0])} ({high[1]}); {order}."
    if len(values) <= MAX_ROWS:
        rows = [
            Row(name, value, format_number(value), kind, index=index, bar_from=0.0)
            for name, value, kind, index in zip(names, values, kinds, indices, strict=True)
        ]
        return row_chart(key, title, description, rows, Axis((0.0, top), label, plain_tick))
    dots = [
        Dot(i, value, kind, index) for i, (value, kind, index) in enumerate(zip(values, kinds, indices, strict=True))
    ]
    axes = Axes((0, len(values) - 1), (0.0, top), order, label, None, plain_tick)
    return dot_chart(key, title, description, dots, axes, 360)


def weight_norm_chart(
    norms: Sequence[float],
    names: Sequence[str],
    *,
    key: str = "weight-norms",
    kinds: Sequence[str] = (),
    indices: Sequence[int] = (),
    order: str = "classes in their order",
) -> Markup:
    """Draw the norm of each class's weights in the head, ‖w_k‖ (MR² Fig. 3); arguments as :func:`class_value_chart`.

    >>> "‖w_k‖" in weight_norm_chart([1.0, 1.1], ["cat", "dog"])
    True
    """
    return class_value_chart(
        norms,
        names,
        key=key,
        title="Norm of each class's weights",
        label="weight norm ‖w_k‖",
        kinds=kinds,
        indices=indices,
        order=order,
    )
