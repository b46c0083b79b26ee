"""Extension of Griffe: doctests in docstrings become code blocks, and roles such as ``:class:`X` `` plain code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_DOCTEST = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?P=indent)\S.*)*", flags=re.MULTILINE)
_ROLE = re.compile(r":(?:class|func|meth|mod|attr|data):`~?([^`]+)`")


class Docstrings(griffe.Extension):
    """Turn doctests and roles into Markdown."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value)


def to_markdown(text: str) -> str:
    """Return a docstring with fenced doctests and without roles."""

    def fence(match: re.Match[str]) -> str:
        indent = match["indent"]
        return f"{indent}```pycon\n{match[0]}\n{indent}```"

    return _DOCTEST.sub(fence, _ROLE.sub(r"`\1`", text))
