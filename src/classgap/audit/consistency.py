"""Whether the parts of a saved audit belong together: a file that was edited or cut may be read, but not shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from classgap.audit._types import Integers
from classgap.audit.results import QUANTILE_LEVELS

if TYPE_CHECKING:
    from classgap.audit.audit import Audit

AGAIN = "make the audit again from its predictions"


def check_loaded(audit: Audit) -> None:
    """Refuse an audit whose classes are not those that its other parts name or number.

    Raises:
        ValueError: with the first part that does not fit.
    """
    _check_classes(audit)
    known, classes = set(audit.class_names), len(audit.classes)
    for where, name in _named(audit):
        if name not in known:
            raise ValueError(f"{where} names the class {name!r}, which is none of the {classes} in classes; {AGAIN}.")
    for where, numbers in _numbered(audit):
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < classes):
            worst = int(numbers.min() if numbers.min() < 0 else numbers.max())
            raise ValueError(
                f"{where} must be from 0 to {classes - 1}, as classes has {classes}; got {worst}; {AGAIN}."
            )
    _check_lengths(audit)


def _check_classes(audit: Audit) -> None:
    count = len(audit.classes)
    if not count or count != audit.overall.num_classes:
        raise ValueError(f"classes must hold {audit.overall.num_classes}, as overall says; got {count}; {AGAIN}.")
    for position, entry in enumerate(audit.classes):
        if entry.index != position:
            raise ValueError(f"classes[{position}].index must be {position}; got {entry.index}; {AGAIN}.")
        if entry.logit_margin is not None and len(entry.logit_margin.quantiles) != len(QUANTILE_LEVELS):
            found = f"{len(QUANTILE_LEVELS)} quantiles; got {len(entry.logit_margin.quantiles)}"
            raise ValueError(f"classes[{position}].logit_margin must have {found}; {AGAIN}.")
    if len(set(audit.class_names)) != count:
        raise ValueError(f"classes must have different names; some of the {count} are the same; {AGAIN}.")


def _check_lengths(audit: Audit) -> None:
    samples, points = audit.samples, audit.map
    index = samples.targets if samples.index is None else samples.index
    lengths = {len(samples.targets), len(samples.predictions), len(index)}
    if lengths != {audit.overall.n_samples}:
        raise ValueError(
            f"samples must hold {audit.overall.n_samples} labels and predictions, as overall says; got "
            f"{' and '.join(map(str, sorted(lengths)))}; {AGAIN}."
        )
    if points is not None and len({len(points.x), len(points.y), len(points.target), len(points.prediction)}) > 1:
        raise ValueError(f"map must have x, y, target and prediction of every point; some are missing; {AGAIN}.")


def _named(audit: Audit) -> Iterator[tuple[str, str]]:
    """Every class that another part names, with that part."""
    yield from (("gap", name) for name in (audit.gap.worst_name, audit.gap.best_name))
    for key, group in audit.groups.items():
        yield from ((f"groups.{key}", name) for name in group.members)
    for i, pair in enumerate(audit.pairs):
        yield from ((f"pairs[{i}]", name) for name in (pair.first, pair.second))
    for entry in audit.classes:
        yield from ((f"classes[{entry.index}].confusions", confusion.name) for confusion in entry.confusions)
    if audit.map is not None:
        yield from (("map", name) for name in audit.map.classes)


def _numbered(audit: Audit) -> Iterator[tuple[str, Integers]]:
    """Every list of class numbers."""
    yield "samples.targets", audit.samples.targets
    yield "samples.predictions", audit.samples.predictions
    if audit.map is not None:
        yield "map.target", np.array(audit.map.target, dtype=np.int64)
        yield "map.prediction", np.array(audit.map.prediction, dtype=np.int64)
