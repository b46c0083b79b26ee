"""Records of a search: its trials and their changes against the baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from classgap.remedies.evaluation import Measured
from classgap.remedies.selection import Limits

if TYPE_CHECKING:
    from classgap.remedies.search.directory import SearchDirectory

PREFIX = "trained:"


@dataclass(frozen=True)
class TrialRecord:
    """One trial.

    Attributes:
        number: Its number; 0 is the baseline.
        run: Its run directory.
        params: Its parameters.
        status: "running", "complete", "pruned", "diverged" or "failed".
        estimate: Measure → accuracy on validation samples, before (the baseline) and after.
        excess: By how much it exceeds the limits on the losses of easy classes and overall.
        n_epochs: Epochs that were trained.
        seconds: Training time.
        error: Reason of a failure.
    """

    number: int
    run: Path
    params: Mapping[str, Any]
    status: str
    estimate: Mapping[str, Measured]
    excess: float
    n_epochs: int
    seconds: float
    error: str

    @classmethod
    def from_trial(cls, trial: Any, directory: SearchDirectory) -> TrialRecord:
        """Read a trial of the Optuna study."""
        attrs, number = trial.user_attrs, trial.user_attrs["number"]
        return cls(
            number,
            directory.run(number),
            trial.params,
            {"COMPLETE": "complete", "PRUNED": attrs.get("status", "pruned"), "FAIL": "failed"}.get(
                trial.state.name, "running"
            ),
            {name: Measured(*values) for name, values in attrs.get("estimate", {}).items()},
            sum(attrs.get("excess", {}).values()),
            len(attrs.get("values", ())),
            attrs.get("seconds", 0.0),
            attrs.get("error", ""),
        )

    @property
    def method(self) -> str:
        """Name of the training method."""
        return str(self.params["method"])


@dataclass(frozen=True)
class Finalist:
    """A trial that was cross-validated.

    Attributes:
        record: The trial.
        folds: Runs with its settings that hold out different samples; the first is the trial.
        refit: Run with its settings on all training samples.
    """

    record: TrialRecord
    folds: tuple[Path, ...]
    refit: Path


@dataclass(frozen=True)
class SearchResult:
    """Result of a search.

    Attributes:
        directory: Directory of the search.
        goal: Measure that was searched for.
        trials: All trials that were started.
        seconds: Time spent.
        finalists: The baseline and the best trials, cross-validated; empty if the budget was too short.
        seconds_short: Budget that would have allowed the cross-validation, 0 if there was one.
        failures: Number of a trial → the run of its cross-validation that failed, and the reason.
    """

    directory: Path
    goal: str
    trials: tuple[TrialRecord, ...]
    seconds: float
    finalists: tuple[Finalist, ...] = ()
    seconds_short: float = 0.0
    failures: Mapping[int, str] = field(default_factory=dict)

    @property
    def baseline(self) -> TrialRecord:
        """The trial with default settings."""
        return self.trials[0]

    def ranked(self) -> list[TrialRecord]:
        """Return the completed trials, best first: within the limits before the others, then by the goal."""
        complete = [each for each in self.trials if each.status == "complete"]
        return sorted(complete, key=lambda each: (each.excess, -each.estimate[self.goal].change, each.number))

    @property
    def best(self) -> TrialRecord | None:
        """The best trial within the limits; ``None`` if none is better than the baseline."""
        first = self.ranked()[0]
        return first if first.excess == 0 and first.estimate[self.goal].change > 0 else None


@dataclass(frozen=True)
class SearchProgress:
    """State of a running search after a trial has started or ended.

    Attributes:
        trial: The trial.
        best: The best one so far, within the limits.
        goal: Measure that is searched for.
        n_trials: Limit of the number of trials.
        seconds_left: Remaining time.
    """

    trial: TrialRecord
    best: TrialRecord | None
    goal: str
    n_trials: int | None
    seconds_left: float | None


OnProgress = Callable[[SearchProgress], None]


def best_by_method(result: SearchResult) -> dict[str, TrialRecord]:
    """Return the best completed trial of each training method, without the baseline."""
    found: dict[str, TrialRecord] = {}
    for each in result.ranked():
        if each.number:
            found.setdefault(f"{PREFIX}{each.method}", each)
    return found


def excess_of(estimate: Mapping[str, Measured], limits: Limits | None) -> dict[str, float]:
    """Return by how much an estimate exceeds each limit, 0 if it does not.

    >>> same, worse = Measured(0.9, 0.9, 0.0), Measured(0.9, 0.8, 0.0)
    >>> estimate = {"easy": worse, "medium": same, "overall": same}
    >>> {name: round(each, 3) for name, each in excess_of(estimate, Limits(0.02, 0)).items()}
    {'easy': 0.08, 'medium': 0.0, 'overall': 0.0}
    """
    if limits is None:
        return dict.fromkeys(Limits().by_measure, 0.0)
    return {name: max(0.0, -estimate[name].change - limit) for name, limit in limits.by_measure.items()}
