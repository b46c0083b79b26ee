"""Lines of progress of a search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from classgap.cli.fix_search import describe_trial
from classgap.remedies.evaluation import Measured
from classgap.remedies.search import SearchProgress, TrialRecord

PARAMS = {"method": "mr2", "mr2:strength": 0.1, "lr": 0.05, "weight_decay": 5e-4}


def record(number: int = 3, status: str = "complete", **changes: Any) -> TrialRecord:
    estimate = {
        name: Measured(0.5, 0.5 + gain, 0.01) for name, gain in (("hard", 0.1), ("easy", 0.0), ("overall", 0.05))
    }
    values = {"estimate": estimate, "excess": 0.0, "n_epochs": 7, "seconds": 60.0, "error": ""} | changes
    return TrialRecord(number=number, run=Path("run"), params=PARAMS, status=status, **values)


def test_a_line_has_settings_accuracies_the_best_trial_and_the_time_left() -> None:
    line = describe_trial(SearchProgress(record(), record(2), "hard", 20, 4320.0))
    for part in ("trial 3 of 19", "mr2, strength 0.1, lr 0.05", "hard 60.0 %", "easy 50.0 %", "overall 55.0 %"):
        assert part in line
    assert "best: trial 2, hard third +10.0" in line
    assert "1h12m left" in line


@pytest.mark.parametrize(
    ("trial", "part"),
    [
        (record(0), "baseline"),
        (record(status="pruned"), "after 7 epochs"),
        (record(status="diverged"), "not finite"),
        (record(status="failed", error="no memory"), "failed: no memory"),
        (record(excess=0.01), "exceeds the limits"),
    ],
)
def test_other_outcomes_are_named(trial: TrialRecord, part: str) -> None:
    assert part in describe_trial(SearchProgress(trial, None, "hard", None, None))
