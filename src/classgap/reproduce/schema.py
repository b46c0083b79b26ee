"""Schema of a recipe: the settings of a table or figure, the paper's numbers, and three scales.

A recipe has parts, such as (a) and (b). A part has rows and columns, each with settings. Settings of an entry, later
ones win: the base, the recipe, the part, its row, its column, its cell, then the scale of the base and the scale of the
recipe. A setting that is null has its default.

Besides the settings of :class:`~classgap.engine.TrainConfig`, settings may have these keys:

- ``base``: name of shared settings in ``_bases.yaml``;
- ``data_options``: appended to ``data``, so that a scale can replace the dataset and keep its fraction or imbalance;
- ``metric``: what the entry shows, see :mod:`classgap.reproduce.metrics`;
- ``map``: "test" or "train" to keep a map of the features of these samples, or the name of an earlier layer to keep a
  map of its features of the test samples;
- ``corruptions``: also test on samples with noise, blur and low contrast;
- ``first_seed``: seed of the first run, 0 by default, so that settings are chosen and tested with different seeds;
- ``class``: replaces ``{class}`` in the metric, for tables with a column per class;
- ``baseline`` and ``against``: in a row, the row of the paper's table that it is compared with, and the settings that
  turn the row into its baseline, where they differ from those of the part.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

PAPERS = {
    "mr2": "MR² (arXiv 2602.00205)",
    "lmdl": "LMDL (Nguyen et al. 2024)",
    "elm": "ELM (arXiv 2204.13208)",
    "classgap": "classgap",
}

Scale = Literal["tiny", "cpu", "full-200", "full"]
OWN_TYPES = {
    "base": str,
    "data_options": str,
    "metric": str,
    "map": str,
    "class": str | int,
    "first_seed": int,
    "baseline": str,
    "against": dict,
}


def _check_own_keys(settings: dict[str, Any]) -> dict[str, Any]:
    for name, kind in OWN_TYPES.items():
        if not isinstance(settings.get(name), kind | None):
            raise ValueError(f"{name} has the type {type(settings[name]).__name__}, which is not allowed")
    first = settings.get("first_seed")
    if first is not None and (isinstance(first, bool) or first < 0):
        raise ValueError(f"first_seed must be an integer >= 0, got {first!r}")
    return settings


Settings = Annotated[dict[str, Any], AfterValidator(_check_own_keys)]
SCALES: tuple[Scale, ...] = ("tiny", "cpu", "full-200", "full")
Number = float | Literal["higher", "lower"] | None


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScaleSpec(_Strict):
    """Changes of a scale.

    Attributes:
        settings: Settings that replace those of all entries.
        rows: Settings by row, on top.
        columns: Settings by column, on top.
        only_rows: Rows to run; all by default.
        only_columns: Columns to run; all by default.
        seeds: Number of seeds.
        column_seeds: Number of seeds by column, where it differs.
        seconds: Measured time of a run on one core, for the estimate of the whole recipe.
        smoke: Whether the scale only shows that the recipe runs, for example with a random encoder.
    """

    settings: Settings = Field(default_factory=dict)
    rows: dict[str, Settings] = Field(default_factory=dict)
    columns: dict[str, Settings] = Field(default_factory=dict)
    only_rows: list[str] | None = None
    only_columns: list[str] | None = None
    seeds: int | None = Field(default=None, ge=1)
    column_seeds: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    seconds: float | None = Field(default=None, gt=0)
    smoke: bool = False


class Base(_Strict):
    """Settings that recipes share.

    Attributes:
        settings: Settings as published.
        assumed: Reason for each setting that the paper does not state.
        requires: What a machine must have for the full scale; empty if ``classgap train`` downloads it.
        scales: Changes of the scales.
    """

    settings: Settings
    assumed: dict[str, str] = Field(default_factory=dict)
    requires: str = ""
    scales: dict[Scale, ScaleSpec] = Field(default_factory=dict)


class Baseline(_Strict):
    """What the entries of a part are compared with.

    Attributes:
        settings: Replaces settings of an entry, so that its baseline results, usually ``{method: erm}``.
        row: Row of the paper's table with the baseline's values.
        values: The paper's values of the baseline by row, if its table does not contain them.
    """

    settings: Settings
    row: str | None = None
    values: dict[str, float | list[float]] = Field(default_factory=dict)


class Plot(_Strict):
    """How a figure is drawn.

    Attributes:
        kind: "lines" (columns on the horizontal axis, a line per row), "bars" (a bar per entry), "classes" (metrics
            per class, in the order of accuracy), "epochs" (a metric per epoch), "density" or "cumulative" (a
            distribution per row, one chart per group of classes), "map" (samples in two dimensions), "formula" (a
            function, without training).
        x: Label of the horizontal axis.
        y: Label of the vertical axis.
        metric: Per-class metric, metric per epoch, distribution or function that is drawn.
        classes: Classes shown, by frequency or accuracy group.
    """

    kind: Literal["lines", "bars", "classes", "epochs", "density", "cumulative", "map", "formula"]
    x: str = ""
    y: str = ""
    metric: str = ""
    classes: list[str] = Field(default_factory=list)


class Part(_Strict):
    """One table or picture.

    Attributes:
        shows: One line.
        settings: Settings of all entries.
        rows: Settings by row.
        columns: Settings by column.
        cells: Settings of single entries, by ``row / column``.
        values: The paper's numbers by row, one per column; "higher" or "lower" (than the baseline) where the paper has
            a picture or a sentence; null where it says nothing.
        change: The changes that the paper prints, by row.
        unit: Unit of the paper's numbers; fractions are shown in percent.
        statistic: "mean" over seeds, or "deviation" over seeds.
        baseline: What entries are compared with.
        claims: Rows, or ``row / column``, that decide the verdict of the recipe; all rows by default.
        plot: How a figure is drawn.
    """

    shows: str
    settings: Settings = Field(default_factory=dict)
    rows: dict[str, Settings]
    columns: dict[str, Settings]
    cells: dict[str, Settings] = Field(default_factory=dict)
    values: dict[str, list[Number]] = Field(default_factory=dict)
    change: dict[str, list[float | None]] = Field(default_factory=dict)
    unit: Literal["percent", "fraction", "number", "degrees", "setting"] = "percent"
    statistic: Literal["mean", "deviation"] = "mean"
    baseline: Baseline | None = None
    claims: list[str] | None = None
    plot: Plot | None = None

    @model_validator(mode="after")
    def _check_shape(self) -> Part:
        for name, numbers in (("values", self.values), ("change", self.change)):
            for row, cells in numbers.items():
                if row not in self.rows:
                    raise ValueError(f"{name} has the row {row!r}, which is not in rows.")
                if len(cells) != len(self.columns):
                    raise ValueError(f"{name}[{row!r}] must have {len(self.columns)} numbers, got {len(cells)}.")
        if self.baseline is not None:
            for label in [self.baseline.row, *(each.get("baseline") for each in self.rows.values())]:
                if label is not None and label not in self.values:
                    raise ValueError(f"baseline row {label!r} has no values.")
        for label in [*(self.claims or ()), *self.cells]:
            row, _, column = label.partition(" / ")
            if row not in self.rows or (column and column not in self.columns):
                raise ValueError(f"{label!r} names no entry.")
        return self


class Recipe(_Strict):
    """A table or figure of a paper.

    Attributes:
        name: Name to type, for example ``mr2-table-3``; the name of its file.
        paper: The paper.
        item: Its number in the paper, for example ``Table 3``.
        title: One line.
        where: Section that describes the experiment.
        note: What a reader should know.
        base: Shared settings.
        settings: Settings of all parts.
        assumed: Reason for each setting that the paper does not state.
        requires: What a machine must have for the full scale, in addition to that of the base.
        parts: Tables and pictures by name; one part has the name "a".
        scales: Changes of the scales.
        oddities: Contradictions in the paper.
    """

    name: str
    paper: Literal["mr2", "lmdl", "elm", "classgap"]
    item: str
    title: str
    where: str = ""
    note: str = ""
    base: str
    settings: Settings = Field(default_factory=dict)
    assumed: dict[str, str] = Field(default_factory=dict)
    requires: str = ""
    parts: dict[str, Part]
    scales: dict[Scale, ScaleSpec] = Field(default_factory=dict)
    oddities: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_scales(self) -> Recipe:
        rows = {row for part in self.parts.values() for row in part.rows}
        columns = {column for part in self.parts.values() for column in part.columns}
        for name, scale in self.scales.items():
            for kind, known, used in (
                ("row", rows, [*scale.rows, *(scale.only_rows or ())]),
                ("column", columns, [*scale.columns, *scale.column_seeds, *(scale.only_columns or ())]),
            ):
                for each in used:
                    if each not in known:
                        raise ValueError(f"scale {name} names the {kind} {each!r}, which no part has.")
        return self
