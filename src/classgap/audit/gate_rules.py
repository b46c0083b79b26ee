"""Rules of a gate, from arguments or a YAML file. All limits are percentage points."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from classgap._synonyms import find_synonym
from classgap._yaml_files import read_yaml
from classgap.audit.results import STRICT
from classgap.audit.serialization import from_plain
from classgap.audit.stats.group_drops import SWAPS
from classgap.registry import nearest

OVERALL = "overall"  # group of all classes, each weighted by its samples


@dataclass(frozen=True, kw_only=True)
class GateRules:
    """Rules of a gate, in percentage points; ``None`` for rules that are not checked.

    Args:
        max_class_drop: largest drop of the accuracy of a class.
        max_group_drop: group → largest drop of its mean accuracy. Groups are those of the baseline ("easy", "medium",
            "hard", "head", "torso", "tail", or its own), and "overall".
        min_class_accuracy: lowest accuracy of a class.
        max_gap: largest gap between the easy and the hard third.
        confidence_level: confidence level of the whole gate. If no limit is exceeded, any rule is broken with a
            probability of at most 1 - this level.

    >>> GateRules(max_class_drop=3, max_group_drop={"hard": 0.5}).n_rules
    2
    """

    __pydantic_config__ = STRICT

    max_class_drop: float | None = None
    max_group_drop: Mapping[str, float] = field(default_factory=dict)
    min_class_accuracy: float | None = None
    max_gap: float | None = None
    confidence_level: float = 0.95

    def __post_init__(self) -> None:
        limits = {name: getattr(self, name) for name in ("max_class_drop", "min_class_accuracy", "max_gap")}
        limits |= {f"max_group_drop[{name!r}]": limit for name, limit in self.max_group_drop.items()}
        for name, limit in limits.items():
            if limit is not None and not (math.isfinite(limit) and 0 <= limit < 100):
                raise ValueError(f"{name} must be in percentage points, at least 0 and below 100; got {limit:g}.")
        if not 0 < self.confidence_level < 1:
            raise ValueError(f"confidence_level must be in (0, 1), for example 0.95; got {self.confidence_level}.")
        if self.max_group_drop and self.alpha * (SWAPS + 1) < 1:
            raise ValueError(
                f"confidence_level must be at most {1 - self.n_rules / SWAPS:g} with {self.n_rules} rules "
                f"and max_group_drop, as {SWAPS:,} random swaps cannot show rarer drops; got {self.confidence_level}."
            )

    @property
    def n_rules(self) -> int:
        """Number of rules; each group is a rule."""
        single = (self.max_class_drop, self.min_class_accuracy, self.max_gap)
        return sum(limit is not None for limit in single) + len(self.max_group_drop)

    @property
    def alpha(self) -> float:
        """Level of each rule: 1 - confidence level, divided by the number of rules."""
        return (1 - self.confidence_level) / max(1, self.n_rules)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GateRules:
        """Read rules from a YAML file with the names of the arguments as keys.

        Raises:
            ValueError: if the file cannot be read, or a key or value is invalid.
        """
        data, tree = read_yaml(Path(path))
        if not isinstance(data, dict):
            raise ValueError(f"{path} must contain rules as NAME: LIMIT, for example max_class_drop: 3.")
        for mapping in _mappings(tree):
            names = [str(key.value) for key, _ in mapping]
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"{path} sets {name} more than once: keep one.")
        for name, value in data.items():
            _check_rule(path, str(name), value)
        groups = data.get("max_group_drop", {})
        if not isinstance(groups, dict):
            raise ValueError(
                f"{path}: max_group_drop must contain limits as GROUP: POINTS, for example hard: 0.5; got {groups!r}."
            )
        for name, limit in groups.items():
            if limit is None:
                raise ValueError(
                    f"{path}: max_group_drop.{name} is empty: give a limit in percentage points or remove it."
                )
        try:
            return from_plain(cls, data)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from None

    def updated(self, **given: Any) -> GateRules:
        """Return the rules with the given ones replaced; ``None`` and groups that are not given stay.

        >>> GateRules(max_gap=20).updated(max_gap=None, max_group_drop={"hard": 1.0}).n_rules
        2
        """
        changes = {name: value for name, value in given.items() if value is not None}
        if "max_group_drop" in changes:
            changes["max_group_drop"] = {**self.max_group_drop, **changes["max_group_drop"]}
        return replace(self, **changes)


def _check_rule(path: str | os.PathLike[str], name: str, value: Any) -> None:
    known = [each.name for each in fields(GateRules)]
    if name not in known:
        synonym = find_synonym(name, known)
        near = synonym[0] if synonym else nearest(name, known)
        hint = f"did you mean {near}?" if near else f"the keys are {', '.join(known)}."
        raise ValueError(f"{path}: {name} is not a known key; {hint}")
    if value is None:
        example = {"max_group_drop": " {hard: 0.5}", "confidence_level": " 0.95"}.get(name, " 3")
        raise ValueError(f"{path}: {name} is empty: give a value, for example {name}:{example}, or remove it.")


def _mappings(node: Any) -> list[Any]:
    """All mappings of a YAML tree, as lists of keys and values."""
    if not hasattr(node, "value") or not isinstance(node.value, list):
        return []
    pairs = [entry for entry in node.value if isinstance(entry, tuple)]
    return [pairs, *(found for _, value in pairs for found in _mappings(value))]
