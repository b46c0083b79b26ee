"""Plans and what is stored of them: the files beside this one, and what the names in them say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml
from samples import DRAWN, PLACES, source

from classgap._atomic_write import atomic_write_text

HERE = Path(__file__).parent


def read_plan(name: str) -> dict[str, Any]:
    return yaml.safe_load((HERE / f"{name}.yaml").read_text())


def stored(name: str) -> list[dict[str, Any]]:
    path = HERE / f"{name}.jsonl"
    return [json.loads(line) for line in whole_lines(path).splitlines()] if path.exists() else []


def whole_lines(path: Path) -> str:
    """What a file holds up to half a line at its end: one being written, or left by a process that was killed."""
    text = path.read_text()
    return text[: text.rfind("\n") + 1]


def mend(name: str) -> None:
    """Remove half a line that a killed process left, before others are appended to it."""
    path = HERE / f"{name}.jsonl"
    if path.exists():
        atomic_write_text(path, whole_lines(path))


def settings_of(problem: str, on: str, files: dict[str, Path | None]) -> dict[str, Any]:
    text = (HERE / "problems" / f"{problem}.yaml").read_text()
    for name, path in files.items():
        if f"{{{name}}}" in text:
            if path is None:
                raise SystemExit(f"{problem} needs --{name}")
            text = text.replace(f"{{{name}}}", str(source(path, on)))
    for key, value in (PLACES[on] | {"drawn": DRAWN}).items():
        text = text.replace(f"{{{key}}}", str(value))
    return yaml.safe_load(text)


def methods_of(plan: dict[str, Any], problem: str) -> dict[str, dict[str, Any]]:
    return plan["methods"].get(problem, plan["methods"])


def results_of(name: str, problem: str) -> list[dict[str, Any]]:
    """What is stored of one problem."""
    return [line for line in stored(name) if line["problem"] == problem]


def by_run(name: str) -> dict[tuple[str, str, int], dict[str, Any]]:
    """What is stored, by problem, method and seed."""
    return {(line["problem"], line["method"], line["seed"]): line for line in stored(name)}


def refuse_gaps(name: str) -> None:
    """A setting that was not run, or not as often as the others, cannot be compared with them."""
    plan, found = read_plan(name), by_run(name)
    gaps = [
        (problem, f"  {problem}: {method}: {', '.join(map(str, seeds))}")
        for problem in plan["problems"]
        for method in methods_of(plan, problem)
        if (seeds := [seed for seed in plan["seeds"] if (problem, method, seed) not in found])
    ]
    if gaps:
        raise SystemExit(
            "\n".join([f"{name}.jsonl lacks these seeds, so settings cannot be compared:", *(told for _, told in gaps)])
            + "\nRun them, with --clinc or --cifar where a problem needs it:"
            + f"\n  python experiments/mr2/study.py run {name} --problems {' '.join(dict(gaps))}"
        )


def runs_of(name: str, problem: str) -> dict[str, list[dict[str, Any]]]:
    """The results of each method on one problem, those of all seeds of the plan."""
    refuse_gaps(name)
    plan, found = read_plan(name), by_run(name)
    return {each: [found[problem, each, seed] for seed in plan["seeds"]] for each in methods_of(plan, problem)}


def form_of(name: str) -> str:
    """The name without what it says of training."""
    return re.split(", (?:lr|wd) ", name)[0]


def method_of(name: str) -> str:
    """The form without the number at its end."""
    return form_of(name).rstrip("0123456789. ")
