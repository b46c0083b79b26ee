"""What the terminal says about a training before and after it."""

from __future__ import annotations

import os

from rich.console import Console
from rich.table import Table
from rich.text import Text

from classgap.engine import Run, RunDirectory, TrainConfig, TrainingInterrupted, TrainResult
from classgap.engine.checks import training_warnings
from classgap.engine.defaults import resolve_config
from classgap.engine.train import choose_device, load_dataset
from classgap.report.formatting import printable


def is_first() -> bool:
    """Whether this is the process that tells: of those that ``torchrun`` started, the first, in or out of a group."""
    return "TORCHELASTIC_RUN_ID" not in os.environ or os.environ.get("RANK", "0") == "0"


def tell_stopped(stopped: TrainingInterrupted) -> None:
    """That a run was asked to stop, and how it goes on.

    Raises:
        KeyboardInterrupt: with those words, if it was asked by Ctrl-C: then the command was, too.
    """
    if is_first():
        if stopped.signal == "SIGINT":
            raise KeyboardInterrupt(str(stopped))
        print(f"classgap: {stopped}")


def tell_plan(config: TrainConfig) -> None:
    """All settings, and what they amount to; nothing is written."""
    data = load_dataset(config.data)
    complete_config = resolve_config(config, data)
    run = Run(complete_config, data, choose_device(config.device))
    console = Console()
    table = Table(title="Settings", show_header=False, title_justify="left")
    for name, value in complete_config.to_dict().items():
        if name != "out":
            style = None if getattr(config, name) == value else "dim"
            table.add_row(name, Text(printable(str(value))), style=style)  # plain: brackets in a path are no markup
    console.print(table)
    held = 0 if run.validation is None else len(run.validation)
    parameters = sum(each.numel() for each in run.model.parameters())
    stages = ", ".join(stage.name for stage in run.stages)
    where = f"in stage {run.stage.name} of {stages}" if len(run.stages) > 1 else "in all"
    console.print(
        f"{len(run.train):,} training, {held:,} validation and {len(data.test):,} test samples of {data.num_classes} "
        f"classes; {parameters:,} parameters; {len(run.batches):,} updates an epoch, {run.updates:,} {where}.",
        highlight=False,
        markup=False,
    )
    for remark in (*data.remarks, *training_warnings(run)):
        print(printable(remark))
    place = printable(str(complete_config.out))
    print(f"It would be stored in {place}. Nothing was trained.")


def tell_trained(result: TrainResult) -> None:
    """The audit of a finished run, and where everything is."""
    from classgap.audit import Audit
    from classgap.report import print_audit

    directory = RunDirectory(result.run_dir)
    place = printable(str(result.run_dir))
    if result.was_finished:
        final = directory.read_metrics()[-1]
        print(
            f"The run in {place} is finished: test accuracy {final['test_accuracy']:.1%}, hard third "
            f"{final['test_hard']:.1%}. --overwrite starts it over."
        )
        return
    if not directory.audit.exists():
        print(f"Wrote {place}; classgap audit {place} shows every class.")
        return
    print_audit(Audit.load(directory.audit))
    print(f"Wrote {place}; {printable(str(directory.report))} shows every class.")
