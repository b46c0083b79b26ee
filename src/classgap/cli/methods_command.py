"""``classgap methods``."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from classgap.cli.listing import name_width, print_entries, print_extras, print_option, print_paragraph, terminal_width
from classgap.cli.parser import Arg, Command


@dataclass(frozen=True)
class MethodsCommand(Command):
    """List the training methods for --method, or describe one.

    mr2, elm and lmdl are the methods whose papers classgap reproduces: margin
    regularization for performance disparity reduction (MR²), embedding and
    logit margins (ELM), and the large margin discriminative loss (LMDL).

    Examples:
      classgap methods
      classgap methods mr2
    """

    ARGS: ClassVar[Mapping[str, Arg]] = {"name": Arg("NAME", positional=True, default="list all")}

    name: str | None = None
    """Method to describe."""

    def run(self) -> None:
        """Print the list or the description."""
        if self.name is None:
            _print_list()
        else:
            _print_method(self.name)


def _print_list() -> None:
    from classgap.methods.catalog import METHODS
    from classgap.methods.entry import ROLES, MethodEntry

    entries = [entry for entry in METHODS.entries.values() if isinstance(entry, MethodEntry)]
    for role, meaning in ROLES.items():
        print(f"{role} ({meaning}):")
        print_entries([entry for entry in entries if entry.role == role], name_width(entries))
    print("\nOptions follow the name, and + composes methods: mr2:strength=0.1, sam+mr2.")
    print("Run `classgap methods NAME` for details.")
    print_extras(entries)


def _print_method(name: str) -> None:
    from classgap.methods.describe import MethodDescription

    method = MethodDescription.from_name(name)
    entry = method.entry
    print_paragraph(f"{name}: {entry.summary}")
    print()
    _print_markdown(f"{method.text}\n\n{entry.differences}".strip())
    print_paragraph(f"Paper: {entry.paper or 'none (a control)'}")
    print_paragraph(f"Role:  {entry.role} ({method.role})")
    print_paragraph(f"Needs: {', '.join(entry.required_inputs) or 'logits and targets only'}")
    for reason in method.incompatible:
        print_paragraph(f"Cannot be combined with {reason}.")
    print("\nOptions:" if method.options else "\nNo options.")
    kinds = {option.name: option for option in entry.options().values()}
    for option in method.options:
        typed = kinds[option.name.replace("-", "_")]
        source = f"Default from: {option.origin}." if option.origin else ""
        print_option(typed.name, typed.kind, typed.default, option.meaning, source)
    print(f"\nExample:\n  {method.command}")


def _print_markdown(text: str) -> None:
    """Print Markdown paragraphs and lists wrapped, and formulas line by line."""
    for block in text.split("\n\n"):
        if block.startswith("    "):
            for line in map(_shorten_gap, block.splitlines()):
                print(textwrap.fill(line, terminal_width(), subsequent_indent=" " * 8, drop_whitespace=True))
        else:
            for item in re.split(r"\n(?=- )", block):
                print_paragraph(" ".join(item.split()), hanging=2 if item.startswith("- ") else 0)
        print()


def _shorten_gap(line: str) -> str:
    """Move an equation's number next to it; docstrings align the numbers at the right margin.

    >>> _shorten_gap("    CE(z / γ_y, y)            Eq. (1)")
    '    CE(z / γ_y, y)   Eq. (1)'
    """
    return re.sub(r" {3,}(?=(cf\. )?(ELM )?(Eq|Sec)\.)", "   ", line)
