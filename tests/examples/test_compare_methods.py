"""The comparison of methods: what it keeps over a kill, and how it tells of trainings that failed."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = Path(__file__).parents[2] / "examples" / "compare_methods.py"
FIGURES = ("accuracy", "easy", "medium", "hard", "worst")


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("compare_methods", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.Results.measure = lambda *args: None  # all is stored, or missing
    return module


def line(data: str, method: str, choice: str, seed: int, hard: float | None) -> str:
    """A stored training, of one second; without a hard third it failed."""
    figures = {"seconds": 0.0} if hard is None else dict.fromkeys(FIGURES, hard) | {"seconds": 1.0}
    return json.dumps({"epochs": 40, "job": [data, method, choice, seed], "figures": figures}) + "\n"


def stored(path: Path, example: ModuleType, method: str, hard: list[float | None]) -> Path:
    """A file of cross-entropy at 50 % and of a method whose first setting is chosen, a training for each seed."""
    text = ""
    for name, ends in (("erm", [50.0] * len(hard)), (method, hard)):
        first = example.SEARCH[name][0]
        text += "".join(line(example.CHOICE, name, each, 100, 9.0 - i) for i, each in enumerate(example.SEARCH[name]))
        text += "".join(line(example.END, name, first, seed, each) for seed, each in enumerate(ends))
    path.write_text(text)
    return path


def test_it_goes_on_after_a_kill_in_the_middle_of_a_line(example: ModuleType, tmp_path: Path) -> None:
    path = stored(tmp_path / "results.jsonl", example, "sam", [60.0, 61.0])
    whole = path.read_text()
    path.write_text(whole + '{"epochs": 40, "job": ["mnist1d", "er')
    results = example.Results(path, 40, 1)
    assert len(results.known) == 10
    assert path.read_text() == whole  # what is appended next is a line of its own


def test_failed_seeds_are_told_and_count_in_no_column(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stored(tmp_path / "results.jsonl", example, "sam", [60.0, None, 62.0])
    example.main(["--methods", "sam", "--seeds", "3", "--results", str(path), "--markdown"])
    mean = "61.0 ± 12.7"  # 12.71 · √2 / √2
    cells = " | ".join([mean] * 5)
    told = capsys.readouterr().out.splitlines()
    assert told[2] == f"| sam (2 of 3 finite) | rho=0.02 | {cells} | 1.0 |"
    assert told[3].startswith("| erm | 2e-3 | 50.0")


def test_a_method_that_failed_with_every_seed_is_told_last(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stored(tmp_path / "results.jsonl", example, "sam", [None, None])
    example.main(["--methods", "sam", "--seeds", "2", "--results", str(path), "--markdown"])
    assert capsys.readouterr().out.splitlines()[-1] == "| sam (0 of 2 finite) | rho=0.02 |  |  |  |  |  |  |"


def test_the_trainings_that_settings_were_chosen_by(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_every_setting_is_one_that_the_command_takes(example: ModuleType) -> None:
    from classgap import methods

    known = {"num_classes": 10, "class_counts": [9] * 10, "feature_dim": 4, "num_samples": 90}
    for method, choices in example.SEARCH.items():
        assert len(choices) == 3
        for choice in choices:
            settings = example.settings_of(method, choice)
            methods.build(settings["method"], **known)


def test_the_table_of_the_docs_is_what_is_stored(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    root = SOURCE.parents[1]
    example.main(["--results", str(root / "experiments" / "compare_methods.jsonl"), "--markdown"])
    assert capsys.readouterr().out in (root / "docs" / "methods.md").read_text()
