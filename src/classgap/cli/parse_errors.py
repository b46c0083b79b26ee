"""What is wrong where a flag wants a number, in the user's words: the parser's are of types and conversions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

ONE, SEVERAL = {int: "a whole number", float: "a number"}, {int: "whole numbers", float: "numbers"}


def wrong_number(command: type, words: Sequence[str], problem: str) -> str:
    """The problem in one plain sentence if a flag's value is no number, "" if it is something else.

    Args:
        command: what the words are parsed into: a dataclass whose fields are the flags.
        words: of the command line.
        problem: what the parser says.

    >>> from classgap.cli.demo_command import DemoCommand
    >>> wrong_number(DemoCommand, ["--seeds", "three"], "Error parsing --seeds: invalid literal for int() …")
    "--seeds must be a whole number, got 'three'"
    """
    named = re.search(r"Error parsing --([\w-]+)", problem)
    hint = get_type_hints(command).get(named[1].replace("-", "_")) if named else None
    kinds = list(_kinds(hint))
    if named is None or len(kinds) != 1 or kinds[0] not in ONE:
        return ""
    wanted = (SEVERAL if get_origin(hint) is tuple else ONE)[kinds[0]]
    wrong = [value for value in _values(f"--{named[1]}", words) if not _converts(kinds[0], value)]
    return f"--{named[1]} must be {wanted}, got {wrong[0]!r}" if wrong else ""


def _kinds(hint: Any) -> Iterator[Any]:
    """What a value may be, besides nothing: ``float`` of ``float``, ``float | None`` and ``tuple[float, ...]``."""
    if get_origin(hint) in (Union, UnionType, tuple):
        for part in get_args(hint):
            yield from _kinds(part)
    elif hint not in (NoneType, Ellipsis):
        yield hint


def _values(flag: str, words: Sequence[str]) -> Iterator[str]:
    """All that stands behind a flag, up to the next one."""
    inside = False
    for word in words:
        name, equals, value = word.partition("=")
        if word.startswith("--"):
            inside = name.replace("_", "-") == flag
            if inside and equals:
                yield value
        elif inside:
            yield word


def _converts(kind: Any, value: str) -> bool:
    try:
        kind(value)
    except ValueError:
        return False
    return True
