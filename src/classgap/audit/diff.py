"""``AuditDiff``: what a change did to each class, on the same test samples."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from classgap.audit.diff_records import Change, ClassChange, GroupChange, SeedChange
from classgap.audit.json_records import to_plain, write_json


@dataclass(frozen=True)
class AuditDiff:
    """Two sides, each of one audit or of several seeds, on the same test samples.

    Attributes:
        before_name: the first side's name.
        after_name: the second side's name.
        seeds: how many pairs of runs were compared.
        samples: test samples.
        overall: accuracy over all samples.
        balanced: mean class accuracy.
        classes: one entry a class, in the order of the class indices.
        groups: by name, with the members that the first side's audit gives them ("hard" is what was hard before).
        own_groups: "easy", "medium", "hard", each side ranked by its own accuracies.
        gap: measure → its change: ``easy_hard`` with the first side's thirds, ``own_easy_hard`` with each own,
            ``best_worst``, ``worst_class``, ``worst_tenth``, ``std``, ``gini``.
        gained: classes that gained for certain (McNemar, Holm), largest gain first.
        paid: classes that paid for certain, largest loss first.
        over_seeds: figure → mean, standard deviation and paired test over seeds ("accuracy", "balanced_accuracy",
            the groups' names, and the gap measures); empty for one pair.
        level: of all intervals; the tests' level is 1 - level.
        summary: the outcome in plain words.
        notes: figure → how it was computed.
    """

    SCHEMA: ClassVar[int] = 1

    before_name: str
    after_name: str
    seeds: int
    samples: int
    overall: Change
    balanced: Change
    classes: tuple[ClassChange, ...]
    groups: Mapping[str, GroupChange]
    own_groups: Mapping[str, GroupChange]
    gap: Mapping[str, Change]
    gained: tuple[str, ...]
    paid: tuple[str, ...]
    over_seeds: Mapping[str, SeedChange]
    level: float
    summary: str
    notes: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON holds it."""
        return {"schema": self.SCHEMA} | {name: to_plain(getattr(self, name)) for name in self.__dataclass_fields__}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the comparison as JSON; the file is replaced whole or not at all."""
        write_json(path, self.to_dict())

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the comparison as one self-contained HTML page."""
        report = importlib.import_module("classgap.report")  # an upper room, so only here
        report.write_html(self, path)
