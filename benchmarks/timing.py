"""What the benchmarks of time share: competitors in turn, repeats, their text, and the command line."""

from __future__ import annotations

import argparse
import math
import re
import statistics
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import stored
import torch
from rich.console import Console
from rich.progress import track
from threadpoolctl import threadpool_limits

Results = dict[str, Any]
REPEATS, QUICK_REPEATS = 5, 2


def use_one_thread() -> None:
    """Use one thread, so that CPU time is comparable; it depends less on other programs than elapsed time."""
    torch.set_num_threads(1)
    threadpool_limits(1)


def fastest(
    jobs: Mapping[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Smallest time of each job in seconds. The jobs take turns, and each round starts with another one."""
    names, best = list(jobs), dict.fromkeys(jobs, math.inf)
    for i in range(rounds):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            start = clock()
            jobs[name]()
            best[name] = min(best[name], clock() - start)
    return best


def repeat(repeats: int, measure: Callable[[], Mapping[str, float]]) -> dict[str, list[float]]:
    """Measure several times; return a list for each name."""
    shown = {"console": Console(stderr=True), "disable": not sys.stderr.isatty(), "transient": True}
    found = [measure() for _ in track(range(repeats), "Measuring", **shown)]
    return {name: [float(f"{each[name]:.4g}") for each in found] for name in found[0]}


def describe_ratio(ones: Sequence[float], others: Sequence[float]) -> str:
    """Median of the ratios within repeats, and the smallest and largest.

    >>> describe_ratio([2.0, 3.0, 5.0], [2.0, 2.0, 2.0])
    '1.5 (1.0 to 2.5)'
    """
    ratios = [one / other for one, other in zip(ones, others, strict=True)]
    return "{} ({} to {})".format(*format_alike(statistics.median(ratios), min(ratios), max(ratios)))


def format_alike(*values: float) -> list[str]:
    """Format with as many decimals as the largest value needs.

    >>> format_alike(0.95, 1.034), format_alike(0.95, 2.5), format_alike(9.5, 11.0)
    (['0.95', '1.03'], ['0.9', '2.5'], ['10', '11'])
    """
    largest = max(values)
    return [f"{value:.{2 if largest < 2 else 1 if largest < 10 else 0}f}" for value in values]


def describe_seconds(seconds: Sequence[float]) -> str:
    """Median time.

    >>> describe_seconds([0.000071]), describe_seconds([0.0129]), describe_seconds([0.4]), describe_seconds([12.3])
    ('0.07 ms', '13 ms', '0.40 s', '12 s')
    """
    median = statistics.median(seconds)
    value, unit = (median * 1e3, "ms") if median < 0.1 else (median, "s")
    return f"{value:.2f} {unit}" if value < 1 else f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"


def describe_conditions(results: Results, figures: str = "Ratios and CPU times") -> str:
    """Explain the figures, and state where they were measured."""
    where = results["environment"]
    version, cpus, threads = where["torch"].partition("+")[0], where["cpus"], where["threads"]
    return (
        f"{figures} are medians of {results['repeats']} repeats, with the smallest and largest ratio in parentheses "
        f"(PyTorch {version}, {cpus} CPU{'s' * (cpus > 1)}, {threads} thread{'s' * (threads > 1)})."
    )


def paragraph(text: str) -> str:
    """Wrap a paragraph as the pages do."""
    joined = re.sub("`.*?`", lambda code: code[0].replace(" ", "\0"), text)  # code stays on one line
    return textwrap.fill(joined, 150, break_long_words=False, break_on_hyphens=False).replace("\0", " ")


def table(rows: Sequence[Sequence[object]]) -> str:
    """Markdown table; the first row is the header."""
    header, *body = (f"| {' | '.join(map(str, cells))} |" for cells in rows)
    return "\n".join([header, "|" + "---|" * len(rows[0]), *body])


def main(
    doc: str | None,
    measure: Callable[[int, bool], Results],
    describe: Callable[[Results], str],
    path: Path,
    section: stored.Section,
) -> None:
    """Run the command line of a benchmark.

    Args:
        doc: help.
        measure: takes the number of repeats, and whether to be quick.
        describe: text of the section.
        path: of the results.
        section: that shows them.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?", choices=("measure", "docs"), default="measure")
    parser.add_argument("--quick", action="store_true", help="measure less, and do not store it")
    parser.add_argument("--repeats", type=int, help=f"default {REPEATS}, or {QUICK_REPEATS} with --quick")
    options = parser.parse_args()
    if options.command == "docs":
        section.write(describe(stored.read(path)))
        return
    repeats = options.repeats or (QUICK_REPEATS if options.quick else REPEATS)
    measured = measure(repeats, options.quick)  # first: it sets the number of threads
    results = {"environment": stored.environment(), "repeats": repeats} | measured
    print(describe(results))
    if not options.quick:
        stored.write(path, results)
