"""The Optuna study of a search: deterministic, and continued after any interruption."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from classgap.remedies.search.directory import SearchDirectory
from classgap.remedies.search.optional import quiet_optuna, require_optuna
from classgap.remedies.search.space import Space
from classgap.remedies.search.trial import TrialOutcome

N_STARTUP_TRIALS = 8  # the first ones and random ones, before a model of the good settings chooses


@contextmanager
def name_damage(journal: Path) -> Iterator[None]:
    """Name the journal in errors about its records."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # optuna applies the records without checking them
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise ValueError(f"{journal} is damaged ({reason}); choose another --study-dir.") from None


@dataclass(frozen=True, eq=False)  # hashable, unlike its parameters
class Asked:
    """A trial to run.

    Attributes:
        number: Number of its run directory; 0 is the baseline. Optuna's own number differs after an interruption.
        params: Its parameters.
        trial: The Optuna trial.
    """

    number: int
    params: Mapping[str, Any]
    trial: Any


class TrialStudy:
    """Ask for parameters, and record results in the journal.

    Each trial is drawn with its own seed, from the trials that finished before. With one worker the parameters are
    therefore the same with and without interruptions.

    Args:
        directory: Where the journal is.
        space: Parameters to choose.
        seed: Seed of the search.
    """

    def __init__(self, directory: SearchDirectory, space: Space, seed: int) -> None:
        optuna = require_optuna()
        journal = optuna.storages.journal
        self._space, self._seed, self._journal = space, seed, directory.journal
        self._first = space.first_trials()
        path = str(directory.journal)
        with name_damage(directory.journal), quiet_optuna():
            # The lock needs no symbolic links, which Windows restricts.
            backend = journal.JournalFileBackend(path, lock_obj=journal.JournalFileOpenLock(path))
            storage = optuna.storages.JournalStorage(backend)
            self.study = optuna.create_study(
                storage=storage, study_name="fix", direction="maximize", load_if_exists=True
            )
            self._recover()

    @property
    def count(self) -> int:
        """Number of trials that were started or are queued, the baseline included."""
        return len({each.user_attrs["number"] for each in self.study.trials if "number" in each.user_attrs})

    @property
    def has_waiting(self) -> bool:
        """Whether a trial is queued."""
        return any(each.state.name == "WAITING" for each in self.study.trials)

    def history(self) -> tuple[tuple[float, ...], ...]:
        """Return the watched metric per epoch of the completed trials."""
        return tuple(tuple(each.user_attrs["values"]) for each in self.study.trials if each.state.name == "COMPLETE")

    def ask(self) -> Asked:
        """Return a queued trial, or a new one: first the settings that the space names, then those of the sampler."""
        optuna = require_optuna()
        with name_damage(self._journal), quiet_optuna():
            next_number = self.count
            if 1 <= next_number <= len(self._first) and not self.has_waiting:
                self.study.enqueue_trial(self._first[next_number - 1])
            self.study.sampler = optuna.samplers.TPESampler(
                seed=(self._seed * 1_000_003 + next_number) % 2**32,
                n_startup_trials=N_STARTUP_TRIALS,
                multivariate=True,
                group=True,
            )
            trial = self.study.ask()
            params = self._space.suggest(trial)
            if "number" not in trial.user_attrs:
                trial.set_user_attr("number", next_number)  # last: a trial without it has not started
        return Asked(trial.user_attrs["number"], params, trial)

    def complete(self, asked: Asked, outcome: TrialOutcome, value: float, found: Mapping[str, Any]) -> None:
        """Record a finished trial.

        Args:
            asked: The trial.
            outcome: What the worker returned.
            value: Its objective.
            found: Values to store; ``excess`` has the amounts by which it exceeds the limits.
        """
        self._report(asked, outcome)
        for name, excess in found["excess"].items():
            asked.trial.set_constraint(name, excess)
        for name, each in found.items():
            asked.trial.set_user_attr(name, each)
        with quiet_optuna():
            self.study.tell(asked.trial, value)

    def drop(self, asked: Asked, outcome: TrialOutcome) -> None:
        """Record a trial that was pruned, diverged or failed."""
        states = require_optuna().trial.TrialState
        self._report(asked, outcome)
        asked.trial.set_user_attr("status", outcome.status)
        if outcome.error:
            asked.trial.set_user_attr("error", outcome.error)
        with quiet_optuna():
            # The sampler avoids the settings of pruned trials; it ignores failed ones.
            failed = outcome.status == "failed"
            self.study.tell(asked.trial, state=states.FAIL if failed else states.PRUNED)

    def _report(self, asked: Asked, outcome: TrialOutcome) -> None:
        asked.trial.set_user_attr("seconds", outcome.seconds)
        asked.trial.set_user_attr("values", list(outcome.values))
        if outcome.values:  # each record waits for the disk; the sampler reads the last epoch only
            asked.trial.report(outcome.values[-1], len(outcome.values))

    def _recover(self) -> None:
        """Queue the baseline, and the trials that an earlier process left running, with their run directories."""
        states = require_optuna().trial.TrialState
        trials = self.study.trials
        queued = {each.user_attrs.get("number") for each in trials if each.state == states.WAITING}
        for each in trials:
            if each.state != states.RUNNING:
                continue
            number = each.user_attrs.get("number")
            # Queued first: if this process is killed too, the trial is not lost.
            if number is not None and number not in queued:
                params = each.system_attrs.get("fixed_params", each.params)
                self.study.enqueue_trial(params, user_attrs={"number": number})
                queued.add(number)
            self.study.tell(each.number, state=states.FAIL)
        done = {each.user_attrs.get("number") for each in trials if each.state == states.COMPLETE}
        if 0 not in queued | done:
            self.study.enqueue_trial(self._space.default(), user_attrs={"number": 0})
