"""Descriptions of methods for ``classgap methods`` and docs/methods.md, from catalog entries and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from classgap.methods.catalog import METHODS
from classgap.methods.entry import ROLES, MethodEntry
from classgap.registry import argument_docs

_SECTION = re.compile(r"^(Args|Attributes|Raises|Returns):$", re.MULTILINE)


@dataclass(frozen=True)
class OptionDescription:
    """An option as users type it, its default, the source of the default, and its meaning."""

    name: str
    default: str
    origin: str
    meaning: str


@dataclass(frozen=True)
class MethodDescription:
    """Documentation of a method.

    Attributes:
        entry: Catalog entry.
        text: Docstring of the method without its sections, as Markdown.
        options: Options of the method.
        command: Example command.
    """

    entry: MethodEntry
    text: str
    options: tuple[OptionDescription, ...]
    command: str

    @classmethod
    def from_name(cls, name: str) -> MethodDescription:
        """Describe the method of that name.

        Raises:
            ValueError: If no method has that name; the message suggests the closest one.

        >>> MethodDescription.from_name("crt").options[0].default
        '0.11'
        """
        entry = METHODS.entry(name)
        assert isinstance(entry, MethodEntry)
        source = entry.documented_by or entry.make
        meanings = argument_docs(source) | argument_docs(entry.make)
        options = tuple(
            OptionDescription(
                key.replace("_", "-"), _format(option.default), entry.origins.get(key, ""), meanings.get(key, "")
            )
            for key, option in entry.options().items()
        )
        return cls(entry, _markdown(source), options, _example(entry))

    @property
    def role(self) -> str:
        """Meaning of the entry's role."""
        return ROLES[self.entry.role]

    @property
    def incompatible(self) -> tuple[str, ...]:
        """Methods or roles that it cannot be combined with; those with the same reason share an item.

        >>> MethodDescription.from_name("lgm").incompatible
        ('post-hoc methods: the head of lgm is a Gaussian mixture, not a linear layer',)
        """
        names: dict[str, list[str]] = {}
        for name, reason in self.entry.incompatible.items():
            names.setdefault(reason, []).append(f"{name} methods" if name in ROLES else name)
        return tuple(f"{_either(each)}: {reason}" for reason, each in names.items())


def _either(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def facts(method: MethodDescription) -> tuple[str, str, str]:
    """Return the summary, the paper and the required inputs of a method.

    >>> facts(MethodDescription.from_name("erm"))
    ('Cross-entropy.', 'none (control)', '')
    """
    entry = method.entry
    return entry.summary, entry.paper or "none (control)", ", ".join(entry.required_inputs)


def _markdown(source: Any) -> str:
    """Return the docstring up to its first section, with names in single backticks."""
    body = _SECTION.split(inspect.getdoc(source) or "")[0].split(">>>")[0]
    body = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", body).replace("``", "`")
    return "\n".join(line.rstrip() for line in body.strip().splitlines())


def _example(entry: MethodEntry) -> str:
    name = {"step": f"{entry.name}+mr2", "post-hoc": f"mr2+{entry.name}"}.get(entry.role, entry.name)
    data = "mnist1d:imbalance=10" if "class counts" in entry.required_inputs or entry.role == "post-hoc" else "mnist1d"
    held_out = " --val-fraction 0.1" if "held-out samples" in entry.required_inputs else ""
    return f"classgap train --data {data} --method {name}{held_out}"


def _format(default: Any) -> str:
    if isinstance(default, bool):
        return "yes" if default else "no"
    return f"{default:g}" if isinstance(default, float) else str(default)
