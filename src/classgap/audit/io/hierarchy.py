"""Superclasses and hierarchies of classes, and the JSON files that hold them.

- Superclasses: ``{"superclass": ["class", …], …}``; each class belongs to at most one.
- Hierarchy: ``{"child": "parent", …}``, where parents may be children too, or ``{"class": ["parent", "grandparent",
  …]}`` with all ancestors of a class, nearest first, as in WordNet's hypernym paths. Both forms may be mixed.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from classgap.audit.metrics.groups import parse_groups
from classgap.audit.results import Notice
from classgap.audit.serialization import read_json


@dataclass(frozen=True)
class Superclasses:
    """The superclass of each class.

    Attributes:
        parents: superclass of each class; ``None`` for classes without one.
        paths: each class with all its ancestors, nearest first; ``None`` without a hierarchy.
    """

    parents: tuple[str | None, ...]
    paths: tuple[tuple[str, ...], ...] | None = None

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Notice about classes without a superclass."""
        missing = self.parents.count(None)
        if not missing:
            return ()
        return (Notice("no-superclass", {"missing": missing, "classes": len(self.parents)}),)


def check_superclasses(superclasses: Any, hierarchy: Any, names: Sequence[str]) -> Superclasses | None:
    """Return the superclass of each class: as given, or else the parent in the hierarchy.

    Args:
        superclasses: mapping from superclass to classes (names or indices), or one superclass per class.
        hierarchy: mapping from child to parent, or from class to all ancestors, nearest first.
        names: class names.

    Raises:
        ValueError: if a class is unknown or has two superclasses, or the hierarchy has a cycle or lacks all classes.

    >>> check_superclasses({"pet": ["cat", "dog"]}, None, ["cat", "dog", "car"]).parents
    ('pet', 'pet', None)
    >>> check_superclasses(None, {"cat": "pet", "pet": "animal"}, ["cat", "car"]).paths
    (('cat', 'pet', 'animal'), ('car',))
    """
    if superclasses is None and hierarchy is None:
        return None
    paths = None if hierarchy is None else _paths(hierarchy, names)
    if superclasses is not None:
        return Superclasses(_parents(superclasses, names), paths)
    assert paths is not None
    return Superclasses(tuple(path[1] if len(path) > 1 else None for path in paths), paths)


def read_superclasses(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read superclasses from a JSON file.

    Raises:
        ValueError: if the file does not hold them.
    """
    content = read_json(path)
    if not isinstance(content, dict) or not all(isinstance(members, list) for members in content.values()):
        raise ValueError(f'{path} must contain superclasses as {{"superclass": ["class", ...], ...}}.')
    return content


def read_hierarchy(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a hierarchy from a JSON file.

    Raises:
        ValueError: if the file does not hold one.
    """
    content = read_json(path)
    if not isinstance(content, dict):
        raise ValueError(f'{path} must contain a hierarchy as {{"child": "parent", ...}}.')
    return content


def _parents(superclasses: Any, names: Sequence[str]) -> tuple[str | None, ...]:
    parents: list[str | None] = [None] * len(names)
    for name, members in parse_groups(superclasses, names, what="superclasses").items():
        for k in members.tolist():
            if parents[k] is not None:
                raise ValueError(
                    f"superclasses must not share classes, but {names[k]!r} is in {parents[k]!r} and {name!r}: keep "
                    "one."
                )
            parents[k] = name
    return tuple(parents)


def _paths(hierarchy: Any, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    if not isinstance(hierarchy, Mapping):
        raise ValueError(f"hierarchy must map each child to its parent, got {reprlib.repr(hierarchy)}.")
    above: dict[str, list[str]] = {}
    for child, given in hierarchy.items():
        ancestors = [given] if isinstance(given, str) else given
        if not isinstance(ancestors, list | tuple) or not all(isinstance(name, str) for name in ancestors):
            raise ValueError(
                f"hierarchy[{child!r}] must be the name of its parent, or a list of ancestors, got "
                f"{reprlib.repr(given)}."
            )
        above[names[child] if isinstance(child, int) and 0 <= child < len(names) else str(child)] = list(ancestors)
    if not any(name in above for name in names):
        raise ValueError(
            f"hierarchy has a parent for none of the {len(names)} classes, such as {names[0]!r}: use the class names "
            "as keys."
        )
    return tuple(_path(name, above) for name in names)


def _path(name: str, above: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Follow parents, or lists of ancestors, to the top."""
    path = [name]
    while above.get(path[-1]):
        for ancestor in above[path[-1]]:
            if ancestor in path:
                raise ValueError(f"hierarchy must not have cycles, but {ancestor!r} is an ancestor of itself.")
            path.append(ancestor)
    return tuple(path)
