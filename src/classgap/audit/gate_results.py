"""Results of a gate. All values are percentage points, except counts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from classgap.audit.results import STRICT
from classgap.audit.serialization import from_plain, name_file_in_errors, read_json, to_plain, write_json


@dataclass(frozen=True)
class Violation:
    """A class that breaks a rule.

    Attributes:
        name: name of the class.
        before: accuracy before; ``None`` for a class that only the new model has.
        after: accuracy after.
        value: drop, or accuracy, that the rule limits.
        bound: confidence bound of ``value``, which is beyond the limit.
        support: number of samples; for drops between different test sets, of the baseline.
    """

    __pydantic_config__ = STRICT

    name: str
    before: float | None
    after: float
    value: float
    bound: float
    support: int


@dataclass(frozen=True)
class RuleResult:
    """Outcome of one rule.

    Attributes:
        rule: "max_class_drop", "max_group_drop", "min_class_accuracy" or "max_gap".
        group: group of a "max_group_drop" rule.
        limit: limit of the rule.
        passed: whether the rule holds, or is not significantly broken.
        value: largest drop of a class, drop of the group, lowest accuracy, or gap.
        bound: confidence bound of ``value``: lower for drops and gaps, upper for accuracies. For rules about classes it
            holds for all classes together, and is the one closest to breaking the rule.
        expected_by_chance: drop of a group to expect if both models are equally good; ``bound`` counts beyond it.
        worst: class that ``value`` is of, in rules about classes.
        n_tested: number of classes tested.
        violations: classes that break the rule, worst first.
    """

    __pydantic_config__ = STRICT

    rule: str
    group: str | None
    limit: float
    passed: bool
    value: float
    bound: float
    expected_by_chance: float = 0.0
    worst: str | None = None
    n_tested: int = 1
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True)
class GroupDrop:
    """Drop of a group of classes.

    Attributes:
        name: name of the group; "overall" for all samples.
        n_classes: number of classes.
        before: mean class accuracy before; of "overall", the accuracy.
        after: mean class accuracy after.
        drop: before - after.
        expected_by_chance: drop to expect if both models are equally good. Not 0 for thirds that the baseline ranks on
            these samples: classes that rank easy by good luck fall.
        bound: lower confidence bound of the drop beyond chance.
        detectable: smallest true drop that is found with a probability of 80 %; ``None`` if even a drop to 0 is not.
    """

    __pydantic_config__ = STRICT

    name: str
    n_classes: int
    before: float
    after: float
    drop: float
    expected_by_chance: float
    bound: float
    detectable: float | None


@dataclass(frozen=True)
class ClassPower:
    """Smallest true drop of each class that is found with a probability of 80 %.

    Attributes:
        classes: name of the class → smallest drop; ``None`` if even a drop to 0 is not found.
        median: median over the classes in which a drop can be found; ``None`` if there are none.
        low: smallest, for the classes with the most samples.
        high: largest.
        n_undetectable: number of classes in which even a drop to 0 is not found.
    """

    __pydantic_config__ = STRICT

    classes: Mapping[str, float | None]
    median: float | None
    low: float | None
    high: float | None
    n_undetectable: int


@dataclass(frozen=True)
class GateResult:
    """Outcome of a gate: a new model against a baseline.

    Attributes:
        before_name: name of the baseline.
        after_name: name of the new model.
        passed: whether no rule is broken.
        rules: outcome of each rule.
        groups: name → drop of each group of the baseline, and "overall".
        power: smallest drop of each class that this test set could detect.
        n_samples: number of samples compared.
        only_before: number of samples of the baseline that were left out.
        only_after: number of samples of the new model that were left out.
        added: classes that only the new model has, or was tested on.
        removed: classes that only the baseline has, or was tested on.
        renamed: class name before → class name after.
        paired: whether both models are compared on the same samples.
        n_samples_after: number of samples of the new model if samples are not paired.
        confidence_level: confidence level of the whole gate; see :class:`GateRules`.
        seed: seed of the permutation tests.

    >>> from classgap.audit import Audit, gate
    >>> targets = [0] * 40 + [1] * 40
    >>> audits = [Audit.from_predictions(predictions=[0] * n + [1] * (80 - n), targets=targets) for n in (40, 60)]
    >>> result = gate(*audits, max_class_drop=3)
    >>> result.passed, [rule.rule for rule in result.broken]
    (False, ['max_class_drop'])
    """

    SCHEMA: ClassVar[int] = 2
    __pydantic_config__ = STRICT

    before_name: str
    after_name: str
    passed: bool
    rules: tuple[RuleResult, ...]
    groups: Mapping[str, GroupDrop]
    power: ClassPower
    n_samples: int
    only_before: int
    only_after: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    confidence_level: float
    seed: int
    renamed: Mapping[str, str] = field(default_factory=dict)
    paired: bool = True
    n_samples_after: int | None = None

    @property
    def broken(self) -> tuple[RuleResult, ...]:
        """Rules that are broken."""
        return tuple(rule for rule in self.rules if not rule.passed)

    def __repr__(self) -> str:
        verdict = "passed" if self.passed else f"{len(self.broken)} broken"
        return f"<GateResult {self.before_name!r} to {self.after_name!r}: {len(self.rules)} rules, {verdict}>"

    def __str__(self) -> str:
        from classgap import report

        return report.gate_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON file."""
        return {"schema": self.SCHEMA, **to_plain(self)}

    @classmethod
    def from_dict(cls, data: Any) -> GateResult:
        """Read the output of :meth:`to_dict`.

        Raises:
            ValueError: if ``data`` is not a gate of this schema.
        """
        if not isinstance(data, dict) or "rules" not in data:
            raise ValueError("not the result of a gate: the key rules is missing.")
        if data.get("schema") != cls.SCHEMA:
            raise ValueError(f"schema must be {cls.SCHEMA}, got {data.get('schema')!r}: run the gate again.")
        return from_plain(cls, {key: value for key, value in data.items() if key != "schema"})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result as JSON, atomically."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GateResult:
        """Read a result written by :meth:`save`.

        Raises:
            ValueError: if the file does not exist, is damaged or is not the result of a gate.
        """
        with name_file_in_errors(path):
            return cls.from_dict(read_json(path))
