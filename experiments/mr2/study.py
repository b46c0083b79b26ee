"""Methods on problems over seeds, through ``classgap train``; every result is kept, none is computed twice.

    python experiments/mr2/study.py run PLAN --clinc FILE.npz --cifar FOLDER    # goes on where it stopped
    python experiments/mr2/study.py hard PLAN                      # the hard third of all problems, in Markdown
    python experiments/mr2/study.py table PLAN                     # all figures, a table a problem
    python experiments/mr2/study.py choose PLAN                    # the best setting of each method, as a plan
    python experiments/mr2/study.py decay PLAN                     # the gain at one setting, by its weight decay

A plan is a YAML file beside this one: ``problems`` (files in problems/), ``seeds``, ``samples`` ("choice": other data,
validation samples or held-out training samples; "end": the test samples), ``settings`` of single problems, and
``methods``: name → settings of ``classgap train``, the same for all problems or under the problem's name. With
``fitted`` in a plan, ``choose`` takes settings that fit at least this share of the training samples. Results are
appended to PLAN.jsonl, a line a training.

A name is a form and then, from the first ", lr " or ", wd " on, how it was trained. ``hard`` has a row for each form. A
form without the number at its end is a method, and ``choose`` takes one setting of each: "feature norm 0.03, lr 1" is
of the form "feature norm 0.03" and of the method "feature norm".
"""

from __future__ import annotations

import argparse
import functools
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from scipy import stats

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "benchmarks")]  # forms has a network of benchmarks/
import forms  # noqa: E402, F401 - adds its methods to the registry

from classgap.data import load  # noqa: E402
from classgap.engine import RunDirectory, TrainConfig, train  # noqa: E402
from classgap.engine.config_file import checked_settings  # noqa: E402
from classgap.whole_file import write_whole  # noqa: E402

FIGURES = ("accuracy", "easy", "medium", "hard", "worst")
PLACES = {
    "choice": {"data_seed": 7, "part": "val", "validation": 0.3},
    "end": {"data_seed": 42, "part": "test", "validation": 0.0},
}
NOTHING = ["", "", ""]  # the cells of ``hard`` for a method that a problem has no results of


def read_plan(name: str) -> dict[str, Any]:
    return yaml.safe_load((HERE / f"{name}.yaml").read_text())


def stored(name: str) -> list[dict[str, Any]]:
    path = HERE / f"{name}.jsonl"
    if not path.exists():
        return []
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1]  # a killed process may have left half a line
    if whole != text:
        write_whole(path, whole)
    return [json.loads(line) for line in whole.splitlines()]


def settings_of(problem: str, on: str, files: dict[str, Path | None]) -> dict[str, Any]:
    text = (HERE / "problems" / f"{problem}.yaml").read_text()
    for name, path in files.items():
        if f"{{{name}}}" in text:
            if path is None:
                raise SystemExit(f"{problem} needs --{name}")
            text = text.replace(f"{{{name}}}", str(only_training(path) if on == "choice" and path.is_dir() else path))
    for key, value in PLACES[on].items():
        text = text.replace(f"{{{key}}}", str(value))
    return yaml.safe_load(text)


def only_training(folder: Path) -> Path:
    """Links to a folder's training images, of which every fifth is for testing: what choices are made on."""
    made = folder.with_name(f"{folder.name}-choice")
    if not made.exists():
        for place in sorted((folder / "train").iterdir()):
            for part in ("train", "test"):
                (made / part / place.name).mkdir(parents=True, exist_ok=True)
            for i, image in enumerate(sorted(place.iterdir())):
                (made / ("train" if i % 5 else "test") / place.name / image.name).symlink_to(image.resolve())
    return made


loaded = functools.cache(load)


def one(settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """The figures of one training."""
    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig(**checked_settings(settings), seed=seed, out=Path(folder) / "run", report=False)
        began = time.monotonic()
        try:
            done = RunDirectory(train(config, data=loaded(config.data), quiet=True).directory)
        except ArithmeticError as failure:
            return {"failed": str(failure)}
        *_, last, final = done.read_metrics()
        # Where training samples are held out, these are what is looked at, and not the test samples.
        seen, samples = (last, "validation") if config.validation else (final, "test")
        figures = {name: round(seen[f"{samples}_{name}"], 5) for name in FIGURES}
        return figures | {"train": round(final["train_accuracy"], 4), "seconds": round(time.monotonic() - began, 1)}


def methods_of(plan: dict[str, Any], problem: str) -> dict[str, dict[str, Any]]:
    return plan["methods"].get(problem, plan["methods"])


def run(name: str, options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    plan, files = read_plan(name), {"clinc": options.clinc, "cifar": options.cifar}
    done = {(line["problem"], line["method"], line["seed"]) for line in stored(name)}
    for seed in options.seeds or plan["seeds"]:
        for problem in options.problems or plan["problems"]:
            base = settings_of(problem, plan["samples"], files) | plan.get("settings", {}).get(problem, {})
            for method, extra in methods_of(plan, problem).items():
                if (problem, method, seed) in done or not method.startswith(options.method):
                    continue
                line = {"problem": problem, "method": method, "seed": seed, **one(base | (extra or {}), seed)}
                with (HERE / f"{name}.jsonl").open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(line, flush=True)


def table(name: str) -> None:
    plan, lines = read_plan(name), stored(name)
    for problem in plan["problems"]:
        here = [line for line in lines if line["problem"] == problem]
        seeds = sorted({line["seed"] for line in here})
        print(f"\n**{problem}** ({len(seeds)} seeds; mean ± standard deviation, %)\n")
        print("| method | overall | easy | medium | hard | worst | hard: gain, p |\n|---|---|---|---|---|---|---|")
        for method in methods_of(plan, problem):
            rows = [line for line in here if line["method"] == method]
            cells = [np.array([100 * row.get(figure, 0.0) for row in rows]) for figure in FIGURES]  # 0 if it failed
            if rows:
                spread = [cell.std(ddof=1) if len(cell) > 1 else 0.0 for cell in cells]
                shown = [f"{cell.mean():.2f} ± {sd:.2f}" for cell, sd in zip(cells, spread, strict=True)]
                print(
                    f"| {method} | {' | '.join(shown)} | {gain(here, method, next(iter(methods_of(plan, problem))))} |"
                )


def gain(lines: list[dict[str, Any]], method: str, first: str) -> str:
    """The mean gain on the hard third over the first method, seed by seed, and a paired t-test's p."""
    values = differences(lines, method, first, "hard")
    if method == first or len(values) < 2:
        return ""
    return f"{values.mean():+.2f}, {stats.ttest_1samp(values, 0).pvalue:.3f}"


def hard(name: str) -> None:
    """Hard thirds, and changes of the hard and the easy third from the first method with 95 % intervals, by problem."""
    plan, lines = read_plan(name), stored(name)
    problems = [each for each in plan["problems"] if any(line["problem"] == each for line in lines)]
    print("| method |" + "".join(f" {each}: hard | change | easy, change |" for each in problems))
    print("|---|" + "---|---|---|" * len(problems))
    rows: dict[str, dict[str, list[str]]] = {}
    for problem in problems:
        here, methods = [line for line in lines if line["problem"] == problem], list(methods_of(plan, problem))
        count = Counter(map(form_of, methods))
        for method in methods:
            row = form_of(method) if count[form_of(method)] == 1 else method  # several settings: a row for each
            rows.setdefault(row, {})[problem] = cells(here, method, methods[0])
    for row, found in rows.items():
        shown = [cell for problem in problems for cell in found.get(problem, NOTHING)]
        if any(shown):
            print(f"| {row} | {' | '.join(shown)} |")


def cells(lines: list[dict[str, Any]], method: str, first: str) -> list[str]:
    """What ``hard`` shows of a method on one problem; nothing if nothing is stored."""
    values = [100 * line.get("hard", 0.0) for line in lines if line["method"] == method]
    if not values:
        return NOTHING
    parts = ("hard", "easy")
    changes = ["" if method == first else interval(differences(lines, method, first, part)) for part in parts]
    return [f"{np.mean(values):.1f}", *changes]


def differences(lines: list[dict[str, Any]], method: str, first: str, part: str) -> np.ndarray:
    """Points of a third over the first method, a number a seed; a run that failed has 0."""
    found = {(line["method"], line["seed"]): 100 * line.get(part, 0.0) for line in lines}
    seeds = [seed for name, seed in found if name == method and (first, seed) in found]
    return np.array([found[method, seed] - found[first, seed] for seed in seeds])


def interval(values: np.ndarray) -> str:
    """Mean and 95 % interval; a mean alone, or nothing, where there are too few."""
    if len(values) < 2:
        return f"{values.mean():+.1f}" if len(values) else ""
    return f"{values.mean():+.1f} ± {half_width(values):.1f}"


def half_width(values: np.ndarray) -> float:
    """Of the 95 % interval of a mean of two or more, by Student's t."""
    return stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5


def decay(name: str) -> None:
    """Changes of the hard third from the first form at the same setting: means by weight decay, how often better."""
    plan, lines = read_plan(name), stored(name)
    refuse_gaps(name, plan, {(line["problem"], line["method"], line["seed"]) for line in lines})
    columns = {
        f"{problem}: {form}": changes
        for problem in plan["problems"]
        for form, changes in changes_at_settings(
            methods_of(plan, problem), [line for line in lines if line["problem"] == problem]
        ).items()
    }
    print("| weight decay |" + "".join(f" {column} |" for column in columns))
    print("|---|" + "---|" * len(columns))
    for weight in sorted({weight for changes in columns.values() for weight, _ in changes}):
        means = [np.mean([change for here, change in changes if here == weight]) for changes in columns.values()]
        print(f"| {weight:g} |" + "".join(f" {each:+.1f} |" for each in means))
    better = [f" {sum(change > 0 for _, change in changes)} of {len(changes)} |" for changes in columns.values()]
    print("| settings at which it is better |" + "".join(better))


def changes_at_settings(
    settings: dict[str, dict[str, Any]], lines: list[dict[str, Any]]
) -> dict[str, list[tuple[float, float]]]:
    """Weight decay and change from the first form, for each form that was run at all settings of the first."""
    first, *others = dict.fromkeys(map(form_of, settings))
    pairs = {
        form: [(each, first + each.removeprefix(form)) for each in settings if form_of(each) == form] for form in others
    }
    return {
        form: [(settings[new]["weight_decay"], differences(lines, new, old, "hard").mean()) for new, old in here]
        for form, here in pairs.items()
        if len(here) == sum(form_of(each) == first for each in settings)
    }


def form_of(name: str) -> str:
    """The name without what it says of training."""
    return re.split(", (?:lr|wd) ", name)[0]


def method_of(name: str) -> str:
    """The form without the number at its end."""
    return form_of(name).rstrip("0123456789. ")


def choose(name: str) -> None:
    """Print, for each problem, the setting of each method with the best mean accuracy over the hard third."""
    plan = read_plan(name)
    found = {(line["problem"], line["method"], line["seed"]): line for line in stored(name)}
    refuse_gaps(name, plan, found)
    chosen: dict[str, dict[str, Any]] = {}
    for problem in plan["problems"]:
        settings = methods_of(plan, problem)
        runs = {setting: [found[problem, setting, seed] for seed in plan["seeds"]] for setting in settings}
        best = [
            best_setting({each: runs[each] for each in settings if method_of(each) == method}, plan.get("fitted", 0.0))
            for method in dict.fromkeys(map(method_of, settings))
        ]
        chosen[problem] = {setting: settings[setting] for setting in best}
    print(yaml.safe_dump({"methods": chosen}, sort_keys=False, allow_unicode=True, width=120))


def best_setting(runs: dict[str, list[dict[str, Any]]], fitted: float) -> str:
    """Of those that fit the training samples, the one with the best mean over the hard third."""
    able = [each for each in runs if mean(runs[each], "train") >= fitted]
    if not able:
        reached = max(mean(each, "train") for each in runs.values())
        raise SystemExit(f"none of {', '.join(runs)} fits {fitted:.0%} of the training samples; the best {reached:.1%}")
    return max(able, key=lambda each: (mean(runs[each], "hard"), each))


def mean(lines: list[dict[str, Any]], figure: str) -> float:
    """Over trainings, of which one that failed has 0."""
    return float(np.mean([line.get(figure, 0.0) for line in lines]))


def refuse_gaps(name: str, plan: dict[str, Any], found: Collection[tuple[str, str, int]]) -> None:
    """A setting that was not run, or not as often as the others, cannot be compared with them."""
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


SHOWN = {"hard": hard, "table": table, "choose": choose, "decay": decay}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["run", *SHOWN])
    parser.add_argument("plan")
    parser.add_argument("--clinc", type=Path)
    parser.add_argument("--cifar", type=Path)
    parser.add_argument("--problems", nargs="*", help="of the plan's, only these")
    parser.add_argument("--seeds", nargs="*", type=int, help="of the plan's, only these")
    parser.add_argument("--method", default="", help="of the plan's, only those whose names begin so")
    options = parser.parse_args()
    if options.action == "run":
        run(options.plan, options)
    else:
        SHOWN[options.action](options.plan)


if __name__ == "__main__":
    main()
