"""Text of reports: percentages with one decimal, signed points, a dash for missing values, and escaped names."""

from __future__ import annotations

import re
import unicodedata

from classgap.audit.results import Interval

MISSING = "–"
MARKUP = re.compile(r"([\\`*_{}\[\]<>|#&~$])")


def format_level(confidence_level: float) -> str:
    """Format a confidence level as a percentage.

    >>> format_level(0.95), format_level(0.975)
    ('95 %', '97.5 %')
    """
    return f"{100 * confidence_level:g} %"


def format_percent(value: float | None) -> str:
    """Format a fraction as a percentage, without the % sign.

    >>> format_percent(0.6321), format_percent(-0.05), format_percent(None)
    ('63.2', '−5.0', '–')
    """
    if value is None:
        return MISSING
    text = f"{100 * value:.1f}"
    return "0.0" if text == "-0.0" else text.replace("-", "−")


def format_points(value: float | None) -> str:
    """Format a difference of two fractions as signed percentage points.

    >>> format_points(0.0321), format_points(-0.5), format_points(0.0)
    ('+3.2', '−50.0', '0.0')
    """
    if value is None:
        return MISSING
    text = f"{100 * value:+.1f}"
    return text[1:] if text in ("+0.0", "-0.0") else text.replace("-", "−")


def format_percent_interval(interval: Interval | None) -> str:
    """Format an interval of fractions.

    >>> format_percent_interval(Interval(0.5, 0.75))
    '50.0 to 75.0'
    """
    return MISSING if interval is None else f"{format_percent(interval.low)} to {format_percent(interval.high)}"


def format_points_interval(interval: Interval | None) -> str:
    """Format an interval of differences.

    >>> format_points_interval(Interval(-0.01, 0.04))
    '−1.0 to +4.0'
    """
    return MISSING if interval is None else f"{format_points(interval.low)} to {format_points(interval.high)}"


def format_number(value: float | None) -> str:
    """Format a number with three significant digits.

    >>> format_number(0.01234), format_number(1234.5), format_number(-2.0), format_number(100), format_number(None)
    ('0.0123', '1,234', '−2.00', '100', '–')
    """
    if value is None:
        return MISSING
    text = f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:#.3g}".rstrip(".")
    return text.replace("-", "−")


def format_count(value: float | None) -> str:
    """Format a number of samples or classes.

    >>> format_count(50000)
    '50,000'
    """
    return MISSING if value is None else f"{value:,.0f}"


def format_p_value(p_value: float | None) -> str:
    """Format a p-value.

    >>> format_p_value(0.00001), format_p_value(0.0421)
    ('< 0.001', '0.042')
    """
    if p_value is None:
        return MISSING
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def format_gap(name: str, value: float | None) -> str:
    """Format the value of a gap measure: a plain number for the Gini coefficient, a percentage otherwise.

    >>> format_gap("std", 0.125), format_gap("gini", 0.125)
    ('12.5', '0.125')
    """
    return format_number(value) if name == "gini" else format_percent(value)


def pluralize(amount: int, singular: str, plural: str) -> str:
    """Format an amount with its noun.

    >>> pluralize(1, "class", "classes"), pluralize(1200, "class", "classes")
    ('1 class', '1,200 classes')
    """
    return f"{amount:,} {singular if amount == 1 else plural}"


def printable(text: str) -> str:
    """Replace control characters, which a terminal would obey, and line breaks.

    >>> printable("cat\\x1b[31m\\n")
    'cat\ufffd[31m\ufffd'
    """
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def escape_markdown(text: str) -> str:
    """Escape what Markdown would interpret, as in class names and error messages, on one line.

    >>> print(escape_markdown("a|b_c\\n *d*"))
    a\\|b\\_c \\*d\\*
    """
    return MARKUP.sub(r"\\\1", printable(" ".join(text.split())))


def truncate(text: str, width: int) -> str:
    """Cut ``text`` to ``width`` columns.

    >>> truncate("a very long name", 8)
    'a very …'
    """
    used = 0
    for i, letter in enumerate(text):
        used += display_width(letter)
        if used > width:
            kept = text[:i]
            while kept and display_width(kept) > width - 1:
                kept = kept[:-1]
            return kept + "…"
    return text


def display_width(text: str) -> int:
    """Number of columns that ``text`` takes; wide East Asian characters take two.

    >>> display_width("cat"), display_width("猫")
    (3, 2)
    """
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def word_parts(text: str) -> list[str]:
    """Split a name where a line may end: after punctuation, and before a capital within a word.

    >>> word_parts("talk.religion.misc"), word_parts("greatWhite_shark"), word_parts("cat")
    (['talk.', 'religion.', 'misc'], ['great', 'White_', 'shark'], ['cat'])
    """
    return re.split(r"(?<=[_./:|\\,;+=-])(?=[^\W\d])|(?<=[a-z])(?=[A-Z])", text)


def use_minus_signs(text: str) -> str:
    """Replace hyphens in formulas with minus signs; hyphens inside words stay.

    >>> use_minus_signs("t-SNE of a - b, n - 1, -1/(K-1)")
    't-SNE of a − b, n − 1, −1/(K−1)'
    """
    return re.sub(r"(?<= )-(?= )|(?<![\w-])-(?=\d)|(?<=\(\w)-(?=\d)", "−", text)
