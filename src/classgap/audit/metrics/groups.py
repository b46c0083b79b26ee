"""Groups of classes: thirds by accuracy, head/torso/tail by training counts, or custom groups."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from classgap.audit._types import Floats, Integers

THIRDS = ("easy", "medium", "hard")
FREQUENCIES = ("head", "torso", "tail")
OVERALL = ("accuracy", "balanced_accuracy", "macro_f1")  # share a namespace with the groups in a comparison over seeds


@dataclass(frozen=True)
class Grouping:
    """Name, kind and classes of a group."""

    name: str
    kind: str
    members: Integers


def thirds(score_K: Floats, seen_K: Any) -> dict[str, Integers]:
    """Split the seen classes into easy, medium and hard thirds by ``score_K``, best first.

    Ties are broken by class index. If the number of classes is not divisible by three, one remaining class goes to the
    medium third, and two go to the easy and the hard third, so that easy and hard always have the same size.

    >>> {name: part.tolist() for name, part in thirds(np.array([0.1, 0.9, 0.5, 0.7]), np.ones(4, bool)).items()}
    {'easy': [1], 'medium': [3, 2], 'hard': [0]}
    """
    seen = np.flatnonzero(seen_K)
    if np.isnan(score_K[seen]).any():
        missing = int(seen[np.isnan(score_K[seen])][0])
        raise ValueError(f"ranking must have a number for each class with test samples, but class {missing} has none.")
    ranked = seen[np.argsort(-score_K[seen], kind="stable")]
    outer = len(ranked) // 3 + (len(ranked) % 3 == 2)
    parts = (ranked[:outer], ranked[outer : len(ranked) - outer], ranked[len(ranked) - outer :])
    return dict(zip(THIRDS, parts, strict=True))


def by_frequency(train_counts_K: Floats, cuts: tuple[float, float] = (100, 20)) -> dict[str, Integers]:
    """Split classes into head (at least ``cuts[0]`` training samples), torso (at least ``cuts[1]``) and tail.

    >>> {name: part.tolist() for name, part in by_frequency(np.array([100, 99, 20, 19])).items()}
    {'head': [0], 'torso': [1, 2], 'tail': [3]}
    """
    many, few = cuts
    if not many > few > 0:
        raise ValueError(f"frequency_cuts must be two positive numbers in decreasing order, got {cuts}.")
    level_K = (train_counts_K < many).astype(int) + (train_counts_K < few)
    return {name: np.flatnonzero(level_K == i) for i, name in enumerate(FREQUENCIES)}


def parse_groups(
    groups: Mapping[str, Sequence[Any]] | Sequence[Any], names: Sequence[str], what: str = "groups"
) -> dict[str, Integers]:
    """Parse custom groups: a mapping from group name to classes (names or indices), or one group name per class.

    Errors name the groups as ``what``.

    >>> {name: part.tolist() for name, part in parse_groups({"pets": ["cat", 1]}, ["cat", "dog", "car"]).items()}
    {'pets': [0, 1]}
    >>> {name: part.tolist() for name, part in parse_groups(["pet", "pet", "thing"], ["cat", "dog", "car"]).items()}
    {'pet': [0, 1], 'thing': [2]}
    """
    if not isinstance(groups, Mapping):
        labels = [str(group) for group in _to_list(what, groups, "group names, one per class")]
        if len(labels) != len(names):
            raise ValueError(f"{what} must have {len(names)} group names, one per class, got {len(labels)}.")
        return {name: np.array([k for k, own in enumerate(labels) if own == name]) for name in dict.fromkeys(labels)}
    position = {name: k for k, name in enumerate(names)}
    found = {}
    for group, members in groups.items():
        listed = _to_list(f"{what}: {group!r}", members, "at least one class")
        indices = [_class_index(member, position, f"{what}: {str(group)!r}") for member in listed]
        found[str(group)] = np.array(list(dict.fromkeys(indices)))
    return found


def _to_list(what: str, values: Any, content: str) -> list[Any]:
    try:
        listed = [] if isinstance(values, (str, Mapping)) else list(values)
    except TypeError:  # a single number
        listed = []
    if not listed:
        raise ValueError(f"{what} must be a list of {content}, got {reprlib.repr(values)}: put it in brackets, [...].")
    return listed


def _class_index(member: Any, position: Mapping[str, int], where: str) -> int:
    if isinstance(member, bool) or not isinstance(member, (str, int, np.integer)):
        raise ValueError(
            f"{where} must hold class names or class indices, got {reprlib.repr(member)} of type "
            f"{type(member).__name__}: list each class by name."
        )
    if isinstance(member, str) and member in position:
        return position[member]
    if not isinstance(member, str) and 0 <= member < len(position):
        return int(member)
    raise ValueError(f"{where} has the unknown class {member!r}: use a class name, or an index below {len(position)}.")


def build_groups(
    accuracy_K: Floats,
    *,
    ranking_K: Floats | None,
    train_counts_K: Floats | None,
    cuts: tuple[float, float],
    groups: Mapping[str, Sequence[Any]] | Sequence[Any] | None,
    names: Sequence[str],
) -> list[Grouping]:
    """Build all groups of an audit, thirds first, without empty ones."""
    from classgap.audit.metrics.gaps import MEASURES  # gaps imports this module

    taken = {*THIRDS, *FREQUENCIES, *OVERALL, *MEASURES}
    sets = [("thirds", thirds(accuracy_K if ranking_K is None else ranking_K, ~np.isnan(accuracy_K)))]
    if train_counts_K is not None:
        sets.append(("frequency", by_frequency(train_counts_K, cuts)))
    if groups is not None:
        sets.append(("given", parse_groups(groups, names)))
    found: list[Grouping] = []
    for kind, parts in sets:
        for name, members in parts.items():
            if any(name == other.name for other in found) or (kind == "given" and name in taken):
                raise ValueError(f"groups must not use the reserved name {name!r}: rename the group.")
            if len(members):
                found.append(Grouping(name, kind, members))
    return found
