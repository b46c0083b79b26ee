"""What people want to know about a method, put together from its entry and the docstring of its code."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

from classgap.methods.catalog import METHODS
from classgap.methods.entry import ROLES, MethodEntry

_SECTION = re.compile(r"^(Args|Attributes|Raises|Returns):$", re.MULTILINE)
_ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n      .*)*)", re.MULTILINE)


@dataclass(frozen=True)
class OptionFacts:
    """An option as it is typed, its default, where that comes from, and what it means."""

    name: str
    default: str
    origin: str
    meaning: str


@dataclass(frozen=True)
class Explained:
    """A method for readers.

    Attributes:
        entry: of the catalogue.
        text: formula, paper, and where sources differ: the docstring of the code, as Markdown.
        options: what may be set.
        command: an example to copy.
    """

    entry: MethodEntry
    text: str
    options: tuple[OptionFacts, ...]
    command: str

    @classmethod
    def from_name(cls, name: str) -> Explained:
        """The method of that name.

        Raises:
            ValueError: if there is none, with the nearest name.

        >>> Explained.from_name("center").options[0]
        OptionFacts(name='strength', default='0.008', origin='published code', meaning='Weight λ of the pull.')
        """
        entry = METHODS.entry(name)
        assert isinstance(entry, MethodEntry)
        source = entry.explained_by or entry.make
        meanings = _meanings(source) | _meanings(entry.make)
        options = tuple(
            OptionFacts(_typed(key), _shown(option.default), entry.origins.get(key, ""), meanings.get(key, ""))
            for key, option in entry.options().items()
        )
        return cls(entry, _text(source), options, _command(entry))

    @property
    def role(self) -> str:
        """What it is a method for."""
        return ROLES[self.entry.role]

    @property
    def refuses(self) -> tuple[str, ...]:
        """What it does not compose with beside methods of its own role, each with the reason."""
        return tuple(f"{name}: {reason}" for name, reason in self.entry.refuses.items())


def _text(source: Any) -> str:
    """The docstring up to its arguments, in Markdown: names in single backticks."""
    body = _SECTION.split(inspect.getdoc(source) or "")[0].split(">>>")[0]
    body = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", body).replace("``", "`")
    return "\n".join(line.rstrip() for line in body.strip().splitlines())


def _meanings(source: Any) -> dict[str, str]:
    parts = _SECTION.split(inspect.getdoc(source) or "")
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    found = _ARGUMENT.findall(sections.get("Args", "").split("\n    >>>")[0])
    return {name: " ".join(text.replace("``", "`").split()) for name, text in found}


def _command(entry: MethodEntry) -> str:
    name = {"step": f"{entry.name}+mr2", "post-hoc": f"mr2+{entry.name}"}.get(entry.role, entry.name)
    data = "mnist1d:lt=10" if "class counts" in entry.required_inputs or entry.role == "post-hoc" else "mnist1d"
    held = " --val-fraction 0.1" if "held-out samples" in entry.required_inputs else ""
    return f"classgap train --data {data} --method {name}{held}"


def _typed(name: str) -> str:
    return name.replace("_", "-")


def _shown(default: Any) -> str:
    if isinstance(default, bool):
        return "yes" if default else "no"
    return f"{default:g}" if isinstance(default, float) else str(default)
