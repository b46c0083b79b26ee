"""Read plans and their stored results."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml
from sample_sets import DRAWN, SAMPLE_SETS, resolve_source

from classgap._atomic_write import atomic_write_text

HERE = Path(__file__).parent


def read_plan(name: str) -> dict[str, Any]:
    return yaml.safe_load((HERE / f"{name}.yaml").read_text())


def read_results(name: str) -> list[dict[str, Any]]:
    path = HERE / f"{name}.jsonl"
    return [json.loads(line) for line in complete_lines(path).splitlines()] if path.exists() else []


def complete_lines(path: Path) -> str:
    """Return a file without an incomplete last line, which a running or killed process may leave."""
    text = path.read_text()
    return text[: text.rfind("\n") + 1]


def drop_incomplete_line(name: str) -> None:
    """Remove an incomplete last line before appending to the results."""
    path = HERE / f"{name}.jsonl"
    if path.exists():
        atomic_write_text(path, complete_lines(path))


def problem_settings(problem: str, samples: str, files: dict[str, Path | None]) -> dict[str, Any]:
    text = (HERE / "problems" / f"{problem}.yaml").read_text()
    for name, path in files.items():
        if f"{{{name}}}" in text:
            if path is None:
                raise SystemExit(f"{problem} needs --{name}")
            text = text.replace(f"{{{name}}}", str(resolve_source(path, samples)))
    for key, value in (SAMPLE_SETS[samples] | {"drawn": DRAWN}).items():
        text = text.replace(f"{{{key}}}", str(value))
    return yaml.safe_load(text)


def plan_methods(plan: dict[str, Any], problem: str) -> dict[str, dict[str, Any]]:
    return plan["methods"].get(problem, plan["methods"])


def problem_results(name: str, problem: str) -> list[dict[str, Any]]:
    """Return the stored results of a problem."""
    return [line for line in read_results(name) if line["problem"] == problem]


def results_by_run(name: str) -> dict[tuple[str, str, int], dict[str, Any]]:
    """Return the stored results by problem, method and seed."""
    return {(line["problem"], line["method"], line["seed"]): line for line in read_results(name)}


def check_complete(name: str) -> None:
    """Raise if results are missing: settings with different numbers of runs cannot be compared."""
    plan, found = read_plan(name), results_by_run(name)
    missing = [
        (problem, f"  {problem}: {method}: {', '.join(map(str, seeds))}")
        for problem in plan["problems"]
        for method in plan_methods(plan, problem)
        if (seeds := [seed for seed in plan["seeds"] if (problem, method, seed) not in found])
    ]
    if missing:
        raise SystemExit(
            "\n".join([f"{name}.jsonl lacks these seeds, settings cannot be compared:", *(line for _, line in missing)])
            + "\nRun them, with --clinc or --cifar where needed:"
            + f"\n  python experiments/mr2/study.py run {name} --problems {' '.join(dict(missing))}"
        )


def runs_by_method(name: str, problem: str) -> dict[str, list[dict[str, Any]]]:
    """Return the results of each method on a problem, for all seeds of the plan."""
    check_complete(name)
    plan, found = read_plan(name), results_by_run(name)
    return {each: [found[problem, each, seed] for seed in plan["seeds"]] for each in plan_methods(plan, problem)}


def form_of(name: str) -> str:
    """Return the name without training settings."""
    return re.split(", (?:lr|wd) ", name)[0]


def method_of(name: str) -> str:
    """Return the form without a number at its end."""
    return form_of(name).rstrip("0123456789. ")
