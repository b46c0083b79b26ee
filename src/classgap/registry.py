"""Registries of named components: ``mnist1d``, ``folder:PATH:size=32``, ``mr2:strength=0.1``.

A name may have an argument and options: ``NAME[:ARGUMENT][:key=value …]``. A component is built by a function or a
class; its keyword-only parameters are the options, with their annotated types and defaults.
"""

from __future__ import annotations

import difflib
import inspect
import re
import reprlib
import types
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 200
_OPTION = re.compile(r"[a-z][a-z0-9_-]*=[^=]*")


@dataclass(frozen=True)
class Spec:
    """A parsed name.

    >>> Spec.parse("folder:photos/2024:size=32:imbalance=100")
    Spec(name='folder', argument='photos/2024', options={'size': '32', 'imbalance': '100'})
    """

    name: str
    argument: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Parse ``NAME[:ARGUMENT][:key=value …]``; an argument may contain colons, options come last."""
        name, *rest = text.split(":")
        options: dict[str, str] = {}
        while rest and _OPTION.fullmatch(rest[-1]):
            key, value = rest.pop().split("=")
            key = key.replace("-", "_")
            if key in options:
                raise ValueError(f"{text!r} sets {key} twice.")
            options[key] = value
        if not name:
            raise ValueError(f"{text!r} must start with a name.")
        return cls(name, ":".join(rest) if rest else None, dict(reversed(options.items())))


@dataclass(frozen=True)
class Option:
    """An option of a component: its name, annotated type and default."""

    name: str
    kind: Any
    default: Any


@dataclass(frozen=True)
class Entry(Generic[T]):
    """A component of a registry.

    Attributes:
        name: Name to type.
        summary: One line.
        make: Function or class that builds the component; the argument, if any, is its first parameter.
        argument: Placeholder of the argument, for example ``PATH``; empty if the component takes none.
        given: Parameters of ``make`` that the program fills in.
        hidden: Parameters of ``make`` that keep their defaults.
        extra: Optional dependency group that the component needs, for example ``vision``.
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
        """Name and argument."""
        return f"{self.name}:{self.argument}" if self.argument else self.name

    def options(self) -> dict[str, Option]:
        """Return the options by name."""
        hints = typing.get_type_hints(self.make.__init__ if inspect.isclass(self.make) else self.make)
        return {
            name: Option(name, hints.get(name, str), parameter.default)
            for name, parameter in inspect.signature(self.make).parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name not in self.given + self.hidden
        }


class MissingInputsError(ValueError):
    """A component requires values that the program did not fill in.

    Attributes:
        names: the values.
    """

    def __init__(self, component: str, names: Collection[str]) -> None:
        self.names = tuple(names)
        super().__init__(f"{component} needs {' and '.join(self.names)}.")


class Registry(Generic[T]):
    """Components of one kind by name.

    >>> def _circle(*, radius: float = 1.0) -> str:
    ...     return f"circle of {radius}"
    >>> shapes = Registry("shape", [Entry("circle", "A circle.", _circle)])
    >>> shapes.build("circle:radius=2")
    'circle of 2.0'
    >>> shapes.build("cirle")
    Traceback (most recent call last):
    ValueError: unknown shape 'cirle'; did you mean 'circle'?
    """

    def __init__(self, kind: str, entries: Collection[Entry[T]]) -> None:
        self.kind = kind
        self.entries = {entry.name: entry for entry in entries}

    def names(self) -> list[str]:
        """Return all names, in order of registration."""
        return list(self.entries)

    def entry(self, name: str) -> Entry[T]:
        """Return the entry with this name.

        Raises:
            ValueError: If the name is unknown, with the closest one.
        """
        if name not in self.entries:
            raise ValueError(f"unknown {self.kind} {short_repr(name)}; {suggestion(name, self.entries)}")
        return self.entries[name]

    def build(self, text: str | Spec, **given: Any) -> T:
        """Build a component.

        Args:
            text: ``NAME[:ARGUMENT][:key=value …]``.
            given: Values that the program fills in; each entry takes those it lists in ``given``.

        Raises:
            MissingInputsError: If the entry requires a value that is not in ``given``.
            ValueError: If the name, the argument or an option is invalid.
        """
        spec, entry, options = self._resolve(text)
        parameters = inspect.signature(entry.make).parameters
        required = [
            key for key in entry.given if key in parameters and parameters[key].default is inspect.Parameter.empty
        ]
        if missing := [key for key in required if key not in given]:
            raise MissingInputsError(f"{self.kind} {spec.name}", missing)
        settings = {key: given[key] for key in entry.given if key in given} | options
        return entry.make(*([spec.argument] if entry.argument else []), **settings)

    def check(self, text: str | Spec) -> None:
        """Check name, argument and options as :meth:`build` does, without building.

        Raises:
            ValueError: If the name, the argument or an option is invalid.
        """
        self._resolve(text)

    def _resolve(self, text: str | Spec) -> tuple[Spec, Entry[T], dict[str, Any]]:
        spec = Spec.parse(text) if isinstance(text, str) else text
        entry = self.entry(spec.name)
        if bool(entry.argument) != (spec.argument is not None):
            wanted = (
                f"needs an argument: {entry.usage}" if entry.argument else f"takes no argument; got {spec.argument!r}"
            )
            raise ValueError(f"{self.kind} {spec.name} {wanted}.")
        allowed = entry.options()
        options = {}
        for key, value in spec.options.items():
            if key not in allowed:
                hint = suggestion(key, allowed) if allowed else "it has no options."
                raise ValueError(f"{self.kind} {spec.name} has no option {key!r}; {hint}")
            options[key] = convert(f"{self.kind} {spec.name}: {key}", value, allowed[key].kind)
        return spec, entry, options


def suggestion(name: str, allowed: Collection[str]) -> str:
    """Return the end of an error message about an unknown name: the closest name, or all of them.

    >>> suggestion("epoch", ["epochs", "seed"])
    "did you mean 'epochs'?"
    """
    near = nearest(name, allowed)
    return f"did you mean {near!r}?" if near else f"choose from {', '.join(allowed)}."


def nearest(name: str, allowed: Collection[str]) -> str | None:
    """Return the allowed name closest to an unknown one in any case, or ``None`` if none is close.

    >>> nearest("epoch", ["epochs", "seed"]), nearest("SEED", ["epochs", "seed"]), nearest("color", ["epochs", "seed"])
    ('epochs', 'seed', None)
    """
    by_text = {each.lower(): each for each in reversed(list(allowed))}
    found = difflib.get_close_matches(name.lower(), list(by_text), n=1)
    return by_text[found[0]] if found else None


def short_repr(value: Any) -> str:
    """Return the ``repr`` of a value from a file in at most 200 characters, however large and nested it is.

    >>> short_repr("resnet32"), len(short_repr("x" * 1000)) <= 200
    ("'resnet32'", True)
    """
    return _SHORT.repr(value)[:200]


def convert(name: str, text: str, kind: Any) -> Any:
    """Convert the text of an option to its annotated type; ``none`` means ``None`` where that is allowed.

    Raises:
        ValueError: If the text does not fit the type.

    >>> convert("radius", "2", float), convert("strength", "auto", float | str), convert("frozen", "yes", bool)
    (2.0, 'auto', True)
    """
    return None if text.lower() == "none" and type(None) in _members(kind) else validate(name, text, kind)


def validate(name: str, value: Any, kind: Any) -> Any:
    """Convert a value to an annotated type with pydantic, and name the argument in the error.

    Numbers and booleans may be written as text. A union with ``str`` prefers its other types. Booleans are not numbers.

    Raises:
        ValueError: If the value does not fit the type.

    >>> from typing import Literal
    >>> validate("size", "32", int | None), validate("size", None, int | None)
    (32, None)
    >>> validate("mode", "fast", Literal["slow", "exact"])
    Traceback (most recent call last):
    ValueError: mode must be one of 'slow', 'exact'; got 'fast'.
    """
    from pydantic import ValidationError

    members = _members(kind)
    for member in sorted(members, key=lambda each: each is str):  # any text is a str: try the others first
        try:
            converted = _adapter(member).validate_python(value)
        except ValidationError:
            continue
        if not isinstance(value, bool) or isinstance(converted, bool):
            return converted
    raise ValueError(f"{name} must be {' or '.join(map(_describe, members))}; got {short_repr(value)}.")


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(kind, config=ConfigDict(arbitrary_types_allowed=True))


def _members(kind: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the type itself."""
    return typing.get_args(kind) if typing.get_origin(kind) in (types.UnionType, typing.Union) else (kind,)


def _describe(kind: Any) -> str:
    """Return the name of a type, for an error message."""
    if kind is type(None):
        return "none"
    if typing.get_origin(kind) is typing.Literal:
        return f"one of {', '.join(map(repr, typing.get_args(kind)))}"
    if typing.get_origin(kind) is tuple:
        return f"a list of {_describe(typing.get_args(kind)[0])}"
    return kind.__name__ if inspect.isclass(kind) and not typing.get_args(kind) else str(kind).replace("typing.", "")


def argument_docs(function: Callable[..., Any]) -> dict[str, str]:
    """Return the descriptions in the ``Args`` section of a docstring, by name.

    >>> argument_docs(Registry.build)["text"]
    '`NAME[:ARGUMENT][:key=value …]`.'
    """
    _, _, section = (inspect.getdoc(function) or "").partition("Args:\n")
    section = re.split(r"^(?:\w+:$|>>>)", section, maxsplit=1, flags=re.MULTILINE)[0]
    found = re.findall(r"^    (\w+): (.*(?:\n      .*)*)", section, flags=re.MULTILINE)
    return {name: " ".join(text.replace("``", "`").split()) for name, text in found}
