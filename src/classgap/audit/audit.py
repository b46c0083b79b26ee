"""``Audit``: what a classifier does to each of its classes, as one record that can be saved, shown and compared."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from classgap.audit.json_records import from_plain, read_json, to_plain, write_json
from classgap.audit.records import (
    ClassResult,
    ConfusionPair,
    FeatureMap,
    FeatureSummary,
    Gap,
    GroupResult,
    Overall,
)
from classgap.audit.samples import Samples


@dataclass(frozen=True)
class Audit:
    """The numbers of one classifier on one test set.

    Attributes:
        name: what was audited, for titles: a file's or a run's name.
        overall: the whole test set.
        classes: one entry a class, in the order of the class indices.
        groups: by name: "easy", "medium", "hard"; "head", "torso", "tail" if training counts are known; given ones.
        gap: how unevenly the classes do.
        pairs: the most confused pairs of classes, worst first.
        features: figures of features and head together; ``None`` if neither was given.
        map: a 2-D picture of some classes' features, if there are features.
        ranking: "own" if the thirds rank this model's accuracies, "baseline" if they rank given ones.
        level: of all intervals, 0.95 unless set otherwise.
        notes: figure → how it was computed, in one or two sentences.
        remarks: what was left out and why, and what to beware of.
        samples: every sample's label and prediction, for paired comparison.
    """

    SCHEMA: ClassVar[int] = 1

    name: str
    overall: Overall
    classes: tuple[ClassResult, ...]
    groups: Mapping[str, GroupResult]
    gap: Gap
    pairs: tuple[ConfusionPair, ...]
    features: FeatureSummary | None
    map: FeatureMap | None
    ranking: str
    level: float
    notes: Mapping[str, str]
    remarks: tuple[str, ...]
    samples: Samples

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of all classes, unseen ones included, in the order of the class indices."""
        return tuple(entry.name for entry in self.classes)

    def to_dict(self) -> dict[str, Any]:
        """The audit as ``audit.json`` holds it."""
        return {"schema": self.SCHEMA} | {name: to_plain(getattr(self, name)) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, data: Any) -> Audit:
        """The reverse of :meth:`to_dict`.

        Raises:
            ValueError: if ``data`` is not an audit of this schema.
        """
        schema = data.get("schema") if isinstance(data, dict) else None
        if schema != cls.SCHEMA:
            raise ValueError(
                f"not an audit that this version reads: schema is {schema!r}, {cls.SCHEMA} is needed; make the audit "
                "again from its predictions."
            )
        return from_plain(cls, data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the audit as JSON; the file is replaced whole or not at all."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Audit:
        """Read what :meth:`save` wrote.

        Raises:
            ValueError: if the file is missing, damaged or not an audit.
        """
        try:
            return cls.from_dict(read_json(path))
        except ValueError as error:
            message = str(error)
            raise ValueError(message if str(path) in message else f"{path}: {message}") from None

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the audit as one self-contained HTML page."""
        report = importlib.import_module("classgap.report")  # an upper room, so only here
        report.write_html(self, path)
