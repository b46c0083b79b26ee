"""The search: baseline, objective, pruning, limits, and that it never sees test labels."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
import torch
from run_cases import short_refits
from search_cases import CONTEXT, LIMITS, SMALL, Recorder, config, outcomes, run_search, write_features

from classgap.audit import read_predictions
from classgap.audit.diagnosis.counterfactuals import stratified_folds
from classgap.data import load
from classgap.engine import RunDirectory
from classgap.engine.executors import Workers
from classgap.remedies.evaluation import Measured
from classgap.remedies.search import SearchConfig, SearchResult, TrialRecord, fix_by_training, search
from classgap.remedies.search.budget import parse_budget
from classgap.remedies.search.pruning import N_STARTUP_TRIALS, WARMUP
from classgap.remedies.search.records import best_by_method
from classgap.remedies.search.space import Space
from classgap.remedies.search.trained_sources import trained_samples
from classgap.remedies.stored_runs import open_runs

EPOCHS = 12


@pytest.fixture(scope="module", autouse=True)
def _short_refits() -> Iterator[None]:
    with short_refits():
        yield


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, workers: Workers) -> SearchResult:
    """One search of ten trials, with pruning, for all tests that only read it."""
    return run_search(tmp_path_factory.mktemp("search") / "out", workers, n_trials=10, epochs=EPOCHS)


@pytest.fixture(scope="module")
def unpruned(tmp_path_factory: pytest.TempPathFactory, workers: Workers) -> SearchResult:
    return run_search(tmp_path_factory.mktemp("unpruned") / "out", workers, n_trials=8, prune=False)


def stored(record: TrialRecord) -> dict[str, object]:
    return RunDirectory(record.run).stored_settings()


@pytest.mark.parametrize("text", ["", "2", "h", "2 h", "1x", "-1h", "0s", "1h1h", "2hours"])
def test_a_budget_needs_a_number_and_a_unit(text: str) -> None:
    with pytest.raises(ValueError, match="budget must be a time"):
        parse_budget(text)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"n_trials": None}, "budget"),
        ({"n_trials": 1}, "n_trials"),
        ({"val_fraction": 0.0}, "val_fraction"),
        ({"executor": "process:0"}, "process:0"),
        ({"executor": "threads:2"}, "threads:2"),
        ({"methods": ("erm", "mr3")}, "mr3"),
        ({"epochs": 0}, "epochs"),
    ],
)
def test_invalid_settings_are_named(tmp_path: Path, settings: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        config(tmp_path, **settings)


def test_the_first_trial_is_the_default_configuration(found: SearchResult) -> None:
    settings = stored(found.baseline)
    assert (settings["method"], settings["lr"], settings["weight_decay"]) == ("erm", 0.1, 5e-4)
    assert {each.change for each in found.baseline.estimate.values()} == {0.0}


def test_the_next_trials_are_promising_settings_and_then_the_sampler_chooses(found: SearchResult) -> None:
    named = Space.from_data(config(found.directory, n_trials=10, epochs=EPOCHS), load(SMALL["data"])).first_trials()
    assert [dict(each.params) for each in found.trials[1 : len(named) + 1]] == named
    assert named[0]["weight_decay"] > found.baseline.params["weight_decay"]
    assert dict(found.trials[len(named) + 1].params) not in named


@pytest.mark.parametrize(
    ("data", "methods", "first"),
    [("digits", None, "erm"), ("digits:imbalance=10", None, "logit-adjustment"), ("digits", ("focal",), "erm")],
)
def test_the_first_trials_suit_the_data(data: str, methods: tuple[str, ...] | None, first: str) -> None:
    space = Space.from_data(SearchConfig(data=data, n_trials=2, methods=methods), load(data))
    named = space.first_trials()
    assert named[0]["method"] == first
    assert {each["method"] for each in named} <= set(space.methods)
    for params in named:  # the sampler must be able to suggest them
        trial = optuna.trial.FixedTrial(params)
        assert space.suggest(trial) == params


def test_trials_are_runs_with_the_same_validation_samples(found: SearchResult) -> None:
    complete = [each for each in found.trials if each.status == "complete"]
    files = [read_predictions(RunDirectory(each.run).val_predictions) for each in complete]
    assert len(found.trials) == 10
    assert [each.run.name for each in found.trials] == [f"{number:03d}" for number in range(10)]
    assert all(stored(each)["val_fraction"] == 0.2 for each in found.trials)
    assert all(np.array_equal(each.index_N, files[0].index_N) for each in files)
    assert not any((each.run / "report.html").exists() for each in found.trials)
    assert len({json.dumps(dict(each.params)) for each in found.trials}) == 10


def test_the_objective_ranks_classes_on_other_validation_samples(found: SearchResult) -> None:
    """By hand: in each fold, the other folds' baseline accuracies pick the three hardest of ten classes."""
    before = read_predictions(RunDirectory(found.baseline.run).val_predictions)
    record = next(each for each in found.trials if each.number and each.status == "complete")
    after = read_predictions(RunDirectory(record.run).val_predictions)
    labels, rng, changes = before.targets_N, np.random.default_rng(SMALL.get("seed", 0)), []
    for _ in range(3):
        folds = stratified_folds(labels, rng.random(len(labels)), 5)
        for fold in range(5):
            accuracy = []
            for k in range(10):
                rows = (folds != fold) & (labels == k)
                accuracy.append(float(np.mean(before.predictions_N[rows] == k)))
            hardest = sorted(range(10), key=lambda k: (-accuracy[k], k))[-3:]
            gains = []
            for k in hardest:
                rows = (folds == fold) & (labels == k)
                gains.append(np.mean(after.predictions_N[rows] == k) - np.mean(before.predictions_N[rows] == k))
            changes.append(np.mean(gains))
    assert record.estimate["hard"].change == pytest.approx(np.mean(changes), abs=1e-12)


def test_trials_below_the_median_are_pruned_and_no_others(found: SearchResult) -> None:
    history: list[list[float]] = []
    pruned = 0
    for record in found.trials:
        lines = RunDirectory(record.run).read_metrics()
        values = [line["val_hard"] for line in lines if "val_hard" in line]
        first = max(1, int(WARMUP * EPOCHS))
        below = [
            epoch
            for epoch in range(first, min(len(values), EPOCHS - 1) + 1)
            if len(history) >= N_STARTUP_TRIALS
            and max(values[:epoch]) < np.median([each[epoch - 1] for each in history])
        ]
        if record.status == "pruned":
            pruned += 1
            assert below == [len(values)] == [record.n_epochs]
            assert not RunDirectory(record.run).finished()
        else:
            assert record.status == "complete"
            assert not below
            history.append(values)
    assert pruned > 0


def test_all_trials_finish_without_pruning(unpruned: SearchResult) -> None:
    assert {each.status for each in unpruned.trials} == {"complete"}


def test_the_best_trial_is_within_the_limits(tmp_path: Path) -> None:
    def trial(number: int, gain: float, excess: float) -> TrialRecord:
        estimate = {"hard": Measured(0.5, 0.5 + gain, 0.0)}
        return TrialRecord(number, tmp_path, {"method": "erm"}, "complete", estimate, excess, 1, 0.0, "")

    baseline, wild, modest = trial(0, 0.0, 0.0), trial(1, 0.3, 0.1), trial(2, 0.1, 0.0)
    assert SearchResult(tmp_path, "hard", (baseline, wild, modest), 0.0).best is modest
    assert SearchResult(tmp_path, "hard", (baseline, wild), 0.0).best is None


def test_limits_are_measured_on_validation_samples_and_guide_the_sampler(unpruned: SearchResult) -> None:
    from optuna.storages.journal import JournalFileBackend

    path = str(unpruned.directory / "journal.log")
    study = optuna.load_study(study_name="fix", storage=optuna.storages.JournalStorage(JournalFileBackend(path)))
    allowed = {"easy": 0.02, "medium": 0.01, "overall": 0.02}
    for record, trial in zip(unpruned.trials, study.trials, strict=True):
        losses = {name: -record.estimate[name].change for name in allowed}
        assert trial.constraints == {name: max(0.0, losses[name] - allowed[name]) for name in losses}
        assert record.excess == pytest.approx(sum(trial.constraints.values()))
    assert any(record.excess > 0 for record in unpruned.trials)


def test_test_labels_do_not_change_the_chosen_trial(tmp_path: Path, workers: Workers) -> None:
    results = []
    for seed in (0, 1):
        file = write_features(tmp_path / f"data{seed}.npz", test_seed=seed)
        wanted = config(tmp_path / f"out{seed}", data=f"features:{file}", n_trials=3)
        result = search(wanted, replace(CONTEXT, num_classes=6), LIMITS, workers=workers)
        results.append(
            (outcomes(result), fix_by_training(wanted, max_easy_loss=2, max_overall_loss=2, workers=workers))
        )
    (trials, fixed), (other_trials, other_fixed) = results
    assert trials == other_trials
    assert fixed.chosen == other_fixed.chosen
    assert [each.estimate for each in fixed.remedies] == [each.estimate for each in other_fixed.remedies]
    assert [each.change for each in fixed.remedies] != [each.change for each in other_fixed.remedies]


def test_the_fix_has_rows_of_trained_models(found: SearchResult, workers: Workers) -> None:
    wanted = config(found.directory, n_trials=10, epochs=EPOCHS)
    recorder = Recorder()
    fixed = fix_by_training(wanted, max_easy_loss=2, max_overall_loss=2, on_progress=recorder, workers=workers)
    rows = {each.name: each for each in fixed.remedies}
    method = next(each.method for each in found.ranked() if each.number)
    best = next(each for each in found.ranked() if each.number and each.method == method)
    assert recorder.events == []  # nothing was trained again
    assert fixed.model_name == "trials/000"
    assert rows[f"trained:{method}"].settings["lr"] == best.params["lr"]
    assert rows[f"trained:{method}"].settings["training_seconds"] == best.seconds > 0
    assert {"ensemble", "class-offsets", "mirror", "ensemble+mirror"} <= rows.keys()
    before, after = (read_predictions(each.run) for each in (found.baseline, best))
    change = np.mean(after.predictions_N == after.targets_N) - np.mean(before.predictions_N == before.targets_N)
    assert rows[f"trained:{method}"].change["overall"] == pytest.approx(change)
    assert "10 trials" in fixed.notices[0]
    json.dumps(fixed.to_dict())


def test_sources_of_trained_models_contain_networks_that_compute_their_scores(found: SearchResult) -> None:
    sources = {each.name: each for each in trained_samples(found).sources}
    best = next(iter(best_by_method(found)))
    run = open_runs([found.baseline.run])[0]
    images = torch.cat([batch.inputs for batch in run.preprocessing.batches(run.data.test, torch.device("cpu"))])
    assert len(sources["ensemble"].module.parts) > 1
    for name in (best, "ensemble", "ensemble+mirror"):
        with torch.no_grad():
            logits = sources[name].module(images)
        torch.testing.assert_close(logits, sources[name].test_logits_NK, atol=1e-4, rtol=1e-4)


def test_no_trial_starts_after_the_budget_and_running_ones_stop(tmp_path: Path, workers: Workers) -> None:
    recorder = Recorder()
    settings = {"n_trials": None, "budget": "5s", "epochs": 20, "prune": False}
    result = run_search(tmp_path / "out", workers, recorder, **settings)
    assert result.seconds >= 5
    late = [each for each in recorder.seen if each.trial.status == "running" and not each.seconds_left]
    assert len(late) <= 1  # the budget may end between the decision to start a trial and its start
    unfinished = [each for each in result.trials if each.status == "running"]
    assert len(unfinished) <= 1
    n_seen = len(recorder.seen)
    again = run_search(tmp_path / "out", workers, recorder, **settings)
    assert [each.number for each in again.trials] == [each.number for each in result.trials]
    assert len(recorder.seen) == n_seen  # no trial started or ended


def test_a_budget_shorter_than_the_baseline_is_an_error_that_more_time_repairs(
    tmp_path: Path, workers: Workers
) -> None:
    settings = {"epochs": 100_000, "n_trials": 2, "methods": ("erm",)}
    with pytest.raises(ValueError, match="budget 1s ended"):
        run_search(tmp_path / "out", workers, budget="1s", **settings)
    epochs = len(RunDirectory(tmp_path / "out" / "trials" / "000").read_metrics())
    spent = json.loads((tmp_path / "out" / "session.json").read_text())["seconds"]
    more = f"{int(spent) + 4}s"  # a busy machine spends more than the first budget
    with pytest.raises(ValueError, match=f"budget {more} ended"):
        run_search(tmp_path / "out", workers, budget=more, **settings)
    assert len(RunDirectory(tmp_path / "out" / "trials" / "000").read_metrics()) > epochs


def test_a_diverging_trial_is_dropped(tmp_path: Path, workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Space.settings

    def diverge(self: Space, params: Mapping[str, Any]) -> dict[str, Any]:
        return plain(self, params) | ({} if params == self.default() else {"lr": 1e30})

    monkeypatch.setattr(Space, "settings", diverge)
    result = run_search(tmp_path / "out", workers, n_trials=3)
    assert [each.status for each in result.trials] == ["complete", "diverged", "diverged"]
    assert "not finite" in result.trials[1].error


def test_a_baseline_that_fails_ends_the_search_with_its_reason(tmp_path: Path, workers: Workers) -> None:
    with pytest.raises(ValueError, match=r"baseline.*no-such-file\.pth"):
        run_search(tmp_path / "out", workers, model="checkpoint:no-such-file.pth:model=mlp")


@pytest.mark.parametrize("model", ["no-such-model", "mlp:no-such-option=1", "mlp:width=wide", "timm"])
def test_an_invalid_model_starts_no_search(tmp_path: Path, model: str) -> None:
    with pytest.raises(ValueError, match=f"model '?{model.split(':')[0]}"):
        run_search(tmp_path / "out", None, model=model)
    assert not (tmp_path / "out").exists()


def test_another_search_in_the_directory_is_an_error(found: SearchResult, workers: Workers) -> None:
    with pytest.raises(ValueError, match=r"epochs \(stored 12, now 7\)"):
        run_search(found.directory, workers, n_trials=10, epochs=7)


def test_missing_extras_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ValueError, match=r"classgap\[tune\]"):
        run_search(tmp_path / "out", None)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"classgap\[cluster\]"):
        run_search(tmp_path / "out", None, executor="dask:tcp://127.0.0.1:9")
    assert not (tmp_path / "out").exists()


def test_images_may_choose_an_augmentation_and_long_runs_an_average() -> None:
    tiny = Space.from_data(SearchConfig(data="digits", n_trials=2, epochs=3), load("digits"))
    long = Space.from_data(SearchConfig(data="digits", n_trials=2, max_steps=600), load("digits"))
    photos = replace(load("digits"), shape=(3, 32, 32), allow_flip=True)
    color = Space.from_data(SearchConfig(data="digits", n_trials=2), photos)
    assert (tiny.augments, tiny.ema_decays) == (("none",), ())
    assert long.ema_decays == (0.99,)
    assert color.augments == ("crop-flip", "none", "auto-augment", "rand-augment")
    assert "logit-adjustment" not in tiny.methods
    tail = Space.from_data(SearchConfig(data="digits:imbalance=10", n_trials=2), load("digits:imbalance=10"))
    assert "logit-adjustment" in tail.methods
