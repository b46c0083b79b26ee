"""Results of a recipe next to the paper's numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from classgap.reproduce.catalog import find_base
from classgap.reproduce.cells import Cell, Entry, Plan, make_plan
from classgap.reproduce.metrics import find_metric
from classgap.reproduce.schema import Number, Part, Recipe, Scale
from classgap.reproduce.store import ResultStore
from classgap.reproduce.verdicts import (
    JUDGED,
    Comparison,
    Verdict,
    combine,
    compare_paired,
    is_saturated,
    judge,
    judge_deviation,
)

DIRECTIONS = {"higher": math.inf, "lower": -math.inf}


@dataclass(frozen=True)
class EntryResult:
    """One number of the paper and ours.

    Attributes:
        part: Name of the part.
        row: Label of the row.
        column: Label of the column.
        paper: The paper's number, or "higher" or "lower" than the baseline.
        paper_change: The paper's difference from the baseline; ±inf if only the direction is known.
        values: Our numbers by seed, in the unit of the paper.
        comparison: Our differences from the baseline.
        verdict: Whether they agree.
        reason: Why there is no result.
        keys: Keys of the runs in the store, with those of the baseline.
        evidence: Runs, runs of the baseline, and their metrics; equal for two entries that show the same numbers.
    """

    part: str
    row: str
    column: str
    paper: Number
    paper_change: float | None
    values: tuple[float, ...]
    comparison: Comparison | None
    verdict: Verdict
    reason: str = ""
    keys: tuple[str, ...] = ()
    evidence: tuple[tuple[str, ...], ...] = ()

    @property
    def mean(self) -> float | None:
        """Mean over seeds."""
        return float(np.mean(self.values)) if self.values else None

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation over seeds; ``None`` with one seed."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None


@dataclass(frozen=True)
class RecipeResult:
    """A recipe at one scale: the paper's numbers and ours.

    Attributes:
        recipe: The recipe.
        scale: The scale.
        seeds: Number of seeds with results, or the requested number if there are none.
        entries: Entries in the order of the paper.
        records: Stored runs by part, row and column, for figures.
        verdict: Verdict on the claims.
    """

    recipe: Recipe
    scale: Scale
    seeds: int
    entries: tuple[EntryResult, ...]
    records: Mapping[tuple[str, str, str], tuple[Mapping[str, Any], ...]]
    verdict: Verdict

    @property
    def n_runs(self) -> int:
        """Number of stored runs that the result uses."""
        return len({key for entry in self.entries for key in entry.keys})

    @property
    def coverage(self) -> tuple[int, int]:
        """Number of entries with results, and of all entries."""
        return sum(bool(entry.values) for entry in self.entries), len(self.entries)

    @property
    def seed_range(self) -> tuple[int, int]:
        """Smallest and largest number of seeds of the entries that have results."""
        counts = [len(entry.values) for entry in self.entries if entry.values] or [self.seeds]
        return min(counts), max(counts)

    def part(self, name: str) -> list[EntryResult]:
        """Return the entries of a part."""
        return [entry for entry in self.entries if entry.part == name]

    def count(self, verdict: Verdict) -> int:
        """Return the number of entries with a verdict."""
        return sum(entry.verdict == verdict for entry in self.entries)


def collect(plan: Plan, store: ResultStore, impossible: Mapping[Cell, str] | None = None) -> RecipeResult:
    """Read the results of a plan from the store and judge them.

    Args:
        plan: Entries and seeds.
        store: Where results are.
        impossible: Reasons for cells that could not be run.
    """
    reasons = impossible or {}
    records = {entry: store.find(entry.cell, entry.seeds) for entry in plan.entries}
    entries = tuple(_result(plan, entry, store, records[entry], reasons) for entry in plan.entries)
    return RecipeResult(
        plan.recipe,
        plan.scale,
        max((len(each.values) for each in entries), default=0) or plan.seeds,
        entries,
        {(each.part, each.row, each.column): _with_map(each.cell, found) for each, found in records.items()},
        combine([each.verdict for each in entries if is_claim(plan.recipe.parts[each.part], each)]),
    )


def requirements(recipe: Recipe) -> str:
    """Return what a machine must have for the full scale of a recipe."""
    settings = [recipe.settings, *(part.settings for part in recipe.parts.values())]
    settings += [each for part in recipe.parts.values() for each in (*part.rows.values(), *part.columns.values())]
    bases = dict.fromkeys([recipe.base, *(each["base"] for each in settings if "base" in each)])
    needed = [recipe.requires, *(find_base(name).requires for name in bases)]
    return "; ".join(dict.fromkeys(filter(None, needed)))


def stand_ins(recipe: Recipe, scale: Scale) -> tuple[tuple[str, str], ...]:
    """Return the data and networks of a scale that differ from the paper's, each with those that it replaces.

    >>> from classgap.reproduce.catalog import load_recipe
    >>> stand_ins(load_recipe("mr2-table-3"), "cpu")
    (('mnist1d with conv1d', 'cifar100 with resnet32'),)
    """
    ours, papers = (
        {(e.part, e.row, e.column): e for e in make_plan(recipe, each).entries} for each in _with_full(scale)
    )
    pairs = dict.fromkeys((_problem(ours[labels].cell), _problem(papers[labels].cell)) for labels in ours)
    return tuple(pair for pair in pairs if pair[0] != pair[1])


def _with_full(scale: Scale) -> tuple[Scale, Scale]:
    return scale, "full"


def _problem(cell: Cell) -> str:
    """Return the data, long-tailed or not, and the network of a cell, without other options."""
    settings = cell.to_dict()
    data, model = (str(settings.get(name, "")) for name in ("data", "model"))
    name = data.partition(":")[2].strip("{}") if data.startswith("features:") else data.partition(":")[0]
    family = model.split(":")[1] if model.startswith(("open_clip:", "timm:", "torchvision:")) else model.split(":")[0]
    return f"{'long-tailed ' if 'imbalance=' in data else ''}{name} with {family}"


def _result(
    plan: Plan,
    entry: Entry,
    store: ResultStore,
    records: Mapping[int, Mapping[str, Any]],
    reasons: Mapping[Cell, str],
) -> EntryResult:
    part = plan.recipe.parts[entry.part]
    paper = _paper_value(part, entry.row, entry.column)
    change = _paper_change(part, entry.row, entry.column)
    if part.unit == "setting":
        return _setting(entry, paper)
    factor = 100.0 if part.unit == "percent" else 1.0
    own = _values(records, entry.metric, factor)
    against = {} if entry.baseline is None else store.find(entry.baseline, entry.seeds)
    base = _values(against, entry.baseline_metric, factor)
    shared = [seed for seed in own if seed in base]
    comparison = compare_paired([own[s] for s in shared], [base[s] for s in shared]) if shared else None
    values = tuple(value for value in own.values() if not math.isnan(value))
    own_keys = tuple(entry.cell.key(s) for s in records)
    base_keys = () if entry.baseline is None else tuple(entry.baseline.key(s) for s in against)
    reason = next((reasons[each] for each in (entry.cell, entry.baseline) if each is not None and each in reasons), "")
    verdict = _verdict(plan, part, entry, list(own.values()), comparison, change, paper, bool(reason))
    if verdict in JUDGED and comparison is not None and not math.isnan(comparison.mean) and part.statistic == "mean":
        pairs = [(records[seed], against[seed]) for seed in shared]
        same_runs = entry.metric == entry.baseline_metric and all(_is_same_run(*pair) for pair in pairs)
        ours, theirs = ([side[seed] for seed in shared] for side in (own, base))
        if same_runs or (part.unit == "percent" and is_saturated(ours, theirs)):
            verdict = "not testable"
    return EntryResult(
        entry.part,
        entry.row,
        entry.column,
        paper,
        change,
        values,
        None if entry.is_baseline else comparison,
        verdict,
        reason,
        tuple(dict.fromkeys((*own_keys, *base_keys))),
        (own_keys, base_keys, (part.statistic, entry.metric, entry.baseline_metric)),
    )


def _is_same_run(record: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two runs with different settings gave the same model: all metrics and classes are equal."""
    return all(name in record and record[name] == other.get(name) for name in ("metrics", "classes"))


def _verdict(
    plan: Plan,
    part: Part,
    entry: Entry,
    values: list[float],
    comparison: Comparison | None,
    change: float | None,
    paper: Number,
    missing: bool,
) -> Verdict:
    if not values:
        return "cannot be run here" if missing else "not run"
    if entry.smoke:
        return "smoke"
    if part.statistic == "deviation":
        return judge_deviation(values, paper) if isinstance(paper, float) else "no claim"
    if entry.is_baseline:
        return "baseline"
    if entry.baseline is None or change is None:
        return "no claim"
    return judge(comparison, change, full=plan.scale.startswith("full"), percent=part.unit == "percent")


def _setting(entry: Entry, paper: Number) -> EntryResult:
    value = find_metric({"settings": entry.cell.to_dict()}, entry.metric)
    verdict: Verdict = "no claim" if paper is None else "reproduced" if value == paper else "not reproduced"
    return EntryResult(
        entry.part, entry.row, entry.column, paper, None, () if value is None else (value,), None, verdict
    )


def _values(records: Mapping[int, Mapping[str, Any]], metric: str, factor: float) -> dict[int, float]:
    """Return a metric by seed; NaN where the run diverged."""
    found: dict[int, float] = {}
    for seed, record in records.items():
        value = math.nan if "diverged" in record else find_metric(record, metric)
        if value is not None:
            found[seed] = factor * value
    return found


def _with_map(cell: Cell, records: Mapping[int, Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Return the records by seed, with the ``map`` that the cell asks for and its decision ``boundary``."""
    wanted, found = cell.to_dict().get("map"), []
    for record in records.values():
        drawn = record.get("maps", {}).get(wanted, {})
        found.append({**record, "map": drawn.get("points"), "boundary": drawn.get("boundary")})
    return tuple(found)


def _paper_value(part: Part, row: str, column: str) -> Number:
    values = part.values.get(row)
    return None if values is None else values[list(part.columns).index(column)]


def _paper_change(part: Part, row: str, column: str) -> float | None:
    """Return the paper's difference from the baseline: from its values, otherwise the change that it prints."""
    value = _paper_value(part, row, column)
    if isinstance(value, str):
        return DIRECTIONS[value]
    if part.baseline is None or value is None:
        return None
    position = list(part.columns).index(column)
    reference: Number = None
    label = part.rows[row].get("baseline", part.baseline.row)
    if label is not None:
        reference = part.values[label][position]
    elif row in part.baseline.values:
        given = part.baseline.values[row]
        reference = given[position] if isinstance(given, list) else given
    if isinstance(reference, int | float):
        return round(value - reference, 6)
    printed = part.change.get(row)
    return None if printed is None else printed[position]


def is_claim(part: Part, result: EntryResult) -> bool:
    """Whether a number decides the verdict of its recipe."""
    if result.verdict in ("baseline", "no claim"):
        return False
    if part.claims is None:
        return True
    return any(_matches(claim, result) for claim in part.claims)


def _matches(claim: str, result: EntryResult) -> bool:
    row, _, column = claim.partition(" / ")
    return row == result.row and column in ("", result.column)


def best_scale(results: Iterable[RecipeResult]) -> RecipeResult | None:
    """Return the result at the largest scale that has runs."""
    return next((each for each in reversed(list(results)) if each.n_runs), None)
