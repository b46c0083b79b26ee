"""Cells: the runs that the entries of a recipe need, each with its complete settings.

Entries that need the same run share one cell; the key of a cell is a hash of its settings.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from classgap.engine import TrainConfig
from classgap.engine.config import parse_settings
from classgap.reproduce.catalog import find_base
from classgap.reproduce.schema import Base, Part, Recipe, Scale, ScaleSpec, Settings

OWN_KEYS = ("base", "data_options", "metric", "class", "first_seed", "baseline", "against")
# Settings that do not change a result.
_IRRELEVANT = ("out", "device", "save_every", "audit", "tensorboard")
MEASURED = ("map", "corruptions")  # how a run is measured: no settings of its training
# What a run stores beyond its metrics, and the field of its record. It changes no result, so it is not in the key.
EXTRAS = {
    "map": "maps",
    "corruptions": "corrupted",
    "save_train_features": "train_classes",
    "class_stats": "class_stats",
}
PICTURES = ("test", "train")  # maps that are only drawn, so that one seed is enough
COMMON_SCALES = ("tiny", "cpu", "full")  # every recipe has these
DEFAULT_SEEDS = 3


@dataclass(frozen=True)
class Cell:
    """Settings of a run, without its seed.

    Attributes:
        settings: Settings that differ from the defaults of :class:`~classgap.engine.TrainConfig`.
        first_seed: Seed of its first run; run number ``i`` has the seed ``first_seed + i``.
    """

    settings: tuple[tuple[str, Any], ...]
    first_seed: int = 0

    @classmethod
    def from_settings(cls, settings: Settings) -> Cell:
        """Build a cell from settings of a recipe.

        Raises:
            ValueError: If a setting is unknown or invalid.
        """
        plain = {name: value for name, value in settings.items() if name not in OWN_KEYS and value is not None}
        if "data" not in plain:
            raise ValueError("the settings have no data.")
        if options := settings.get("data_options"):
            plain["data"] = f"{plain['data']}:{options}"
        measured = {name: plain.pop(name) for name in MEASURED if name in plain}
        config = TrainConfig(**parse_settings(plain))
        default = TrainConfig(data=config.data).to_dict()
        changed = {name: value for name, value in config.to_dict().items() if value != default[name]}
        kept = {"data": config.data} | {name: value for name, value in changed.items() if name != "seed"} | measured
        return cls(tuple((name, _freeze(kept[name])) for name in sorted(kept)), settings.get("first_seed") or 0)

    def key(self, number: int) -> str:
        """Return the key of a run: a hash of its settings and its seed.

        >>> Cell.from_settings({"data": "digits"}).key(0) == Cell.from_settings({"data": "digits", "lr": None}).key(0)
        True
        """
        named = {name: value for name, value in self.training_settings().items() if name not in _IRRELEVANT}
        text = json.dumps({**named, "seed": self.first_seed + number}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def work_name(self, number: int) -> str:
        """Return the name of the run directory: the key, and what the run stores in addition, which is in its settings.

        >>> Cell.from_settings({"data": "digits", "class_stats": True}).work_name(0).partition("-")[2]
        'class_stats'
        """
        return "-".join([self.key(number), *(name for name, _ in self.settings if name in EXTRAS)])

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in self.settings}

    def training_settings(self) -> dict[str, Any]:
        """Return the settings that determine the trained network, without what is stored or measured in addition."""
        return {name: value for name, value in self.to_dict().items() if name not in EXTRAS}

    def is_stored(self, number: int, record: Mapping[str, Any] | None) -> bool:
        """Whether a stored run has everything that this cell needs. Maps are drawn for the first run only.

        >>> cell = Cell.from_settings({"data": "digits", "class_stats": True})
        >>> cell.is_stored(0, None), cell.is_stored(0, {"metrics": {}}), cell.is_stored(0, {"class_stats": {}})
        (False, False, True)
        """
        if record is None or "diverged" in record:
            return record is not None
        for name, value in self.settings:
            if name == "map":
                needed = [each for each in str(value).split(",") if number == 0 or each not in PICTURES]
                if not set(needed) <= set(record.get("maps", {})):
                    return False
            elif name in EXTRAS and EXTRAS[name] not in record:
                return False
        return True

    def with_extras(self, others: Mapping[str, Any]) -> Cell:
        """Return the cell with further extras, so that one run serves several entries.

        >>> dict(Cell.from_settings({"data": "digits", "map": "test"}).with_extras({"map": "layer1"}).settings)["map"]
        'test,layer1'
        """
        settings = dict(self.settings)
        for name in EXTRAS:
            if name == "map" and name in others and name in settings:
                both = [*str(settings[name]).split(","), *str(others[name]).split(",")]
                settings[name] = ",".join(dict.fromkeys(both))
            elif name in others:
                settings[name] = others[name]
        return replace(self, settings=tuple(sorted(settings.items())))

    def config(self, number: int, files: Mapping[str, str] | None = None, **settings: Any) -> TrainConfig:
        """Return the configuration of a run.

        Args:
            number: Number of the run, from 0.
            files: Paths that replace ``{NAME}`` in ``data`` and ``model``.
            settings: Further settings, which do not change the result.

        Raises:
            ValueError: If a file is not given.
        """
        plain = {name: value for name, value in self.to_dict().items() if name not in MEASURED}
        for name in ("data", "model"):
            if isinstance(plain.get(name), str):
                plain[name] = fill_files(plain[name], files or {})
        return TrainConfig(**parse_settings({**plain, **settings, "seed": self.first_seed + number}))


@dataclass(frozen=True)
class Entry:
    """One number of a table, with the runs that it needs.

    Attributes:
        part: Name of the part.
        row: Label of the row.
        column: Label of the column.
        cell: Run of the entry.
        metric: Metric that is shown.
        baseline: Run that it is compared with; ``None`` if there is none, and the entry's own cell in the row of the
            baseline.
        baseline_metric: Metric of the baseline, usually the same.
        smoke: Whether the scale only shows that the recipe runs.
        seconds: Estimated time of a run on one core; ``None`` if it was never measured.
        seeds: Number of seeds.
    """

    part: str
    row: str
    column: str
    cell: Cell
    metric: str
    baseline: Cell | None
    baseline_metric: str
    smoke: bool
    seconds: float | None
    seeds: int

    @property
    def is_baseline(self) -> bool:
        """Whether the entry is itself the baseline."""
        return self.baseline == self.cell and self.baseline_metric == self.metric


@dataclass(frozen=True)
class Plan:
    """The entries of a recipe at one scale.

    Attributes:
        recipe: The recipe.
        scale: The scale.
        entries: Entries in the order of the parts, rows and columns.
        seeds: Largest number of seeds of an entry.
    """

    recipe: Recipe
    scale: Scale
    entries: tuple[Entry, ...]
    seeds: int

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The runs of all entries and their baselines, each once."""
        return tuple(self._seconds)

    @property
    def seconds(self) -> float | None:
        """Estimated time of all runs on one core; ``None`` if the time of one was never measured."""
        counts = self.seeds_by_cell
        known = [counts[cell] * each for cell, each in self._seconds.items() if each is not None]
        return sum(known) if len(known) == len(self._seconds) else None

    @property
    def seeds_by_cell(self) -> dict[Cell, int]:
        """Number of seeds of each run: the most that one of its entries has."""
        found: dict[Cell, int] = {}
        for entry in self.entries:
            for cell in (entry.baseline, entry.cell):
                if cell is not None:
                    found[cell] = max(found.get(cell, 0), entry.seeds)
        return found

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files that the runs read, for ``--files``."""
        texts = [str(dict(cell.settings).get(name, "")) for cell in self.cells for name in ("data", "model")]
        return tuple(dict.fromkeys(each for text in texts for each in _file_names(text)))

    @property
    def _seconds(self) -> dict[Cell, float | None]:
        """Time of each cell. An entry and its baseline share data and network, so they take about the same time."""
        if all(part.unit == "setting" for part in self.recipe.parts.values()):
            return {}
        both = ((cell, each.seconds) for each in self.entries for cell in (each.baseline, each.cell))
        return {cell: seconds for cell, seconds in both if cell is not None}

    def select(self, patterns: Iterable[str]) -> Plan:
        """Keep the entries whose ``row``, ``row / column`` or ``part / row / column`` matches one of some patterns.

        Raises:
            ValueError: If a pattern matches nothing.
        """
        chosen: list[Entry] = []
        for pattern in patterns:
            found = [each for each in self.entries if any(fnmatchcase(name, pattern) for name in _names(each))]
            if not found:
                rows = ", ".join(dict.fromkeys(each.row for each in self.entries))
                raise ValueError(f"--cells {pattern!r} matches no entry of {self.recipe.name}; its rows are {rows}.")
            chosen += found
        return replace(self, entries=tuple(each for each in self.entries if each in chosen))


def make_plan(recipe: Recipe, scale: Scale, seeds: int | None = None) -> Plan:
    """Resolve the entries of a recipe at a scale.

    Args:
        recipe: The recipe.
        scale: The scale.
        seeds: Number of seeds of all entries; those of the scale by default.

    Raises:
        ValueError: If the recipe does not have the scale, or an entry has invalid settings; the message names it.
    """
    if scale not in COMMON_SCALES and scale not in recipe.scales:
        raise ValueError(f"{recipe.name} has no scale {scale}; choose from {', '.join(COMMON_SCALES)}.")
    own = recipe.scales.get(scale, ScaleSpec())
    base = find_base(recipe.base).scales.get(scale, ScaleSpec())
    usual = own.seeds or base.seeds or DEFAULT_SEEDS
    entries = tuple(
        _entry(recipe, scale, name, part, row, column, seeds or own.column_seeds.get(column, usual))
        for name, part in recipe.parts.items()
        for row in part.rows
        for column in part.columns
        if (own.only_rows is None or row in own.only_rows) and (own.only_columns is None or column in own.only_columns)
    )
    return Plan(recipe, scale, entries, max((each.seeds for each in entries), default=seeds or usual))


def fill_files(text: str, files: Mapping[str, str]) -> str:
    """Replace ``{NAME}`` by the path of a file.

    Raises:
        ValueError: If the file is not given.

    >>> fill_files("features:{clinc150}", {"clinc150": "clinc150.npz"})
    'features:clinc150.npz'
    """
    for name, path in files.items():
        text = text.replace(f"{{{name}}}", path)
    if missing := _file_names(text):
        raise ValueError(f"{text} needs the file {missing[0]}; pass it with --files {missing[0]}=PATH.")
    return text


def _file_names(text: str) -> list[str]:
    """Names in braces. A template of prompts has braces of its own."""
    return [] if "template=" in text else re.findall(r"{([^{}]*)}", text)


def _entry(recipe: Recipe, scale: Scale, name: str, part: Part, row: str, column: str, seeds: int) -> Entry:
    labels = f"{recipe.name}, {row} / {column}"
    own = {"base": recipe.base, **recipe.settings, **part.settings, **part.rows[row], **part.columns[column]}
    own |= part.cells.get(f"{row} / {column}", {})
    base = find_base(own["base"])
    changes = [base.scales.get(scale, ScaleSpec()), recipe.scales.get(scale, ScaleSpec())]
    settings = {**base.settings, **own}
    for change in changes:
        settings |= change.settings | change.rows.get(row, {}) | change.columns.get(column, {})
    smoke = any(change.smoke for change in changes)
    try:
        cell = Cell.from_settings(settings)
        against = None if part.baseline is None else settings | own.get("against", part.baseline.settings)
        baseline = None if against is None else Cell.from_settings(against)
    except ValueError as error:
        raise ValueError(f"{labels}: {error}") from None
    if not isinstance(settings.get("metric"), str):
        raise ValueError(f"{labels}: the settings have no metric.")
    metric, other = (_metric(each) for each in (settings, against or settings))
    seconds = changes[1].seconds or _seconds(base, changes[0], settings)
    return Entry(name, row, column, cell, metric, baseline, other, smoke, seconds, seeds)


def _seconds(base: Base, scale: ScaleSpec, settings: Settings) -> float | None:
    """Time of a run with the settings of a base, in proportion to its epochs."""
    usual = (base.settings | scale.settings).get("epochs")
    return scale.seconds and scale.seconds * (settings["epochs"] / usual if usual else 1)


def _metric(settings: Settings) -> str:
    return str(settings["metric"]).replace("{class}", str(settings.get("class")))


def _names(entry: Entry) -> Iterator[str]:
    yield from (entry.row, f"{entry.row} / {entry.column}", f"{entry.part} / {entry.row} / {entry.column}")


def _freeze(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
