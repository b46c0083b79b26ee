"""Methods made of several, in any order: ``sam+mr2``, ``mr2:strength=0.1+tau-norm``.

A composition has one loss or procedure (cross-entropy if none is named), at most one way to step and at most one
post-hoc method. A method that another loss can take in, as MR² does logit adjustment, is no second loss.
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

_PLUS = re.compile(r"\+(?=[a-z])")  # not that of 1e+3
_CORE, _AROUND = ("loss", "procedure"), ("step", "post-hoc")
WHY_ONE = {
    "loss": "both are losses, and a run minimises one",
    "procedure": "each is a training procedure with losses of its own",
    "step": "both change how a step is made",
    "post-hoc": "both change the classifier after training",
}


@dataclass(frozen=True)
class Piece:
    """One of the methods that a name holds."""

    entry: MethodEntry
    spec: Spec


def pieces(text: str, methods: Registry[Method | ClassLoss]) -> list[Piece]:
    """The methods that a name holds, checked one by one and in pairs.

    Raises:
        ValueError: if one does not exist, or two do not go together, with the reason.
    """
    found = []
    for part in _PLUS.split(text):
        spec = Spec.parse(part)
        entry = methods.entry(spec.name)
        assert isinstance(entry, MethodEntry)
        found.append(Piece(entry, spec))
    for one, other in combinations(found, 2):
        reason = _conflict(one.entry, other.entry)
        if reason:
            raise ValueError(f"method {text}: {one.entry.name} and {other.entry.name} do not compose; {reason}.")
    return found


def compose(parts: Sequence[Piece], methods: Registry[Method | ClassLoss], **given: Any) -> Method:
    """The method that the pieces are together: the loss or procedure inside, then the step, then what comes after.

    Args:
        parts: that go together.
        methods: all there are.
        given: what the program knows of the data.
    """
    made = _core([part for part in parts if part.entry.role in _CORE], methods, given)
    for role in _AROUND:
        for part in parts:
            if part.entry.role == role:
                made = _method(methods.build(part.spec, inner=made, **given))
    return made


def _core(parts: list[Piece], methods: Registry[Method | ClassLoss], given: dict[str, Any]) -> Method:
    if not parts:
        return _method(methods.build("erm", **given))
    if len(parts) == 1:
        return _method(methods.build(parts[0].spec, **given))
    taken, whole = sorted(parts, key=lambda part: any(part.entry.name in other.entry.joins for other in parts))
    if taken.spec.options:
        raise ValueError(
            f"{taken.entry.name} has no options as a part of {whole.entry.name}; got {', '.join(taken.spec.options)}."
        )
    entry = replace(whole.entry, given=(*whole.entry.given, taken.entry.joins[whole.entry.name]))
    return _method(Registry(methods.kind, [entry]).build(whole.spec, **given))


def _conflict(one: MethodEntry, other: MethodEntry) -> str:
    """Why two methods do not go together; empty if they do."""
    for here, there in ((one, other), (other, one)):
        for key in (there.name, there.role):
            if key in here.refuses:
                return here.refuses[key]
        if there.name in here.joins:
            return ""
    if one.role == other.role:
        return WHY_ONE[one.role]
    if {one.role, other.role} == set(_CORE):
        procedure = one if one.role == "procedure" else other
        return f"{procedure.name} is a training procedure with losses of its own"
    return ""


def _method(made: Method | ClassLoss) -> Method:
    return Method(made) if isinstance(made, ClassLoss) else made
