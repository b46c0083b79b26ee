"""Compositions of methods, in any order: ``sam+mr2``, ``mr2:strength=0.1+tau-norm``.

A composition has one loss or procedure (cross-entropy by default), at most one step and at most one post-hoc method.
A loss that another loss can include, as MR² includes logit adjustment, does not count as a second loss.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from classgap.losses.base import ClassLoss
from classgap.methods.entry import MethodEntry
from classgap.methods.method import Method
from classgap.registry import Registry, Spec

_PLUS = re.compile(r"\+(?=[a-z])")  # skips the plus of 1e+3
_CORE_ROLES, _WRAPPER_ROLES = ("loss", "procedure"), ("step", "post-hoc")
WHY_ONE = {
    "loss": "both are losses, and a run minimizes one loss",
    "procedure": "each procedure brings its own losses and stages",
    "step": "both change how an optimizer step is computed",
    "post-hoc": "both change the classifier after training",
}


@dataclass(frozen=True)
class Component:
    """One method of a composition, with its options."""

    entry: MethodEntry
    spec: Spec


def parse(text: str, methods: Registry[Method | ClassLoss]) -> list[Component]:
    """Split a composition into its methods and check that they compose.

    Raises:
        ValueError: If a method does not exist, or two of them do not compose.
    """
    components = []
    for part in _PLUS.split(text):
        spec = Spec.parse(part)
        entry = methods.entry(spec.name)
        assert isinstance(entry, MethodEntry)
        components.append(Component(entry, spec))
    for one, other in combinations(components, 2):
        reason = _conflict(one.entry, other.entry)
        if reason:
            raise ValueError(f"method {text}: {one.entry.name} and {other.entry.name} do not compose; {reason}.")
    return components


def compose(components: Sequence[Component], methods: Registry[Method | ClassLoss], **given: Any) -> Method:
    """Build a composition: the loss or procedure innermost, then the step, then the post-hoc method.

    Args:
        components: Methods that compose, from :func:`parse`.
        methods: The catalog.
        given: Arguments that do not come from the user, such as ``num_classes``.
    """
    method = _build_core([each for each in components if each.entry.role in _CORE_ROLES], methods, given)
    for role in _WRAPPER_ROLES:
        for component in components:
            if component.entry.role == role:
                method = _as_method(methods.build(component.spec, inner=method, **given))
    return method


def _build_core(components: list[Component], methods: Registry[Method | ClassLoss], given: dict[str, Any]) -> Method:
    if not components:
        return _as_method(methods.build("erm", **given))
    if len(components) == 1:
        return _as_method(methods.build(components[0].spec, **given))
    merged, host = sorted(
        components, key=lambda component: any(component.entry.name in other.entry.merges_into for other in components)
    )
    if merged.spec.options:
        raise ValueError(
            f"{merged.entry.name} takes no options as part of {host.entry.name}, got {', '.join(merged.spec.options)}."
        )
    entry = replace(host.entry, given=(*host.entry.given, merged.entry.merges_into[host.entry.name]))
    return _as_method(Registry(methods.kind, [entry]).build(host.spec, **given))


def _conflict(one: MethodEntry, other: MethodEntry) -> str:
    """Return why two methods do not compose, or an empty string if they do."""
    for here, there in ((one, other), (other, one)):
        for key in (there.name, there.role):
            if key in here.incompatible:
                return here.incompatible[key]
        if there.name in here.merges_into:
            return ""
    if one.role == other.role:
        return WHY_ONE[one.role]
    if {one.role, other.role} == set(_CORE_ROLES):
        procedure = one if one.role == "procedure" else other
        return f"{procedure.name} is a training procedure with its own losses"
    return ""


def _as_method(made: Method | ClassLoss) -> Method:
    return Method(made) if isinstance(made, ClassLoss) else made
