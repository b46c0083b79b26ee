"""The page of all methods, made from the catalogue: ``python -m classgap.methods.page docs/methods.md``.

What stands below the last line of the generated part is written by hand, and kept.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from classgap._atomic_write import atomic_write_text
from classgap.methods.catalog import METHODS
from classgap.methods.composition import WHY_ONE
from classgap.methods.describe import Explained
from classgap.methods.entry import ROLES

END = "<!-- Everything above is made by python -m classgap.methods.page; what follows is written by hand. -->"

INTRODUCTION = """\
# Methods

Any method goes where any other does: `--method NAME[:option=value …]`, or
`cg.methods.build("NAME", num_classes=K).loss(logits, targets, …)`, with `class_counts=` and `feature_dim=` for `build`
and `features=`, `head=` and `index=` for the loss where a method needs them
([a loop of your own](training.md#a-loop-of-your-own)).
`classgap methods` prints this table, `classgap methods NAME` one method. A default is from the *paper*, from the
*published code* where the paper is silent or the two differ, or *ours*. Where published code and paper differ, the
method's own text says how, and which option is which.
"""

COMPOSING = """\
## Composing

Methods with a `+` between them compose, in any order, each with its options: `sam:rho=0.1+mr2:strength=0.1`,
`mr2+tau-norm`. A composition has one loss or procedure (cross-entropy if none is named), at most one step and at most
one post-hoc method. `mr2+logit-adjustment` is MR² with logit adjustment in its cross-entropy.
"""


def page() -> str:
    """The generated part, in Markdown.

    >>> page().splitlines()[0]
    '# Methods'
    """
    methods = [Explained.from_name(name) for name in METHODS.names()]
    rows = [(f"[`{each.entry.name}`](#{each.entry.name})", *facts(each)) for each in methods]
    parts = [INTRODUCTION, table(("method", "what it is", "paper", "needs"), rows), "", COMPOSING, _roles(methods)]
    return "\n".join([*parts, "", *(section(each) for each in methods), END, ""])


def facts(method: Explained) -> tuple[str, str, str]:
    """What it is, its paper, and what it needs."""
    entry = method.entry
    return entry.summary, entry.paper or "none: a control", ", ".join(entry.required_inputs)


def section(method: Explained) -> str:
    """One method, in Markdown."""
    entry = method.entry
    lines = [f"## {entry.name}", "", method.text, ""]
    lines += [entry.differences, ""] if entry.differences else []
    lines += [
        f"Paper: {facts(method)[1]}. Role: {entry.role}. Needs: {', '.join(entry.required_inputs) or 'nothing'}.",
        "",
    ]
    if method.options:
        rows = [(f"`{each.name}`", f"`{each.default}`", each.origin, each.meaning) for each in method.options]
        lines += [table(("option", "default", "from", "meaning"), rows), ""]
    if method.refuses:
        lines += [*(f"Does not compose with {each}." for each in method.refuses), ""]
    return "\n".join([*lines, "```bash", method.command, "```", ""])


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table.

    >>> print(table(("a", "b"), [("1", "x|y")]))
    | a | b |
    |---|---|
    | 1 | x\\|y |
    """
    body = ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *body])


def rewritten(text: str) -> str:
    """A page with its generated part made anew."""
    _, _, by_hand = text.partition(f"{END}\n")
    return page() + by_hand


def _roles(methods: list[Explained]) -> str:
    rows = []
    for role, meaning in ROLES.items():
        members = ", ".join(f"`{each.entry.name}`" for each in methods if each.entry.role == role)
        rows.append((role, meaning, WHY_ONE[role], members))
    return table(("role", "is", "why not two", "methods"), rows)


def main() -> None:
    """Write the page whose file is named, or print it."""
    if len(sys.argv) == 1:
        print(page(), end="")
        return
    path = Path(sys.argv[1])
    atomic_write_text(path, rewritten(path.read_text(encoding="utf-8") if path.exists() else ""))


if __name__ == "__main__":
    main()
