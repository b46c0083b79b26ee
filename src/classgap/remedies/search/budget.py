"""Time limits such as ``2h`` and ``1h30m``."""

from __future__ import annotations

import re

_SECONDS = {"h": 3600, "m": 60, "s": 1}
_PART = r"(\d+(?:\.\d+)?)([hms])"


def parse_budget(text: str) -> float:
    """Convert a time limit to seconds.

    Raises:
        ValueError: If the text has another form, or the limit is 0.

    >>> parse_budget("2h"), parse_budget("1h30m"), parse_budget("45s"), parse_budget("0.5h")
    (7200.0, 5400.0, 45.0, 1800.0)
    """
    parts = re.findall(_PART, text)
    units = [unit for _, unit in parts]
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if not re.fullmatch(f"(?:{_PART})+", text) or len(set(units)) < len(units) or not seconds > 0:
        raise ValueError(f"budget must be a time such as 2h, 30m, 45s or 1h30m, above 0; got {text!r}.")
    return seconds


def format_seconds(seconds: float) -> str:
    """Format a duration in its two largest units.

    >>> format_seconds(5400), format_seconds(75.2), format_seconds(4.4)
    ('1h30m', '1m15s', '4s')
    """
    total = round(max(0.0, seconds))
    hours, minutes, rest = total // 3600, total // 60 % 60, total % 60
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
