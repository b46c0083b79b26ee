"""Figures of a recipe, drawn as the paper draws them, from the stored runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from classgap.audit.results import QUANTILE_LEVELS
from classgap.audit.stats.curves import density
from classgap.report.charts.xy_chart import Axes, Series, xy_chart
from classgap.reproduce.results import EntryResult, RecipeResult
from classgap.reproduce.schema import Part, Plot

Record = Mapping[str, Any]
DENSITY_SAMPLES = 400  # drawn evenly from the quantiles
MAX_RATIO = 100.0  # of columns on a linear axis


def reproduction_charts(result: RecipeResult, name: str) -> list[Markup]:
    """Draw a part of a recipe; nothing if it has no figure or no results yet.

    Maps have a chart per row, distributions one per group of classes with all rows, other figures one chart.
    """
    part = result.recipe.parts[name]
    plot = part.plot
    if plot is None:
        return []
    title, axes = f"{result.recipe.item}: {part.shows}", Axes(plot.x, plot.y)
    if plot.kind == "map":
        maps = {row: record for row, record in _first_runs(result, name) if record.get("map")}
        shared = set.intersection(*(set(record["map"]) for record in maps.values())) if maps else set()
        return _panels(name, title, plot, {row: list(_map(record, shared)) for row, record in maps.items()})
    if plot.kind in ("density", "cumulative"):
        runs = list(_first_runs(result, name))
        panels = {group: [each for run in runs for each in _distribution(plot, group, *run)] for group in plot.classes}
        return _panels(name, title, plot, panels)
    if plot.kind == "formula":
        series = list(_formula(plot))
    elif plot.kind in ("lines", "bars"):
        series = list(_entries(part, result.part(name)))
        axes = Axes(plot.x, plot.y, () if _are_on_a_scale(list(part.columns)) else tuple(part.columns))
    else:
        series = [each for row, record in _first_runs(result, name) for each in _record_series(plot, row, record)]
    return [_draw(f"figure-{name}", title, series, axes)] if any(each.points for each in series) else []


def _panels(name: str, title: str, plot: Plot, panels: Mapping[str, Sequence[Series]]) -> list[Markup]:
    """Draw one chart per panel; a label has the same color in all of them."""
    labels = [each.label for series in panels.values() for each in series]
    return [
        _draw(
            f"figure-{name}-{i}",
            f"{title}; {panel}",
            series,
            Axes(plot.x, f"{panel}: {plot.y}" if plot.y else panel),
            labels,
        )
        for i, (panel, series) in enumerate(panels.items())
        if series
    ]


def _draw(key: str, title: str, series: Sequence[Series], axes: Axes, labels: Sequence[str] | None = None) -> Markup:
    description = f"{len(series)} series: {', '.join(dict.fromkeys(each.label for each in series))}."
    return xy_chart(key, title, description, series, axes, labels)


def _entries(part: Part, entries: list[EntryResult]) -> Iterator[Series]:
    """One line per row over the columns: ours with deviations, and the paper's."""
    assert part.plot is not None
    columns, line = list(part.columns), part.plot.kind == "lines"
    numeric = _are_on_a_scale(columns)
    places = {column: float(column) if numeric else float(i) for i, column in enumerate(columns)}
    for row in part.rows:
        own = [each for each in entries if each.row == row]
        known = [(places[each.column], each.mean, each.deviation) for each in own if each.mean is not None]
        intervals = tuple(None if spread is None else (mean - spread, mean + spread) for _, mean, spread in known)
        yield Series(row, tuple((x, mean) for x, mean, _ in known), intervals, line=line)
        paper = [(places[each.column], each.paper) for each in own if isinstance(each.paper, float)]
        if paper:
            yield Series(row, tuple(paper), line=line, paper=True)


def _first_runs(result: RecipeResult, name: str) -> Iterator[tuple[str, Record]]:
    """The first seed of each row."""
    seen = set()
    for (part, row, _), records in result.records.items():
        if part == name and records and row not in seen and "diverged" not in records[0]:
            seen.add(row)
            yield row, records[0]


def _record_series(plot: Plot, row: str, record: Record) -> Iterator[Series]:
    if plot.kind == "classes":
        yield from _classes(plot, row, record)
    elif plot.kind == "epochs":
        yield from _epochs(plot, row, record)


def _classes(plot: Plot, row: str, record: Record) -> Iterator[Series]:
    """A metric of each class, from the most to the least accurate class."""
    classes = record["classes"]
    values = classes.get(plot.metric)
    if values is not None:
        order = np.argsort([-(each or 0.0) for each in classes["accuracy"]], kind="stable")
        points = tuple((float(i), float(values[k])) for i, k in enumerate(order) if values[k] is not None)
        yield Series(row, points, line=False)


def _epochs(plot: Plot, row: str, record: Record) -> Iterator[Series]:
    """A metric per epoch; of the class statistics, one line per group of classes."""
    columns = record.get("class_stats") or record["epochs"]
    names = [f"{plot.metric}@{group}" for group in plot.classes] or [plot.metric]
    for name in names:
        points = tuple((float(i), value) for i, value in enumerate(columns.get(name, ()), start=1) if value is not None)
        yield Series(f"{row}, {name.partition('@')[2]}" if plot.classes else row, points)


def _distribution(plot: Plot, group: str, row: str, record: Record) -> Iterator[Series]:
    """The distribution of a value over the samples of the first class of a group, from its stored quantiles."""
    classes = record.get("train_classes" if plot.metric.startswith("train.") else "classes") or {}
    quantiles = classes.get(f"{plot.metric.removeprefix('train.')}_quantiles") or []
    members = (k for k, each in enumerate(quantiles) if each is not None and group in classes["groups"][k])
    chosen = next(members, None)
    if chosen is None:
        return
    values, levels = np.asarray(quantiles[chosen], dtype=float), np.asarray(QUANTILE_LEVELS)
    if plot.kind == "density":
        samples = np.interp((np.arange(DENSITY_SAMPLES) + 0.5) / DENSITY_SAMPLES, levels, values)
        values, levels = density(samples, lower=0.0 if values.min() >= 0 and "distance" in plot.metric else None)
    yield Series(row, tuple(zip(values.tolist(), levels.tolist(), strict=True)))


def _map(record: Record, shared: Collection[str]) -> Iterator[Series]:
    """Samples in two dimensions, one cloud per class, and the decision boundary of two classes.

    Maps show the hardest classes of a run. Of these, only the classes that all maps of a figure have are drawn.
    """
    clouds = {
        name: tuple((float(x), float(y)) for x, y in points)
        for name, points in record["map"].items()
        if name in shared or not shared
    }
    for name, points in clouds.items():
        yield Series(name, points, line=False)
    boundary = record.get("boundary")
    if boundary is not None:
        ends = _clip_line(boundary, [point for points in clouds.values() for point in points])
        if ends:
            yield Series("decision boundary", ends)


def _clip_line(line: Sequence[float], points: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Return the part of a·x + b·y + c = 0 in the bounding box of some points; empty if it lies outside.

    >>> _clip_line((1.0, 1.0, -1.0), [(0.0, 0.0), (2.0, 1.0)])
    ((0.0, 1.0), (1.0, 0.0))
    """
    a, b, c = line
    (x_low, x_high), (y_low, y_high) = ((min(each), max(each)) for each in zip(*points, strict=True))
    found = [(x, -(a * x + c) / b) for x in (x_low, x_high) if b] + [
        (-(b * y + c) / a, y) for y in (y_low, y_high) if a
    ]
    inside = sorted({(x, y) for x, y in found if x_low <= x <= x_high and y_low <= y <= y_high})
    return (inside[0], inside[-1]) if len(inside) > 1 else ()


def _formula(plot: Plot) -> Iterator[Series]:
    """MR² Figure 2: 0-1 loss, ramp loss and Φ_γ(u) = min(1, max(0, 1 - u/γ)) of Definition 1, of the margin u."""
    margins = np.linspace(-1.0, 3.0, 401)
    curves = {
        "Φ_γ, γ = 2": np.clip(1 - margins / 2, 0.0, 1.0),
        "ramp loss, γ = 1": np.clip(1 - margins, 0.0, 1.0),
        "0-1 loss": np.where(margins <= 0, 1.0, 0.0),
    }
    for label, values in curves.items():
        yield Series(label, tuple(zip(margins.tolist(), values.tolist(), strict=True)))


def _are_on_a_scale(labels: Sequence[str]) -> bool:
    """Whether columns are numbers within two orders of magnitude; more, as λ of ELM, are drawn at even distances.

    >>> _are_on_a_scale(["0", "0.5", "5"]), _are_on_a_scale(["0.0001", "0.01", "1"]), _are_on_a_scale(["head", "tail"])
    (True, False, False)
    """
    if not all(label.replace(".", "", 1).isdecimal() for label in labels):
        return False
    positive = [float(label) for label in labels if float(label) > 0]
    return max(positive, default=1.0) <= MAX_RATIO * min(positive, default=1.0)
