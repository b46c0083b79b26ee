"""Cells of CSV files: text that a spreadsheet would run as a formula, and numbers."""

from __future__ import annotations

import re
from typing import Any

_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def escape_cell(value: Any) -> Any:
    """Prefix text that a spreadsheet would run as a formula with an apostrophe; numbers are left as they are.

    >>> [escape_cell(value) for value in ("=1+1", "-0.5", "cat", "'=1", 3)]
    ["'=1+1", '-0.5', 'cat', "''=1", 3]
    """
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) and not is_number(value) else value


def unescape_cell(text: str) -> str:
    """Undo :func:`escape_cell`.

    >>> [unescape_cell(text) for text in ("'=1+1", "-0.5", "'cat", "''=1")]
    ['=1+1', '-0.5', "'cat", "'=1"]
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def is_number(text: str) -> bool:
    """Return whether ``text`` can be converted to a float.

    >>> is_number("-1e3"), is_number("nan"), is_number("1,5")
    (True, True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True
