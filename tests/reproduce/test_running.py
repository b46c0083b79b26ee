"""Plans that run: stored runs are used, and a killed process continues."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from recipe_cases import MOONS, moons_plan

from classgap.cli.main import main
from classgap.engine.executors import Workers
from classgap.report import render_html, reproduction_text
from classgap.report.reproduction_files import reproduction_markdown, write_reproduction_csv
from classgap.reproduce.cells import make_plan
from classgap.reproduce.metrics import measure_run
from classgap.reproduce.results import RecipeResult, collect
from classgap.reproduce.running import Progress, run_plan
from classgap.reproduce.schema import Recipe
from classgap.reproduce.store import ResultStore
from classgap.reproduce.task import Outcome


class Here(Executor):
    """Run tasks in this process."""

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        future: Future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


HERE = Workers(Here(), lambda: 1)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[ResultStore, list[Progress]]:
    store, seen = ResultStore(tmp_path_factory.mktemp("store")), []
    assert run_plan(moons_plan(), store, workers=HERE, on_progress=seen.append) == {}
    return store, seen


@pytest.fixture(scope="module")
def result(stored: tuple[ResultStore, list[Progress]]) -> RecipeResult:
    return collect(moons_plan(), stored[0])


def test_each_run_is_stored_once(stored: tuple[ResultStore, list[Progress]]) -> None:
    store, seen = stored
    assert len(store.keys()) == 4  # two methods, two seeds; the baseline is one of the methods
    assert [each.done for each in seen] == [0, 1, 2, 3, 4]
    assert seen[-1].seconds_left == 0
    assert not list((store.path / ".work").iterdir())
    entry = store.get(store.keys()[0])
    assert entry is not None
    assert entry.keys() >= {"settings", "version", "code", "environment", "metrics", "classes", "seconds"}
    assert len(entry["classes"]["accuracy"]) == 2


def test_stored_runs_are_used(stored: tuple[ResultStore, list[Progress]]) -> None:
    store, seen = stored[0], []
    run_plan(moons_plan(), store, executor="process:1", on_progress=seen.append)  # starts no process
    assert [(each.done, each.total) for each in seen] == [(4, 4)]


def test_numbers_are_those_of_the_store(stored: tuple[ResultStore, list[Progress]], result: RecipeResult) -> None:
    store, plan = stored[0], moons_plan()
    balanced = next(each for each in result.entries if (each.row, each.column) == ("LA", "balanced"))
    cell = next(each.cell for each in plan.entries if each.row == "LA")
    expected = [100 * store.find(cell, 2)[seed]["metrics"]["balanced"] for seed in (0, 1)]
    assert list(balanced.values) == pytest.approx(expected)
    assert balanced.paper_change == 20.0
    assert {each.verdict for each in result.entries if each.row == "CE"} == {"baseline"}


def test_pages_show_paper_and_ours(result: RecipeResult, tmp_path: Path) -> None:
    text, page = reproduction_text(result), render_html(result)
    assert "80" in text
    assert "(2)" in text
    assert "Two &lt;moons&gt;" in page
    assert "Two <moons>" not in page
    assert "Two moons \\| rare" in reproduction_markdown(result)
    write_reproduction_csv([result], tmp_path / "numbers.csv")
    assert len((tmp_path / "numbers.csv").read_text().splitlines()) == 5


def test_a_smoke_test_says_so_and_names_are_whole(stored: tuple[ResultStore, list[Progress]]) -> None:
    name = "cross-entropy without any other loss term"
    rows = {name: {"method": "erm"}, "LA": {"method": "logit-adjustment"}}
    baseline = {"settings": {"method": "erm"}, "row": name}
    parts = {"a": {**MOONS["parts"]["a"], "rows": rows, "values": {name: [90.0, 60.0]}, "baseline": baseline}}
    result = collect(make_plan(Recipe.model_validate({**MOONS, "parts": parts}), "full", 2), stored[0])
    assert "smoke test" not in reproduction_text(result)
    text = reproduction_text(replace(result, scale="tiny"))
    assert "smoke test" in text
    assert "--scale cpu" in text
    assert "…" not in text
    for word in name.split():
        assert word in text


def test_fewer_seeds_of_some_numbers_are_stated(stored: tuple[ResultStore, list[Progress]], tmp_path: Path) -> None:
    store, plan = ResultStore(tmp_path), moons_plan()
    keys = [cell.key(seed) for cell in plan.cells for seed in (0, 1)]
    for key in keys[:-1]:  # the last method has one seed
        store.add(stored[0].get(key))
    assert "1 to 2 seeds" in reproduction_text(collect(plan, store))
    assert "(scale full, 2 seeds)" in reproduction_text(collect(plan, stored[0]))


def test_missing_data_cannot_be_run_here(tmp_path: Path) -> None:
    plan = moons_plan(1)
    broken = plan.recipe.model_copy(update={"settings": {"data": "features:{nowhere}", "epochs": 1}})
    plan = make_plan(broken, "full", 1)
    store = ResultStore(tmp_path)
    reasons = run_plan(plan, store, workers=HERE)
    assert all("--files nowhere=PATH" in each for each in reasons.values())
    assert {each.verdict for each in collect(plan, store, reasons).entries} == {"cannot be run here"}
    assert collect(plan, store).verdict == "not run"


def test_a_run_that_another_command_finished_and_removed_counts_as_done(
    tmp_path: Path, stored: tuple[ResultStore, list[Progress]]
) -> None:
    store, lost = ResultStore(tmp_path), []

    class Overtaken(Here):
        def submit(self, fn, /, task, **kwargs):  # type: ignore[no-untyped-def]
            finished = fn(task, **kwargs)
            store.add(stored[0].get(task.key))
            (Path(task.settings["out"]) / "predictions.safetensors").unlink()
            outcome = fn(task, **kwargs)
            lost.append((finished.status, outcome.status, outcome.error))
            return super().submit(lambda: outcome)

    assert run_plan(moons_plan(), store, workers=Workers(Overtaken(), lambda: 1)) == {}
    assert store.keys() == stored[0].keys()
    assert {each[:2] for each in lost} == {("finished", "impossible")}, lost


def test_a_run_without_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"gone.metrics\.jsonl has no metrics"):
        measure_run(tmp_path / "gone")


def test_a_failed_run_ends_with_code_1_and_its_reason(tmp_path: Path) -> None:
    recipe = tmp_path / "moons.yaml"
    recipe.write_text(yaml.safe_dump({key: value for key, value in MOONS.items() if key != "name"}))
    command = [sys.executable, "-m", "classgap", "reproduce", str(recipe), "--scale", "full", "--seeds", "1"]
    command += ["--cells", "LA", "--results-dir", str(tmp_path / "store")]
    ended = subprocess.run(command, capture_output=True, text=True, preexec_fn=fill_the_disk, check=False)
    assert ended.returncode == 1
    assert "classgap: failed: " in ended.stderr
    assert "LA" in ended.stdout  # the page is shown all the same


def fill_the_disk() -> None:
    """Let files grow to 2 kB only, in this process and those that it starts."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing beyond the limit is then an error, as on a full disk
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same_page(result: RecipeResult, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    recipe, store = tmp_path / "moons.yaml", tmp_path / "store"
    recipe.write_text(yaml.safe_dump({key: value for key, value in MOONS.items() if key != "name"}))
    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": "CRITICAL"}
    with distributed.LocalCluster(n_workers=2, **options) as cluster:
        command = ["reproduce", str(recipe), "--scale", "full", "--seeds", "2", "--results-dir", str(store)]
        assert main([*command, "--executor", f"dask:{cluster.scheduler_address}"]) == 0
    again = collect(moons_plan(), ResultStore(store))
    assert reproduction_text(again) == reproduction_text(result)


def test_runs_that_another_command_finishes_are_not_failures(
    stored: tuple[ResultStore, list[Progress]], tmp_path: Path
) -> None:
    class Elsewhere(Executor):
        """Another command finishes the run and removes its directory, so that this one cannot write to it."""

        def submit(self, fn, /, task):  # type: ignore[no-untyped-def]
            ResultStore(tmp_path).add(stored[0].get(task.key))
            future: Future = Future()
            future.set_result(Outcome(task.key, "failed", error="OSError: cannot write predictions.safetensors"))
            return future

    seen: list[Progress] = []
    workers = Workers(Elsewhere(), lambda: 1)
    assert run_plan(moons_plan(), ResultStore(tmp_path), workers=workers, on_progress=seen.append) == {}
    assert [(each.done, each.total) for each in seen] == [(done, 4) for done in range(5)]
    assert {each.outcome.status for each in seen[1:]} == {"finished"}


def test_a_run_whose_worker_died_is_tried_once_more(stored: tuple[ResultStore, list[Progress]], tmp_path: Path) -> None:
    started: list[str] = []

    class Dying(Here):
        """The worker of the first run dies once, that of the second run always."""

        def submit(self, fn, /, task):  # type: ignore[no-untyped-def]
            started.append(task.key)
            if len(started) != 2:
                future: Future = Future()
                future.set_exception(BrokenProcessPool("A process terminated abruptly."))
                return future
            return super().submit(lambda: Outcome(task.key, "finished", stored[0].get(task.key)))

    reasons = run_plan(moons_plan(1), ResultStore(tmp_path), workers=Workers(Dying(), lambda: 1))
    assert started[0] == started[1] != started[2] == started[3]
    assert len(started) == 4
    assert list(ResultStore(tmp_path).keys()) == started[:1]
    (reason,) = reasons.values()
    assert reason.startswith("its worker process died 2 times")


def test_seeds_begin_with_the_first_seed(tmp_path: Path) -> None:
    store, part = ResultStore(tmp_path), MOONS["parts"]["a"]
    columns = {"new": {"metric": "accuracy", "first_seed": 7}, "old": {"metric": "accuracy"}}
    changed = {"columns": columns, "values": {}, "baseline": {"settings": {"method": "erm"}}}
    plan = make_plan(Recipe.model_validate({**MOONS, "parts": {"a": {**part, **changed}}}), "full", 2)
    seen: list[Progress] = []
    assert run_plan(plan.select(["LA / new"]), store, workers=HERE, on_progress=seen.append) == {}
    entries = [store.get(key) for key in store.keys()]  # noqa: SIM118 - no mapping
    assert sorted((each["settings"].get("method", "erm"), each["seed"]) for each in entries) == [
        *(("erm", seed) for seed in (7, 8)),
        *(("logit-adjustment", seed) for seed in (7, 8)),
    ]
    assert [each.seed for each in seen[1:]] == [7, 7, 8, 8]
    found = {(each.row, each.column): each for each in collect(plan, store).entries}
    assert found["LA", "new"].comparison.n == 2
    assert not found["LA", "old"].values
    later = Recipe.model_validate({**MOONS, "settings": {**MOONS["settings"], "first_seed": 8}})
    assert make_plan(later, "full").cells[0].key(0) == plan.cells[0].key(1)  # the same run: one entry


def test_columns_have_their_own_number_of_seeds(tmp_path: Path) -> None:
    columns = {"many": {"metric": "accuracy"}, "few": {"metric": "accuracy", "epochs": 2}}
    values = {"CE": [90.0, 60.0], "LA": [89.0, 80.0]}
    recipe = {**MOONS, "parts": {"a": {**MOONS["parts"]["a"], "columns": columns, "values": values}}}
    recipe["scales"] = {"full": {"seeds": 2, "column_seeds": {"few": 1}, "seconds": 10}}
    plan = make_plan(Recipe.model_validate(recipe), "full")
    assert [each.seeds for each in plan.entries] == [2, 1, 2, 1]
    assert (plan.seeds, plan.seconds) == (2, 60)
    assert {each.seeds for each in make_plan(plan.recipe, "full", 3).entries} == {3}  # --seeds 3
    store = ResultStore(tmp_path)
    run_plan(plan, store, workers=HERE)
    assert len(list(store.keys())) == 6
    assert [len(each.values) for each in collect(plan, store).entries] == [2, 1, 2, 1]
    recipe["scales"]["full"]["column_seeds"] = {"fw": 1}
    with pytest.raises(ValueError, match="column 'fw'"):
        Recipe.model_validate(recipe)


@pytest.mark.parametrize("first", [-5, True])
def test_first_seeds_that_cannot_be_seeds_are_rejected(first: int) -> None:
    with pytest.raises(ValueError, match=f"first_seed must be an integer >= 0, got {first}"):
        Recipe.model_validate({**MOONS, "settings": {**MOONS["settings"], "first_seed": first}})


def test_diverged_runs_are_results_with_their_origin(tmp_path: Path) -> None:
    settings = {**MOONS["settings"], "lr": 1e30}
    plan = make_plan(Recipe.model_validate({**MOONS, "settings": settings}), "full", 1)
    store = ResultStore(tmp_path)
    assert run_plan(plan, store, workers=HERE) == {}
    entries = [store.get(key) for key in store.keys()]  # noqa: SIM118 - no mapping
    assert len(entries) == 2
    for entry in entries:
        assert "lr" in entry["diverged"] or "loss" in entry["diverged"]
        assert entry.keys() >= {"settings", "version", "code", "environment"}
        assert entry["environment"]
    verdicts = {each.verdict for each in collect(plan, store).entries if each.row == "LA"}
    assert verdicts == {"not reproduced"}


def test_held_out_samples_are_measured_after_the_last_epoch(tmp_path: Path) -> None:
    settings = {**MOONS["settings"], "val_fraction": 0.25}
    plan = make_plan(Recipe.model_validate({**MOONS, "settings": settings}), "full", 1)
    store = ResultStore(tmp_path)
    run_plan(plan, store, workers=HERE, keep_runs=True)
    for cell in plan.cells:
        lines = (store.work(cell.work_name(0)) / "metrics.jsonl").read_text().splitlines()
        last = json.loads(lines[-2])  # the last line has the final metrics
        found = store.get(cell.key(0))["metrics"]
        assert found["val_accuracy"] == pytest.approx(last["val_accuracy"], rel=1e-5)
        assert found["val_balanced"] == pytest.approx(last["val_balanced"], rel=1e-5)


def test_one_run_serves_several_maps(tmp_path: Path) -> None:
    store, part = ResultStore(tmp_path), MOONS["parts"]["a"]
    columns = {each: {"map": each, "metric": f"maps.{each}.within_between"} for each in ("0", "2")}
    changed = {"columns": columns, "values": {"LA": ["lower", "lower"]}, "baseline": {"settings": {"method": "erm"}}}
    plan = make_plan(Recipe.model_validate({**MOONS, "parts": {"a": {**part, **changed}}}), "full", 1)
    assert run_plan(plan, store, workers=HERE) == {}
    assert len(store.keys()) == 2  # one per method
    result = collect(plan, store)
    assert all(entry.values for entry in result.entries)
    first, second = (result.records["a", "LA", each][0] for each in ("0", "2"))
    assert first["map"] != second["map"]
    seen: list[Progress] = []
    run_plan(plan, store, workers=HERE, on_progress=seen.append)
    assert [(each.done, each.total) for each in seen] == [(2, 2)]


def test_maps_are_drawn_for_a_run_that_another_column_shares(tmp_path: Path) -> None:
    store, part = ResultStore(tmp_path), MOONS["parts"]["a"]
    columns = {
        "later": {"metric": "accuracy", "map": "test", "first_seed": 1},
        "plain": {"metric": "accuracy"},
    }
    changed = {"columns": columns, "values": {}, "baseline": {"settings": {"method": "erm"}}}
    plan = make_plan(Recipe.model_validate({**MOONS, "parts": {"a": {**part, **changed}}}), "full", 2)
    assert run_plan(plan.select(["LA / plain"]), store, workers=HERE) == {}  # the second seed is the first of "later"
    assert run_plan(plan, store, workers=HERE) == {}
    cells = {(each.row, each.column): each.cell for each in plan.entries}
    record = store.get(cells["LA", "later"].key(0))
    assert record is not None
    assert "test" in record["maps"]


def test_a_killed_command_ends_with_the_same_page(
    stored: tuple[ResultStore, list[Progress]], result: RecipeResult, tmp_path: Path
) -> None:
    recipe, store = tmp_path / "moons.yaml", tmp_path / "store"
    recipe.write_text(yaml.safe_dump({key: value for key, value in MOONS.items() if key != "name"}))
    command = [sys.executable, "-m", "classgap", "reproduce", str(recipe), "--scale", "full", "--seeds", "2"]
    command += ["--results-dir", str(store)]
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 120
    while not list(store.glob("entries/*.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    first = {path: path.read_text() for path in store.glob("entries/*.json")}
    assert first
    subprocess.run(command, check=True, capture_output=True)
    assert all(path.read_text() == text for path, text in first.items())  # used, not repeated
    again = collect(moons_plan(), ResultStore(store))
    assert reproduction_text(again) == reproduction_text(result)
    assert reproduction_markdown(again) == reproduction_markdown(result)
    assert {json.loads(path.read_text())["key"] for path in store.glob("entries/*.json")} == set(stored[0].keys())
