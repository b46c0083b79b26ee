"""Audits and comparisons as pages of a terminal, 80 columns wide."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from classgap.audit.audit import Audit
from classgap.audit.figures import FIGURES, ClassResult, Figure
from classgap.audit.results import Interval
from classgap.report.audit_charts import ordered_groups
from classgap.report.audit_page import gap_rows
from classgap.report.class_table import format_cell
from classgap.report.formatting import (
    MISSING,
    count,
    failing_first,
    format_level,
    hardest_first,
    method_names,
    number,
    percent,
    percent_range,
    plural,
    printable,
)
from classgap.report.notices import notice_text
from classgap.report.summary import cause_line, headline

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

WIDTH = 80
BAR = 22  # columns of an interval bar
WORST = 10
PAIRS = 5
STYLES = {
    "easy": "blue",
    "medium": "bright_black",
    "hard": "dark_orange3",
    "gained": "blue",
    "regressed": "dark_orange3",
}


def print_audit(audit: Audit, file: TextIO | None = None) -> None:
    """Write an audit's page: headline, groups, gap, worst classes, confusions and what is behind them.

    Args:
        audit: what to show.
        file: where to write; the terminal if not given.
    """
    _show(open_console(file), audit)


def audit_text(audit: Audit) -> str:
    """The terminal page as plain text."""
    return plain_text(lambda console: _show(console, audit))


def _show(console: Console, audit: Audit) -> None:
    overall = audit.overall
    seen = plural(overall.seen_classes, "class", "classes")
    title(console, f"classgap audit: {audit.name}", headline(audit))
    console.print(
        f"{percent(overall.accuracy)} % of {count(overall.n_samples)} samples in {seen} right; mean over classes "
        f"{percent(overall.balanced_accuracy)} % ({percent_range(overall.balanced_interval)}).{_other_metrics(audit)}"
    )
    order = hardest_first(audit.classes)
    tables = [_group_table(audit), _gap_table(audit), _worst_table(order, audit.confidence_level)]
    for table in tables + ([_pair_table(audit)] if audit.pairs else []):
        console.print("\n", table, sep="")
    _print_causes(console, failing_first(audit.classes))
    for notice in audit.notices:
        console.print(words(f"Note: {notice_text(notice)}", "bright_black"))


def open_console(file: TextIO | None) -> Console:
    """A console of at most 80 columns."""
    from rich.console import Console

    class Page(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # whoever called decides what it means; rich itself would end the process

    console = Page(file=file, highlight=False, soft_wrap=False)
    console.width = min(WIDTH, console.width)
    return console


def plain_text(show: Callable[[Console], None]) -> str:
    """Return the output of ``show`` as 80 columns of text without control sequences."""
    from rich.console import Console

    text = io.StringIO()
    show(Console(file=text, width=WIDTH, color_system=None, force_terminal=False, force_jupyter=False, highlight=False))
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def title(console: Console, name: str, line: str) -> None:
    """What this is, and the one thing to know."""
    console.print(words(name, "bright_black"))
    console.print(words(line, "bold"))
    console.print()


def words(text: str, style: str = "") -> Text:
    """Text as it is: nothing in it is taken for markup or obeyed by the terminal."""
    from rich.text import Text

    return Text(printable(text), style=style)


def name_cell(text: str, style: str = "") -> Text:
    """A name in a table: on one line, cut if there is no room."""
    cell = words(text, style)
    cell.no_wrap, cell.overflow = True, "ellipsis"
    return cell


def new_table(caption: str, *columns: str, wide: tuple[str, ...] = (), spare: tuple[str, ...] = ()) -> Table:
    """A table without lines but under its header; the first column and ``wide`` ones are text, the others numbers.

    Numbers are never cut; where columns are too few, names are, and then the least needed columns are left out.

    Args:
        caption: over the table.
        columns: headers.
        wide: headers of columns of text.
        spare: headers of columns that a narrow terminal can do without, least needed first.
    """
    from rich.table import Column

    from classgap.report.terminal_table import FittingTable

    made = []
    for i, column in enumerate(columns):
        text = i == 0 or column in wide
        made.append(Column(column, justify="left" if text else "right", no_wrap=not text, header_style="bright_black"))
    return FittingTable(words(caption, "bold"), *made, spare=spare)


def interval_bar(
    value: float,
    interval: Interval | None,
    kind: str = "",
    domain: tuple[float, float] = (0, 1),
    width: int = BAR,
) -> Text:
    """A line of some columns with the interval and a dot at the value.

    >>> interval_bar(0.5, Interval(0.25, 0.75)).plain
    '·····━━━━━●━━━━━━·····'
    """
    from rich.text import Text

    dot, line, empty = ("●", "━", "·") if _can_draw() else ("o", "=", ".")
    low, high = interval if interval is not None else (value, value)
    scale = (width - 1) / ((domain[1] - domain[0]) or 1.0)
    first, at, last = (round(min(max(v - domain[0], 0) * scale, width - 1)) for v in (low, value, high))
    bar = Text()
    for i in range(width):
        inside = first <= i <= last
        letter = dot if i == at else line if inside else empty
        bar.append(letter, STYLES.get(kind, "") if inside else "bright_black")
    return bar


def _can_draw() -> bool:
    try:
        "●━·".encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _other_metrics(audit: Audit) -> str:
    others = [f" Top {k}: {percent(value)} %." for k, value in sorted(audit.overall.top_k.items()) if k > 1]
    return "".join([f" Macro F1: {percent(audit.overall.macro_f1)} %.", *others])


def _group_table(audit: Audit) -> Table:
    confidence_level = format_level(audit.confidence_level)
    caption = "Groups of classes" + ("" if audit.rank_by == "own" else "; thirds by the baseline's ranking")
    table = new_table(
        caption, "group", "classes", "accuracy, %", f"{confidence_level} interval", "0 to 100 %", "margin",
        spare=("0 to 100 %", "margin", "classes"),
    )  # fmt: skip
    for group in ordered_groups(audit):
        bar = MISSING if group.accuracy is None else interval_bar(group.accuracy, group.interval, group.name)
        table.add_row(
            name_cell(group.name, STYLES.get(group.name, "")),
            count(len(group.members)),
            percent(group.accuracy),
            percent_range(group.interval),
            bar,
            number(group.margin),
        )
    return table


def _gap_table(audit: Audit) -> Table:
    table = new_table("Gap", "measure", "value", f"{format_level(audit.confidence_level)} interval", "by chance")
    for row in gap_rows(audit):
        table.add_row(*row)
    return table


def _worst_table(order: list[ClassResult], confidence_level: float) -> Table:
    shown = [figure for figure in FIGURES if figure.terminal]
    table = new_table(
        f"Worst classes, with their {format_level(confidence_level)} intervals",
        "class",
        *(figure.terminal for figure in shown),
        wide=tuple(figure.terminal for figure in shown if figure.unit == "text"),
        spare=("samples", "confused with"),
    )
    for entry in order[:WORST]:
        table.add_row(name_cell(entry.name), *(_class_cell(figure, entry) for figure in shown))
    return table


def _class_cell(figure: Figure, entry: ClassResult) -> Text | str:
    value = getattr(entry, figure.name)
    if isinstance(value, Interval):
        return interval_bar(entry.accuracy or 0.0, value, entry.group or "")
    if figure.name == "confusions" and value:
        return name_cell(f"{percent(value[0].rate)} % {value[0].name}")  # the rate first: long names are cut
    cell = format_cell(figure, entry)
    return name_cell(cell) if figure.unit == "text" else cell


def _pair_table(audit: Audit) -> Table:
    table = new_table(
        "Most confused pairs", "class", "taken for", "%", "the other way, %", "samples",
        wide=("taken for",),
        spare=("samples", "the other way, %"),
    )  # fmt: skip
    for pair in audit.pairs[:PAIRS]:
        both = f"{count(pair.first_as_second)} + {count(pair.second_as_first)}"
        rates = percent(pair.first_rate), percent(pair.second_rate)
        table.add_row(name_cell(pair.first), name_cell(pair.second), *rates, both)
    return table


def _print_causes(console: Console, failing: list[ClassResult]) -> None:
    from rich.padding import Padding

    console.print()
    if not failing:
        return
    console.print(words("Why they fail", "bold"))
    for entry in failing[:PAIRS]:
        methods = method_names(entry.diagnosis[0].methods)
        line = words(f"{entry.name}: ", "bold") + words(cause_line(entry) or "")
        console.print(Padding(line + words(f" Try {methods}." if methods else "", "bright_black"), (0, 0, 0, 2)))
    if len(failing) > PAIRS:
        console.print(words(f"  and {plural(len(failing) - PAIRS, 'class', 'classes')} more (--html shows all)."))
    console.print()
