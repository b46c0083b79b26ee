"""``classgap methods``: what can be trained with, and one method in full."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

if TYPE_CHECKING:
    from rich.table import Table

    from classgap.methods.describe import MethodDescription


@dataclass(frozen=True)
class MethodsCommand:
    """List the methods that --method names, or tell about one.

    Examples:
      classgap methods
      classgap methods mr2
    """

    name: Positional[Annotated[str | None, arg(metavar="NAME", help_behavior_hint="(default: all)")]] = None
    """A method."""

    def run(self) -> None:
        """Print the table, or the page."""
        if self.name is None:
            _print_all()
        else:
            _print_one(self.name)


def _print_all() -> None:
    from rich.console import Console

    from classgap.methods import names
    from classgap.methods.describe import MethodDescription, facts

    table = _table("method", "what it is", "paper", "needs")
    for name in names():
        _add(table, name, *facts(MethodDescription.from_name(name)))
    Console().print(table, highlight=False)
    print("\nOptions go behind the name, methods compose with a plus: mr2:strength=0.1, sam+mr2.")
    print("classgap methods NAME tells more about one.")


def _print_one(name: str) -> None:
    from rich.console import Console
    from rich.text import Text

    from classgap.methods.describe import MethodDescription, facts

    method, console = MethodDescription.from_name(name), Console()
    summary, paper, needs = facts(method)
    console.print(Text(f"{name}: {summary}\n", style="bold"))
    console.print(Text("\n".join(_unwrapped(f"{method.text}\n\n{method.entry.differences}".strip()))))
    for key, value in {"paper": paper, "role": f"{method.entry.role}: {method.role}", "needs": needs}.items():
        console.print(Text(f"{key}: {value or 'nothing more'}"))
    for reason in method.incompatible:
        console.print(Text(f"does not compose with {reason}"))
    console.print(_options(method), highlight=False)
    console.print(Text(f"\n{method.command}"), soft_wrap=True)


def _options(method: MethodDescription) -> Table | str:
    if not method.options:
        return "\nIt has no options."
    table = _table("\noption", "\ndefault", "\nfrom", "\nmeaning")
    for each in method.options:
        _add(table, each.name, each.default, each.origin, each.meaning)
    return table


def _unwrapped(text: str) -> list[str]:
    """Paragraphs as one line each, for a terminal of any width; formulas and lists keep their lines."""
    lines = [""]
    for line in map(_near_equation, text.splitlines()):
        starts = not line or line.startswith(("    ", "- ")) or not lines[-1] or lines[-1].startswith("    ")
        if starts:
            lines.append(line)
        else:
            lines[-1] += " " + line.strip()
    return [*lines[1:], ""]


def _near_equation(line: str) -> str:
    """A formula with its equation number beside it, not at the right margin of a wide page."""
    return re.sub(r" {3,}(?=(cf\. )?(ELM )?(Eq|Sec)\.)", "   ", line)


def _table(*columns: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=i == 0)
    return table


def _add(table: Table, *cells: str) -> None:
    from rich.text import Text

    table.add_row(*map(Text, cells))  # plain: brackets are no markup
