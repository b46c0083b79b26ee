"""Output of ``classgap train`` before and after training."""

from __future__ import annotations

import os
from typing import NoReturn

from rich.console import Console
from rich.table import Table
from rich.text import Text

from classgap.cli.parser import Terminated
from classgap.engine import Run, RunDirectory, TrainConfig, TrainingInterrupted, TrainResult
from classgap.engine.checks import training_warnings
from classgap.engine.defaults import resolve_config
from classgap.engine.train import choose_device, load_dataset
from classgap.report.formatting import printable


def is_rank_zero() -> bool:
    """Return True on global rank 0."""
    return "TORCHELASTIC_RUN_ID" not in os.environ or os.environ.get("RANK", "0") == "0"


def raise_interrupted(interruption: TrainingInterrupted) -> NoReturn:
    """End the command as interrupted; global rank 0 reports how to resume the run.

    Raises:
        KeyboardInterrupt: If the signal was SIGINT.
        Terminated: If it was another one, and without a message on other ranks.
    """
    if not is_rank_zero():
        raise Terminated from None
    raise (KeyboardInterrupt if interruption.signal == "SIGINT" else Terminated)(str(interruption)) from None


def print_plan(config: TrainConfig) -> None:
    """Print all settings and the size of a run, without training or writing files."""
    data = load_dataset(config.data)
    complete_config = resolve_config(config, data)
    run = Run(complete_config, data, choose_device(config.device))
    console = Console()
    console.print("Settings")
    table = Table(show_header=False)
    for name, value in complete_config.to_dict().items():
        if name != "out":
            style = None if getattr(config, name) == value else "dim"
            table.add_row(name, Text(printable(str(value))), style=style)  # Text: brackets in a path are not markup
    console.print(table)
    n_validation = 0 if run.validation is None else len(run.validation)
    n_parameters = sum(each.numel() for each in run.model.parameters())
    stages = ", ".join(stage.name for stage in run.stages)
    where = f"in stage {run.stage.name} (stages: {stages})" if len(run.stages) > 1 else "in total"
    for line in (
        f"Samples:    {len(run.train):,} training, {n_validation:,} validation, {len(data.test):,} test",
        f"Classes:    {data.num_classes:,}",
        f"Parameters: {n_parameters:,}",
        f"Steps:      {len(run.batches):,} per epoch, {run.updates:,} {where}",
        f"Directory:  {printable(str(complete_config.out))}",
    ):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    for note in (*data.notes, *training_warnings(run)):
        print(printable(note))
    print("Dry run: nothing was trained.")


def print_result(result: TrainResult) -> None:
    """Print the audit of a finished run and the location of its files."""
    from classgap.audit import Audit
    from classgap.report import print_audit

    directory = RunDirectory(result.run_dir)
    shown = printable(str(result.run_dir))
    if result.was_finished:
        final = directory.read_metrics()[-1]
        print(
            f"The run in {shown} is finished: test accuracy {100 * final['test_accuracy']:.1f} %, hard third "
            f"{100 * final['test_hard']:.1f} %. Use --overwrite to start over."
        )
        return
    if not directory.audit.exists():
        print(f"Wrote {shown}. Run `classgap audit {shown}` for all classes.")
        return
    print_audit(Audit.load(directory.audit))
    print(f"Wrote {shown}. See {printable(str(directory.report))} for all classes.")
