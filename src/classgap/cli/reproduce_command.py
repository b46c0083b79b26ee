"""``classgap reproduce``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from classgap.cli.invocation import command_line
from classgap.cli.outputs import check_outputs, print_written
from classgap.cli.parser import Arg, Command

if TYPE_CHECKING:
    from classgap.reproduce.cells import Cell, Plan
    from classgap.reproduce.running import Progress
    from classgap.reproduce.store import ResultStore

DEFAULT_STORE = Path("results")
FAILED = 1  # exit code if a run failed, for example because the disk was full


@dataclass(frozen=True)
class ReproduceCommand(Command):
    """Reproduce a table or figure of a paper and compare the numbers.

    The papers are those of MR², ELM and LMDL (see `classgap methods --help`).
    Runs that are already stored in --results-dir are not repeated. To resume an
    interrupted command, rerun it.

    Examples:
      classgap reproduce mr2-table-3 --scale tiny
      classgap reproduce mr2-table-3 --scale cpu --executor process:2
      classgap reproduce elm-table-2 --cells "ELM / CIFAR100-LT" --seeds 3
      classgap reproduce mr2-table-3 --no-train --html table3.html
    """

    ARGS: ClassVar[Mapping[str, Arg]] = {
        "name": Arg("NAME", positional=True),
        "seeds": Arg(default="that of the scale"),
        "cells": Arg("PATTERN", default="all"),
        "files": Arg("NAME=PATH"),
        "results_dir": Arg("DIR"),
    }

    name: str
    """Recipe name (see `classgap recipes`) or YAML file."""

    scale: Literal["tiny", "cpu", "full-200", "full"] = "tiny"
    """Size of the runs: about a minute (tiny), up to several hours on two cores (cpu), as published (full), or
    with the published data and networks in bfloat16 and at most 256 epochs (full-200)."""

    seeds: int | None = None
    """Number of seeds."""

    cells: tuple[str, ...] = ()
    """Run only these rows or cells of the table. A cell is ROW / COLUMN; * matches any text."""

    executor: str = "process:1"
    """Where runs are trained: in N processes (process:N), or on a Dask cluster (dask:ADDRESS) whose workers share the
    file system."""

    results_dir: Path = DEFAULT_STORE
    """Directory of stored results; existing runs are reused and new ones added."""

    files: tuple[str, ...] = ()
    """Paths of files that the recipe needs, for example clinc150=clinc150.npz."""

    train: bool = True
    """Train the runs that are missing from --results-dir."""

    keep_runs: bool = False
    """Keep the run directories, with predictions and weights, in DIR/.work."""

    html: Path | None = None
    """Write the full report as one self-contained HTML page."""

    markdown: Path | None = None
    """Write the tables as Markdown."""

    csv: Path | None = None
    """Write one row per result as CSV."""

    def run(self) -> int:
        """Train what is missing, show the paper's numbers and ours, and return the exit code."""
        from classgap.report import print_reproduction, write_html
        from classgap.report.reproduction_files import write_reproduction_csv, write_reproduction_markdown
        from classgap.reproduce.catalog import load_recipe
        from classgap.reproduce.cells import make_plan
        from classgap.reproduce.results import collect
        from classgap.reproduce.store import ResultStore

        outputs = {"--html": self.html, "--markdown": self.markdown, "--csv": self.csv}
        store = ResultStore(self.results_dir)
        check_outputs(outputs, [Path(self.name), store.index, *store.entries.glob("*.json")])
        if self.results_dir.exists() and not self.results_dir.is_dir():
            raise ValueError(f"--results-dir {self.results_dir} is a file; choose a directory.")
        if self.seeds is not None and self.seeds < 1:
            raise ValueError(f"--seeds must be at least 1, got {self.seeds}.")
        plan = make_plan(load_recipe(self.name), self.scale, self.seeds)
        plan = plan.select(self.cells) if self.cells else plan
        failed: list[str] = []
        result = collect(plan, store, self._train(plan, store, failed) if self.train else None)
        if self.html is not None:
            write_html(result, self.html, sources=[self.results_dir], command=command_line())
        if self.markdown is not None:
            write_reproduction_markdown(result, self.markdown)
        if self.csv is not None:
            write_reproduction_csv([result], self.csv)
        print_reproduction(result)
        print_written(outputs)
        if failed:
            others = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
            print(
                f"classgap: failed: {failed[0].rstrip('.')}{others}. Run the same command to try again.",
                file=sys.stderr,
            )
        return FAILED if failed else 0

    def _train(self, plan: Plan, store: ResultStore, failed: list[str]) -> dict[Cell, str]:
        from rich.console import Console
        from rich.text import Text

        from classgap.cli.training_output import raise_interrupted
        from classgap.engine import TrainingInterrupted
        from classgap.report.formatting import printable
        from classgap.reproduce.running import run_plan

        console = Console(stderr=True)
        with console.status("Starting workers") as status:

            def show(progress: Progress) -> None:
                if progress.outcome is not None and progress.outcome.status == "failed":
                    failed.append(printable(progress.outcome.error))
                if progress.cell is not None:
                    console.print(Text(printable(describe_progress(progress))), soft_wrap=True)
                status.update(f"{progress.done} of {progress.total} runs")

            try:
                return run_plan(
                    plan,
                    store,
                    executor=self.executor,
                    files=parse_files(self.files),
                    keep_runs=self.keep_runs,
                    on_progress=show,
                )
            except TrainingInterrupted as interruption:
                raise_interrupted(interruption)


def parse_files(words: tuple[str, ...]) -> dict[str, str]:
    """Split ``NAME=PATH``.

    Raises:
        ValueError: If a word has another form.

    >>> parse_files(("clinc150=data/clinc150.npz",))
    {'clinc150': 'data/clinc150.npz'}
    """
    found = {}
    for word in words:
        name, equals, path = word.partition("=")
        if not (name and equals and path):
            raise ValueError(f"--files must be NAME=PATH, for example clinc150=clinc150.npz; got {word!r}.")
        found[name] = path
    return found


def describe_progress(progress: Progress) -> str:
    """Describe a run that ended, with the time left."""
    from classgap.remedies.search.budget import format_seconds

    assert progress.cell is not None
    assert progress.outcome is not None
    settings = progress.cell.to_dict()
    outcome = progress.outcome
    if outcome.status == "finished":
        accuracy = outcome.found["metrics"].get("accuracy")
        ended = f"accuracy {100 * accuracy:.1f} %" if accuracy is not None else "finished"
    else:
        ended = f"{'cannot be run here' if outcome.status == 'impossible' else outcome.status}: {outcome.error}"
    title = f"{settings.get('method', 'erm')} on {settings['data']}, seed {progress.seed}: {ended}"
    left = "" if progress.seconds_left is None else f"; {format_seconds(progress.seconds_left)} left"
    return f"{progress.done} of {progress.total}: {title}{left}"
