"""Comparison of methods: resuming after a kill, and failed runs."""

import json
from pathlib import Path
from types import ModuleType

import pytest

from scripts import load_script

SOURCE = Path(__file__).parents[2] / "examples" / "compare_methods.py"
STORED = SOURCE.parents[1] / "experiments" / "compare_methods.jsonl"
METRICS = ("accuracy", "easy", "medium", "hard", "worst")


@pytest.fixture(scope="module")
def example() -> ModuleType:
    module = load_script("examples/compare_methods.py")
    module.Results.measure = lambda *args: None  # all is stored, or missing
    return module


def line(data: str, method: str, choice: str, seed: int, hard: float | None) -> str:
    """A stored run of one second; failed without a hard third."""
    metrics = {"seconds": 0.0} if hard is None else dict.fromkeys(METRICS, hard) | {"seconds": 1.0}
    return json.dumps({"epochs": 40, "job": [data, method, choice, seed], "metrics": metrics}) + "\n"


def stored(path: Path, example: ModuleType, method: str, hard: list[float | None]) -> Path:
    """Write results: cross-entropy at 50 %, and a method whose first setting is chosen, one run per seed."""
    text = ""
    for name, ends in (("erm", [50.0] * len(hard)), (method, hard)):
        first = example.SEARCH[name][0]
        text += "".join(line(example.CHOICE, name, each, 100, 9.0 - i) for i, each in enumerate(example.SEARCH[name]))
        text += "".join(line(example.END, name, first, seed, each) for seed, each in enumerate(ends))
    path.write_text(text)
    return path


def test_an_incomplete_last_line_is_removed(example: ModuleType, tmp_path: Path) -> None:
    path = stored(tmp_path / "results.jsonl", example, "sam", [60.0, 61.0])
    whole = path.read_text()
    path.write_text(whole + '{"epochs": 40, "job": ["mnist1d", "er')
    results = example.Results(path, 40, 1)
    assert len(results.known) == 10
    assert path.read_text() == whole  # the next line starts on its own


def test_failed_seeds_are_counted_in_the_name(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stored(tmp_path / "results.jsonl", example, "sam", [60.0, None, 62.0])
    example.main(["--methods", "sam", "--seeds", "3", "--results", str(path), "--markdown"])
    mean = "61.0 ± 12.7"  # 12.71 · √2 / √2
    cells = " | ".join([mean] * 5)
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == f"| sam (2 of 3 finite) | rho=0.02 | {cells} | 1.0 |"
    assert lines[3].startswith("| erm | 2e-3 | 50.0")


def test_a_method_that_always_failed_is_last(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stored(tmp_path / "results.jsonl", example, "sam", [None, None])
    example.main(["--methods", "sam", "--seeds", "2", "--results", str(path), "--markdown"])
    assert capsys.readouterr().out.splitlines()[-1] == "| sam (0 of 2 finite) | rho=0.02 |  |  |  |  |  |  |"


def test_choices_are_listed(example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "results.jsonl"
    reached = {"erm": [1.0, 3.0, 2.0], "sam": [None, None, 4.0]}
    path.write_text(
        "".join(
            line(example.CHOICE, method, choice, 100, hard)
            for method, values in reached.items()
            for choice, hard in zip(example.SEARCH[method], values, strict=True)
        )
    )
    example.main(["--methods", "sam", "--results", str(path), "--choices", "--markdown"])
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| erm | 2e-3 | 1.0 |",
        "| erm | 5e-3 | 3.0 * |",
        "| erm | 1e-2 | 2.0 |",
        "| sam | rho=0.02 | not finite |",
        "| sam | rho=0.05 | not finite |",
        "| sam | rho=0.15 | 4.0 * |",
    ]


def test_every_setting_is_valid(example: ModuleType) -> None:
    from classgap import methods
    from classgap.engine import TrainConfig

    known = {"num_classes": 10, "class_counts": [9] * 10, "feature_dim": 4, "num_samples": 90}
    for method, choices in example.SEARCH.items():
        assert len(choices) == 3
        for choice in choices:
            settings = example.settings_of(method, choice)
            methods.build(settings["method"], **known)
            TrainConfig(data="mnist1d", **(example.SETTINGS | settings))


@pytest.mark.skipif(not STORED.exists(), reason="the source distribution has no experiments/")
def test_the_table_of_the_docs_matches_the_results(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    example.main(["--results", str(STORED), "--markdown"])
    assert capsys.readouterr().out in (SOURCE.parents[1] / "docs" / "methods.md").read_text()
