"""The part of ``classgap fix`` that trains: a search with a line of progress per trial."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from classgap.remedies.search.budget import format_seconds
from classgap.remedies.search.space import describe_params

if TYPE_CHECKING:
    from classgap.remedies import FixResult
    from classgap.remedies.search import SearchConfig, SearchProgress, TrialRecord

MEASURES = {"hard": "hard third", "worst": "worst tenth", "balanced": "balanced", "cost": "cost"}


def run_search(config: SearchConfig, **arguments: Any) -> FixResult:
    """Search and fix; see :func:`classgap.remedies.search.fix_by_training`.

    Args:
        config: Settings of the search.
        arguments: Goal, limits, costs, priors and confidence level.

    Raises:
        KeyboardInterrupt: If Ctrl-C stopped the search, which was saved.
        Terminated: If SIGTERM did.
    """
    from rich.console import Console
    from rich.text import Text

    from classgap.cli.training_output import raise_interrupted
    from classgap.engine import TrainingInterrupted
    from classgap.remedies.search import fix_by_training
    from classgap.report.formatting import printable

    console = Console(stderr=True)
    started = False
    with console.status("Starting workers") as status:

        def show(progress: SearchProgress) -> None:
            nonlocal started
            if not started:  # not earlier: an invalid argument starts no search
                started = True
                line = f"Searching in {config.directory}; rerun the command to continue."
                console.print(Text(printable(line)), soft_wrap=True)
            if progress.trial.status == "running":
                status.update(Text(printable(_title(progress))))
            else:
                console.print(Text(printable(describe_trial(progress))), soft_wrap=True)

        try:
            return fix_by_training(config, on_progress=show, progress=status.update, **arguments)
        except TrainingInterrupted as interruption:
            raise_interrupted(interruption)


def describe_trial(progress: SearchProgress) -> str:
    """Describe a trial that ended: settings, validation accuracy, the best trial so far, and the time left."""
    trial, goal = progress.trial, progress.goal
    parts = [f"{_title(progress)}: {_outcome(trial, goal)}"]
    if progress.best is not None and trial.number:
        change = 100 * progress.best.estimate[goal].change
        parts.append(f"best: trial {progress.best.number}, {MEASURES[goal]} {change:+.1f}")
    if progress.seconds_left is not None:
        parts.append(f"{format_seconds(progress.seconds_left)} left")
    return "; ".join(parts)


def _title(progress: SearchProgress) -> str:
    trial = progress.trial
    total = "" if progress.n_trials is None else f" of {progress.n_trials - 1}"
    name = f"trial {trial.number}{total}" if trial.number else "baseline"
    return f"{name} ({describe_params(trial.params)})"


def _outcome(trial: TrialRecord, goal: str) -> str:
    if trial.status == "failed":
        return f"failed: {trial.error}"
    if trial.status == "diverged":
        return "stopped, the loss is not finite"
    if trial.status == "pruned":
        return f"stopped after {trial.n_epochs} epochs, below the median of the others"
    shown = [name for name in dict.fromkeys((goal, "hard", "easy", "overall")) if name in trial.estimate]
    values = [f"{name} {_format(name, trial.estimate[name].after)}" for name in shown]
    return "validation " + ", ".join(values) + (" (exceeds the limits)" if trial.excess > 0 else "")


def _format(name: str, value: float) -> str:
    return f"{-value:.3f}" if name == "cost" else f"{100 * value:.1f} %"  # costs are stored as minus the mean cost
