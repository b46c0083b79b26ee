"""Terminal output of a fix."""

from __future__ import annotations

from string import ascii_letters
from typing import TextIO

from rich.console import Console
from rich.table import Table

from classgap.remedies.results import FixResult, RemedyResult
from classgap.report.fix_summary import (
    NAMES,
    evidence_sentence,
    exceeded_limits,
    excluded_sentence,
    fix_headline,
    fix_sentences,
    format_cost_change,
    remedy_cost,
    rule_sentence,
    shown_measures,
)
from classgap.report.formatting import (
    format_level,
    format_percent,
    format_points,
    format_points_interval,
    pluralize,
)
from classgap.report.terminal.console import (
    STYLES,
    interval_bar,
    name_cell,
    plain_text,
    print_page,
    print_title,
    render_text,
    supports_unicode,
)
from classgap.report.terminal.scatter import scatter
from classgap.report.terminal.table import new_table

MAX_REMEDIES = 12
MIN_PICTURE = 56  # columns
BAR_WIDTH = 15


def print_fix(result: FixResult, file: TextIO | None = None) -> None:
    """Print the headline, the remedies, a picture of hard against easy, and the proof of a fix.

    Args:
        result: the fix to print.
        file: destination; standard output by default.

    >>> from classgap.remedies import FixResult
    >>> limits = {"easy": 0.003, "medium": 0.01, "overall": 0.001}
    >>> result = FixResult("photos", "hard", limits, 600, 0, True, (), None, None, None, 0.95, (), None, None)
    >>> print_fix(result)  # doctest: +ELLIPSIS
    classgap fix: photos
    ...
    """
    print_page(lambda console: _show(console, result), file)


def fix_text(result: FixResult) -> str:
    """Return the terminal output as plain text.

    >>> from classgap.remedies import FixResult
    >>> limits = {"easy": 0.003, "medium": 0.01, "overall": 0.001}
    >>> result = FixResult("photos", "hard", limits, 600, 0, True, (), None, None, None, 0.95, (), None, None)
    >>> print(fix_text(result).splitlines()[0])
    classgap fix: photos
    """
    return render_text(lambda console: _show(console, result))


def _show(console: Console, result: FixResult) -> None:
    print_title(console, f"classgap fix: {result.model_name}", fix_headline(result))
    console.print(plain_text(f"{evidence_sentence(result)} {rule_sentence(result)}"))
    for notice in result.notices:
        console.print(plain_text(notice))
    if result.remedies:
        shown = _shown(result)
        console.print("\n", _remedy_table(result, shown), sep="")
        console.print(plain_text(_legend(result, len(shown)), "bright_black"))
        if len(shown) > 1 and console.width >= MIN_PICTURE:
            _print_picture(console, result, shown)
    if result.proof is not None:
        console.print("\n", _proof_table(result), sep="")
    sentences = fix_sentences(result)
    for sentence in sentences:
        style = "" if sentence == excluded_sentence(result) else "bold"
        console.print("\n", plain_text(sentence, style), sep="")


def _shown(result: FixResult) -> list[RemedyResult]:
    """The first remedies, and the chosen one in any case."""
    first = list(result.remedies[:MAX_REMEDIES])
    return first + [remedy for remedy in result.remedies[MAX_REMEDIES:] if remedy.chosen]


def _remedy_table(result: FixResult, shown: list[RemedyResult]) -> Table:
    goal = "hard" if result.goal == "cost" else result.goal
    interval = f"{goal}, {format_level(result.confidence_level)} CI"
    measures = shown_measures(result)
    passes = [] if _is_free(result) else ["per prediction"]
    columns = ("", "remedy", *measures, *(["cost"] if result.goal == "cost" else []), interval, *passes)
    optional = tuple(each for each in (interval, "worst", "medium") if each != goal)
    table = new_table("Remedies (change in points)", *columns, text=("remedy",), optional=optional)
    for letter, remedy in zip(ascii_letters, shown, strict=False):
        cost = [format_cost_change(remedy.change["cost"])] if result.goal == "cost" else []
        table.add_row(
            name_cell(f"{_mark(result, remedy)} {letter}"),
            plain_text(remedy.name, "bold" if remedy.chosen else ""),
            *(format_points(remedy.change.get(name)) for name in measures),
            *cost,
            format_points_interval(remedy.interval.get(goal)),
            *([remedy_cost(remedy)] if passes else []),
        )
    return table


def _is_free(result: FixResult) -> bool:
    """Return whether all remedies need one pass, so that intervals can have the room of a column."""
    return all(remedy.passes == 1 for remedy in result.remedies)


def _mark(result: FixResult, remedy: RemedyResult) -> str:
    chosen, beyond = _marks()
    return chosen if remedy.chosen else beyond if exceeded_limits(result, remedy) else " "


def _marks() -> tuple[str, str]:
    return ("●", "×") if supports_unicode() else ("*", "x")


def _legend(result: FixResult, shown: int) -> str:
    chosen, beyond = _marks()
    texts = [f"{chosen} chosen"] if result.chosen is not None else []
    names = list(dict.fromkeys(name for remedy in result.remedies for name in exceeded_limits(result, remedy)))
    if names:
        limits = " or ".join(f"{NAMES[name]} −{format_percent(result.limits[name])}" for name in names)
        texts.append(f"{beyond} estimate exceeds the limit ({limits} points)")
    if len(result.remedies) > shown:
        texts.append(f"{pluralize(len(result.remedies) - shown, 'more remedy', 'more remedies')} in --html and --json")
    if _is_free(result):
        texts.append("Every remedy needs one pass per prediction")
    return f"{'. '.join(texts)}." if texts else ""


def _print_picture(console: Console, result: FixResult, shown: list[RemedyResult]) -> None:
    marks = [
        (remedy.change["easy"], remedy.change["hard"], letter)
        for letter, remedy in zip(ascii_letters, shown, strict=False)
    ]
    limit = -result.limits["easy"] if result.goal != "cost" and result.limits["easy"] < 1 else None
    console.print("\n", plain_text("Change of the hard third against that of the easy third", "bold"), sep="")
    for line in scatter(marks, "easy", "hard", limit, console.width - 8):
        console.print(plain_text(line), no_wrap=True)


def _proof_table(result: FixResult) -> Table:
    assert result.proof is not None
    known = {name: result.proof[name] for name in shown_measures(result) if name in result.proof}
    reach = max((abs(end) for proof in known.values() for end in proof.interval), default=0.01) or 0.01
    approximate = "approximate " if result.nested else ""
    interval = f"{approximate}{format_level(result.confidence_level)} CI"
    columns = ("", "before", "after", "change", interval, "loss | gain")
    what = "the choice, repeated in each fold" if result.nested else result.chosen
    table = new_table(f"Proof of {what} (in %)", *columns, optional=("loss | gain",))
    for name, proof in known.items():
        kind = "medium" if proof.interval.low <= 0 <= proof.interval.high else "gained"
        kind = "regressed" if proof.interval.high < 0 else kind
        table.add_row(
            name_cell(NAMES[name], STYLES.get(name, "")),
            format_percent(proof.before),
            format_percent(proof.after),
            format_points(proof.change),
            format_points_interval(proof.interval),
            interval_bar(proof.change, proof.interval, kind, (-reach, reach), BAR_WIDTH),
        )
    return table
