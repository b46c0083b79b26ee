"""Things with a name that people type: ``mnist1d``, ``folder:PATH:size=32``, ``mr2:strength=0.1``.

A name may have an argument and options: ``NAME[:ARGUMENT][:key=value …]``. What a thing is made by is a function; its
keyword-only parameters are the options, its annotations say of which type they are, and its defaults are theirs.
"""

from __future__ import annotations

import difflib
import inspect
import re
import types
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_OPTION = re.compile(r"[a-z][a-z0-9_-]*=[^=]*")
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True)
class Spec:
    """A typed name, taken apart.

    >>> Spec.parse("folder:photos/2024:size=32:imbalance=100")
    Spec(name='folder', argument='photos/2024', options={'size': '32', 'imbalance': '100'})
    """

    name: str
    argument: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Take ``NAME[:ARGUMENT][:key=value …]`` apart; only the options at the end are options."""
        name, *rest = text.split(":")
        options: dict[str, str] = {}
        while rest and _OPTION.fullmatch(rest[-1]):
            key, value = rest.pop().split("=")
            key = key.replace("-", "_")
            if key in options:
                raise ValueError(f"{text!r} gives {key} twice.")
            options[key] = value
        if not name:
            raise ValueError(f"{text!r} has no name in front.")
        return cls(name, ":".join(rest) if rest else None, dict(reversed(options.items())))


@dataclass(frozen=True)
class Option:
    """What may be set about a thing."""

    name: str
    kind: Any
    default: Any


@dataclass(frozen=True)
class Entry(Generic[T]):
    """One thing of a registry.

    Attributes:
        name: what people type.
        summary: one line.
        make: builds it; the argument is its first parameter, if it takes one.
        argument: what the argument stands for, such as ``PATH``; empty if there is none.
        given: parameters of ``make`` that the program fills in, not the user.
        hidden: parameters of ``make`` that keep their defaults.
        extra: the optional dependency group that it needs, such as ``vision``.
    """

    name: str
    summary: str
    make: Callable[..., T]
    argument: str = ""
    given: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    extra: str = ""

    @property
    def usage(self) -> str:
        """How it is typed, without options."""
        return f"{self.name}:{self.argument}" if self.argument else self.name

    def options(self) -> dict[str, Option]:
        """What may be set, by name."""
        hints = typing.get_type_hints(self.make.__init__ if inspect.isclass(self.make) else self.make)
        return {
            name: Option(name, hints.get(name, str), parameter.default)
            for name, parameter in inspect.signature(self.make).parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name not in self.given + self.hidden
        }


class Registry(Generic[T]):
    """Named things of one kind.

    >>> def _circle(*, radius: float = 1.0) -> str:
    ...     return f"circle of {radius}"
    >>> shapes = Registry("shape", [Entry("circle", "A round one.", _circle)])
    >>> shapes.build("circle:radius=2")
    'circle of 2.0'
    >>> shapes.build("cirle")
    Traceback (most recent call last):
    ValueError: there is no shape 'cirle'; did you mean 'circle'?
    """

    def __init__(self, kind: str, entries: Collection[Entry[T]]) -> None:
        self.kind = kind
        self.entries = {entry.name: entry for entry in entries}

    def names(self) -> list[str]:
        """What there is, in order."""
        return list(self.entries)

    def entry(self, name: str) -> Entry[T]:
        """The entry of that name.

        Raises:
            ValueError: if there is none, with the nearest name.
        """
        if name not in self.entries:
            raise ValueError(f"there is no {self.kind} {name!r}; {suggestion(name, self.entries)}")
        return self.entries[name]

    def build(self, text: str | Spec, **given: Any) -> T:
        """Make what ``text`` names.

        Args:
            text: ``NAME[:ARGUMENT][:key=value …]``.
            given: what the program knows and the user does not type; an entry takes of it what it asks for.

        Raises:
            ValueError: if the name, the argument or an option is wrong.
        """
        spec = Spec.parse(text) if isinstance(text, str) else text
        entry = self.entry(spec.name)
        if bool(entry.argument) != (spec.argument is not None):
            wanted = f"is written {entry.usage}" if entry.argument else f"takes no argument; got {spec.argument!r}"
            raise ValueError(f"{self.kind} {spec.name} {wanted}.")
        allowed = entry.options()
        settings = {key: given[key] for key in entry.given if key in given}
        for key, value in spec.options.items():
            if key not in allowed:
                hint = suggestion(key, allowed) if allowed else "it has none."
                raise ValueError(f"{self.kind} {spec.name} has no option {key!r}; {hint}")
            settings[key] = convert(f"{self.kind} {spec.name}: {key}", value, allowed[key].kind)
        return entry.make(*([spec.argument] if entry.argument else []), **settings)


def suggestion(name: str, allowed: Collection[str]) -> str:
    """How an error about an unknown name ends.

    >>> suggestion("epoch", ["epochs", "seed"])
    "did you mean 'epochs'?"
    """
    near = nearest(name, allowed)
    return f"did you mean {near!r}?" if near else f"there are {', '.join(allowed)}."


def nearest(name: str, allowed: Collection[str]) -> str | None:
    """The allowed name that an unknown one is most like, if it is like any.

    >>> nearest("epoch", ["epochs", "seed"]), nearest("colour", ["epochs", "seed"])
    ('epochs', None)
    """
    return next(iter(difflib.get_close_matches(name, list(allowed), n=1)), None)


def convert(name: str, text: str, kind: Any) -> Any:
    """The value that a user typed, in the type that an annotation asks for.

    Raises:
        ValueError: if it is none of that type.

    >>> convert("radius", "2", float), convert("strength", "auto", float | str), convert("frozen", "yes", bool)
    (2.0, 'auto', True)
    """
    members = typing.get_args(kind) if typing.get_origin(kind) in (types.UnionType, typing.Union) else (kind,)
    for member in sorted(members, key=lambda each: each is str):  # anything is text: try numbers first
        if member is type(None) and text.lower() == "none":
            return None
        if member is bool and text.lower() in _TRUE + _FALSE:
            return text.lower() in _TRUE
        if member is str:
            return text
        if member in (int, float):
            try:
                return member(text)
            except ValueError:
                continue
    wanted = " or ".join("none" if member is type(None) else member.__name__ for member in members)
    raise ValueError(f"{name} must be {wanted}; got {text!r}.")


def argument_docs(function: Callable[..., Any]) -> dict[str, str]:
    """Return the descriptions in the ``Args`` section of a docstring, by name.

    >>> argument_docs(Registry.build)["text"]
    '`NAME[:ARGUMENT][:key=value …]`.'
    """
    _, _, section = (inspect.getdoc(function) or "").partition("Args:\n")
    section = re.split(r"^(?:\w+:$|>>>)", section, maxsplit=1, flags=re.MULTILINE)[0]
    found = re.findall(r"^    (\w+): (.*(?:\n      .*)*)", section, flags=re.MULTILINE)
    return {name: " ".join(text.replace("``", "`").split()) for name, text in found}
