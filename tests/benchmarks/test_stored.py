"""Benchmarks store their results, and the sections of the pages are those of the stored results."""

import doctest
import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COSTS = ("loss_cost", "train_cost", "data_cost", "budget_cost", "labels")


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


@pytest.fixture
def stored():
    return importlib.import_module("stored")


@pytest.fixture
def timing():
    return importlib.import_module("timing")


@pytest.fixture
def section(stored, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(stored, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text("Before.\n\n<!-- cost -->\n\nOld.\n\n<!-- end of cost -->\n\nAfter.\n")
    return stored.Section("page.md", "cost")


@pytest.mark.parametrize("name", COSTS)
def test_sections_show_the_stored_results(name: str, stored) -> None:
    benchmark = importlib.import_module(name)
    results = stored.read(benchmark.RESULTS)
    assert benchmark.SECTION.read() == benchmark.describe(results), f"run python benchmarks/{name}.py docs"
    assert set(results["environment"]) == {"torch", "cpus", "threads"}
    assert results["repeats"] > 1


def test_the_section_of_the_scikit_learn_classifier(stored) -> None:
    benchmark = importlib.import_module("sklearn_cost")
    lines = stored.read_lines(benchmark.RESULTS)
    assert {(line["samples"], line["features"], line["classes"]) for line in lines} == {(15_000, 384, 150)}
    shown = "run python benchmarks/sklearn_cost.py docs"
    assert benchmark.SECTION.read() == benchmark.describe(lines), shown


def test_make_runs_every_benchmark_and_writes_every_section() -> None:
    rules = (ROOT / "Makefile").read_text(encoding="utf-8").split("\n\n")
    (bench,), (docs,) = ([rule for rule in rules if rule.startswith(f"{name}:")] for name in ("bench", "docs"))
    for name in (*COSTS, "sklearn_cost", "audit_cost"):
        assert f"benchmarks/{name}.py\n" in f"{bench}\n"
        assert f"benchmarks/{name}.py docs\n" in docs


def test_all_cases_are_stored(stored) -> None:
    loss, train, data, budget, labels = map(importlib.import_module, COSTS)
    shapes = [
        tuple(each[name] for name in ("classes", "batch", "features")) for each in stored.read(loss.RESULTS)["shapes"]
    ]
    assert shapes == loss.SHAPES
    assert list(stored.read(train.RESULTS)["problems"]) == list(train.PROBLEMS)
    assert list(stored.read(data.RESULTS)["images per second"]) == list(data.NAMES)
    for benchmark in (budget, labels):
        results = stored.read(benchmark.RESULTS)
        assert (results["samples"], results["classes"]) == (benchmark.SAMPLES, benchmark.CLASSES)


def test_false_alarms_of_slices_are_those_of_the_page(stored) -> None:
    benchmark = importlib.import_module("labels")
    alarms = stored.read(benchmark.RESULTS)["false alarms"]
    assert [(each["slices"], each["samples per class"]) for each in alarms] == list(benchmark.SIZES)
    rates = [100 * each["alarms"] / each["data sets"] for each in alarms]
    page = " ".join((ROOT / "docs" / "labels.md").read_text(encoding="utf-8").split())
    assert f"{min(rates):.1f} to {max(rates):.1f} % of the datasets had a false alarm" in page


def test_a_section_is_replaced_and_the_rest_of_the_page_kept(section, tmp_path: Path) -> None:
    assert section.read() == "Old."
    section.write("New,\n\nin \\1 parts.\n")
    assert section.read() == "New,\n\nin \\1 parts."
    text = (tmp_path / "page.md").read_text()
    assert text.startswith("Before.\n\n<!-- cost -->\n\nNew,")
    assert text.endswith("parts.\n\n<!-- end of cost -->\n\nAfter.\n")


@pytest.mark.parametrize(
    "text",
    [
        "nothing",
        "<!-- cost -->",
        "<!-- end of cost --> <!-- cost -->",
        "<!-- cost --> <!-- cost --> <!-- end of cost -->",
    ],
)
def test_a_page_without_the_section_is_an_error(section, tmp_path: Path, text: str) -> None:
    (tmp_path / "page.md").write_text(text)
    with pytest.raises(ValueError, match=r"page\.md must have one section between <!-- cost -->"):
        section.write("New.")
    assert (tmp_path / "page.md").read_text() == text


def test_lines_are_appended_after_the_last_whole_line(stored, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    assert stored.read_lines(path) == []
    stored.append_line(path, {"a": 1})
    with path.open("a") as file:
        file.write('{"a": "µ')  # a process was killed
    assert stored.read_lines(path) == [{"a": 1}]
    stored.append_line(path, {"a": 3})
    assert path.read_text() == '{"a": 1}\n{"a": 3}\n'
    stored.write_lines(path, [{"a": 4}])
    assert stored.read_lines(path) == [{"a": 4}]


def test_quick_measurements_are_not_stored(section, stored, timing, tmp_path: Path, monkeypatch, capsys) -> None:
    asked, path = [], tmp_path / "results.json"

    def run(*arguments: str) -> None:
        monkeypatch.setattr("sys.argv", ["benchmark.py", *arguments])
        timing.main("help", measure, lambda results: f"{results['seconds']} s, {results['repeats']}", path, section)

    def measure(repeats: int, quick: bool) -> dict[str, int]:
        asked.append((repeats, quick))
        return {"seconds": 7}

    run("--quick")
    assert not path.exists()
    run()
    assert asked == [(timing.QUICK_REPEATS, True), (timing.REPEATS, False)]
    assert json.loads(path.read_text()) == {"environment": stored.environment(), "repeats": 5, "seconds": 7}
    assert section.read() == "Old."
    assert capsys.readouterr().out == "7 s, 2\n7 s, 5\n"
    run("docs")
    assert section.read() == "7 s, 5"
    assert len(asked) == 2


def test_competitors_take_turns(timing) -> None:
    order, now = [], iter(range(100))
    jobs = {name: lambda name=name: order.append(name) for name in "abc"}
    assert timing.fastest(jobs, 3, clock=lambda: next(now)) == dict.fromkeys("abc", 1)
    assert "".join(order) == "abcbcacab"


def test_examples_of_the_text(timing) -> None:
    assert doctest.testmod(timing).failed == 0
    results = {"repeats": 5, "environment": {"torch": "2.10.0+cpu", "cpus": 2, "threads": 1}}
    assert timing.describe_conditions(results).endswith("in parentheses (PyTorch 2.10.0, 2 CPUs, 1 thread).")
    code = "`python benchmarks/loss_cost.py --quick`"
    assert code in timing.paragraph(" ".join(["word"] * 26) + f" {code} and more words to wrap")
