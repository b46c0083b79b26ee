"""Cross-validation of the best trials: out-of-fold scores, networks trained on all samples, interruptions."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from run_cases import short_refits
from search_cases import CONTEXT, LIMITS, config, run_search, write_features

from classgap.audit import read_predictions
from classgap.data import load
from classgap.engine import RunDirectory, TrainingInterrupted
from classgap.engine.executors import ProcessExecutor, Workers
from classgap.remedies.results import FixResult
from classgap.remedies.search import SearchConfig, SearchResult, fix_by_training, search
from classgap.remedies.search.finalists import affordable, fold_count
from classgap.remedies.search.records import PREFIX
from classgap.remedies.search.trained import describe_choice
from classgap.remedies.search.trained_sources import cross_validated_samples

FOLDED: dict[str, Any] = {"cross_validate": True, "n_trials": 3, "methods": ("erm", "label-smoothing"), "epochs": 4}
RULE: dict[str, Any] = {"max_easy_loss": 2, "max_overall_loss": 2}


@pytest.fixture(scope="module", autouse=True)
def _short_refits() -> Iterator[None]:
    with short_refits():
        yield


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, workers: Workers) -> SearchResult:
    return run_search(tmp_path_factory.mktemp("folds") / "out", workers, **FOLDED)


def estimates(result: FixResult) -> list[tuple[str, Any]]:
    return [(each.name, each.estimate) for each in result.remedies]


def test_training_samples_are_held_out_once_and_the_last_runs_hold_out_none(found: SearchResult) -> None:
    train = load("digits:fraction=0.3").train
    assert found.finalists[0].record.number == 0
    assert 1 <= len(found.finalists) - 1 <= 2
    for each in found.finalists:
        files = [read_predictions(RunDirectory(run).val_predictions) for run in each.folds]
        held_out = np.concatenate([file.index_N for file in files])
        assert each.folds[0] == each.record.run
        assert len(each.folds) == 5
        assert len(set(held_out.tolist())) == len(held_out) > 0.9 * len(train)  # 25 of 27 of each class
        settings = [RunDirectory(run).stored_settings() for run in (*each.folds, each.refit)]
        assert [each["val_fraction"] for each in settings] == [0.2] * 5 + [0]
        assert len({(each["method"], each["lr"], each["weight_decay"], each["seed"]) for each in settings}) == 1


def test_scores_are_those_of_networks_that_did_not_see_the_sample(found: SearchResult) -> None:
    samples = cross_validated_samples(found)
    sources = {each.name: each for each in samples.sources}
    names = [samples.sources[0].name, *(f"{PREFIX}{each.record.method}" for each in found.finalists[1:])]
    for name, each in zip(names, found.finalists, strict=True):
        files = [read_predictions(RunDirectory(run).val_predictions) for run in each.folds]
        logits = np.concatenate([np.asarray(file.logits_NK, dtype=np.float32) for file in files])
        targets = np.concatenate([file.targets_N for file in files])
        order = np.argsort(np.concatenate([file.index_N for file in files]))
        scores = sources[name].logits_NK.numpy()
        assert np.array_equal(samples.fit.targets_N, targets[order])
        np.testing.assert_allclose(scores, logits[order], atol=1e-4)
        final = read_predictions(each.refit)
        assert sources[name].test_logits_NK is not None
        order = np.argsort(load("digits:fraction=0.3").test.index.numpy(), kind="stable")
        tested = sources[name].test_logits_NK.numpy()[order]
        assert np.mean(tested.argmax(axis=1) == final.predictions_N) > 0.99


def test_the_fix_contains_the_network_trained_on_all_samples(found: SearchResult) -> None:
    sources = {each.name: each for each in cross_validated_samples(found).sources}
    name = f"{PREFIX}{found.finalists[1].record.method}"
    assert dict(sources[name].details)["run"] == str(found.finalists[1].refit)
    test = load("digits:fraction=0.3").test
    assert sources[name].test_logits_NK is not None
    assert len(sources[name].test_logits_NK) == len(test)
    assert {"mirror", f"{name}+mirror"} <= sources.keys()


def test_the_proof_starts_from_plain_training_on_all_samples(found: SearchResult, workers: Workers) -> None:
    messages: list[str] = []
    wanted = config(found.directory, **FOLDED)
    fixed = fix_by_training(wanted, **RULE, progress=messages.append, workers=workers)
    plain = read_predictions(found.finalists[0].refit)
    assert not [each for each in messages if "run" in each]  # nothing was trained again
    assert fixed.n_fit == len(cross_validated_samples(found).fit)
    assert any("5 folds" in each for each in fixed.notices)
    if fixed.proof is not None:
        assert fixed.proof["overall"].before == pytest.approx(np.mean(plain.predictions_N == plain.targets_N))


def test_test_labels_do_not_change_the_choice(tmp_path: Path, workers: Workers) -> None:
    results = []
    for seed in (0, 1):
        file = write_features(tmp_path / f"data{seed}.npz", test_seed=seed)
        wanted = config(tmp_path / f"out{seed}", data=f"features:{file}", **FOLDED)
        results.append(fix_by_training(wanted, **RULE, workers=workers))
    fixed, other = results
    assert fixed.chosen == other.chosen
    assert estimates(fixed) == estimates(other)
    assert [each.change for each in fixed.remedies] != [each.change for each in other.remedies]


def test_an_interrupted_cross_validation_continues(found: SearchResult, tmp_path: Path, workers: Workers) -> None:
    def interrupt(message: str) -> None:
        if "run 3" in message:
            os.kill(os.getpid(), signal.SIGTERM)

    wanted = config(tmp_path / "out", **FOLDED)
    with pytest.raises(TrainingInterrupted, match="continue"):
        search(wanted, CONTEXT, LIMITS, None, workers, interrupt)
    again = search(wanted, CONTEXT, LIMITS, None, workers)
    assert [each.record.number for each in again.finalists] == [each.record.number for each in found.finalists]
    ours, theirs = (cross_validated_samples(each).sources for each in (again, found))
    for mine, other in zip(ours, theirs, strict=True):
        assert torch.equal(mine.logits_NK, other.logits_NK)
        assert torch.equal(mine.test_logits_NK, other.test_logits_NK)


class DyingWorkers(ProcessExecutor):
    """Kill the process of chosen runs as often as ``deaths`` says."""

    def __init__(self, deaths: dict[str, int]) -> None:
        super().__init__(1)
        self.deaths = deaths

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        future = super().submit(fn, *args, **kwargs)
        name = Path(args[0].settings["out"]).relative_to(args[0].session.parent).as_posix()
        if self.deaths.get(name, 0):
            self.deaths[name] -= 1
            (pid,) = self._pools[0]._processes
            os.kill(pid, signal.SIGKILL)
        return future


def without_runs(found: SearchResult, out: Path, *names: str) -> SearchConfig:
    """Copy a search, except some runs of its cross-validation."""
    shutil.copytree(found.directory, out)
    for name in names:
        shutil.rmtree(out / name)
    return config(out, **FOLDED)


def test_a_run_whose_process_died_is_tried_again(found: SearchResult, tmp_path: Path) -> None:
    wanted = without_runs(found, tmp_path / "out", "folds/000-1")
    with DyingWorkers({"folds/000-1": 1}) as executor:
        again = search(wanted, CONTEXT, LIMITS, None, Workers(executor, lambda: 1))
        assert executor.deaths == {"folds/000-1": 0}
    assert not again.failures
    ours, theirs = (cross_validated_samples(each).sources[0] for each in (again, found))
    assert torch.equal(ours.logits_NK, theirs.logits_NK)


@pytest.mark.parametrize("name", ["the baseline", "trained:"])
def test_a_run_whose_process_died_twice_is_named(
    found: SearchResult, tmp_path: Path, workers: Workers, name: str
) -> None:
    number = 0 if name == "the baseline" else found.finalists[1].record.number
    died, later = f"folds/{number:03d}-2", f"folds/{number:03d}-3"
    wanted = without_runs(found, tmp_path / "out", died, later)
    with DyingWorkers({died: 2}) as executor:
        result = search(wanted, CONTEXT, LIMITS, None, Workers(executor, lambda: 1))
    assert result.failures.keys() == {number}
    notices = describe_choice(result)  # in the output and the JSON file
    notice = next(each for each in notices if died in each)
    assert notice.startswith(name)
    assert "died 2 times" in notice
    assert not (wanted.directory / later).exists()  # it would be of no use
    others = len(found.finalists) - 2 if number else 0
    assert any("5 folds" in each for each in notices) == (others > 0)
    assert any("held-out split" in each for each in notices) == (others == 0)

    again = search(wanted, CONTEXT, LIMITS, None, workers)
    assert not again.failures
    assert len(again.finalists) == len(found.finalists)


@pytest.mark.parametrize(("fraction", "folds"), [(0.2, 5), (0.1, 5), (0.3, 3), (0.5, 2), (0.6, 1)])
def test_folds_follow_from_the_held_out_fraction(fraction: float, folds: int) -> None:
    wanted = SearchConfig(data="digits", budget="1h", val_fraction=fraction)
    assert fold_count(wanted) == folds
    assert fold_count(replace(wanted, cross_validate=False)) == 1
    assert (affordable(wanted, 1.0, 1) > 0) == (folds > 1)


def test_a_short_budget_leaves_the_choice_to_the_held_out_samples(tmp_path: Path, workers: Workers) -> None:
    """A baseline of a minute, in a budget of two: no time for ten more runs."""
    wanted = config(tmp_path / "out", **(FOLDED | {"budget": "2m"}))
    assert affordable(wanted, 60.0, 1) == 0
    assert affordable(wanted, 60.0, 100) == 2
    assert affordable(replace(wanted, budget=None), 60.0, 1) == 2
