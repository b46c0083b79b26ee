"""A chart as an SVG file of its own, with the style sheet of the pages inside."""

from __future__ import annotations

from importlib.resources import files

from markupsafe import Markup

from classgap.report.charts.svg import tag

FONT = "font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', Arial, sans-serif"


def standalone_svg(chart: str | Markup) -> str:
    """Return the wide drawing of a chart as a document that needs no page: with colors, for light and dark mode.

    Args:
        chart: markup of any chart of this package.

    >>> from classgap.report.charts.line_chart import Line, line_chart
    >>> chart = line_chart("l", "Lines", "One.", [Line("a", [0, 1], [0, 2])], x_label="x", y_label="y")
    >>> document = standalone_svg(chart)
    >>> document.startswith('<svg xmlns="http://www.w3.org/2000/svg"'), document.count("<svg")
    (True, 1)
    """
    start, end = chart.find("<svg"), chart.find("</svg>")
    if start < 0 or end < 0:
        raise ValueError(f"chart must be the markup of a chart, got {str(chart)[:40]!r}.")
    opening, content = str(chart)[start:end].split(">", 1)
    styles = files("classgap.report.html").joinpath("templates", "chart.css").read_text(encoding="utf-8")
    # No selector or value of the style sheet has a "<" or "&", which would need escaping.
    ground = tag("rect", class_="paper", width="100%", height="100%")
    rules = f"{styles}svg {{ {FONT}; }} .paper {{ fill: var(--paper); }}\n"
    root = opening.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return f"{root}><style>\n{rules}</style>{ground}{content}</svg>\n"
