"""Methods on problems over seeds, through ``classgap train``; every result is kept, none is computed twice.

    python experiments/mr2/study.py run PLAN --clinc FILE.npz --cifar FOLDER    # goes on where it stopped
    python experiments/mr2/study.py hard PLAN                      # the hard third of all problems, in Markdown
    python experiments/mr2/study.py table PLAN                     # all figures, a table a problem
    python experiments/mr2/study.py choose PLAN                    # the best setting of each method, as a plan
    python experiments/mr2/study.py worth PLAN PLAN …              # what tuning weight decay is worth, and what is left
    python experiments/mr2/study.py summary PLAN PLAN …            # a row a problem, for methods that all plans have

A plan is a YAML file beside this one: ``problems`` (files in problems/), ``seeds``, ``samples`` ("choice": other data,
validation samples or held-out training samples; "end": the test samples; "new": samples that no other plan has looked
at, see samples.py), ``settings`` of single problems, and
``methods``: name → settings of ``classgap train``, the same for all problems or under the problem's name. With
``fitted`` in a plan, ``choose`` takes settings that fit at least this share of the training samples. Results are
appended to PLAN.jsonl, a line a training.

A name is a form and then, from the first ", lr " or ", wd " on, how it was trained. ``hard`` has a row for each form. A
form without the number at its end is a method, and ``choose`` takes one setting of each: "feature norm 0.03, lr 1" is
of the form "feature norm 0.03" and of the method "feature norm".
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "benchmarks")]  # forms has a network of benchmarks/
import choosing  # noqa: E402
import forms  # noqa: E402, F401 - adds its methods to the registry
import plans  # noqa: E402
import tables  # noqa: E402
import training  # noqa: E402


def one(settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """The figures of one training."""
    began = time.monotonic()
    try:
        with training.trained(settings, seed) as made:
            *_, last, final = made.read_metrics()
    except ArithmeticError as failure:
        return {"failed": str(failure)}
    # Where training samples are held out, these are what is looked at, and not the test samples.
    seen, samples = (last, "val") if settings.get("val_fraction") else (final, "test")
    figures = {name: round(seen[f"{samples}_{name}"], 5) for name in tables.FIGURES}
    return figures | {"train": round(final["train_accuracy"], 4), "seconds": round(time.monotonic() - began, 1)}


def asked(planned: list[Any], only: list[Any] | None) -> list[Any]:
    """Of what a plan has, what was asked for on the command line."""
    return [each for each in planned if not only or each in only]


def run(name: str, options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    plan, files = plans.read_plan(name), {"clinc": options.clinc, "cifar": options.cifar}
    plans.mend(name)
    done = plans.by_run(name)
    for seed in asked(plan["seeds"], options.seeds):
        for problem in asked(plan["problems"], options.problems):
            base = plans.settings_of(problem, plan["samples"], files) | plan.get("settings", {}).get(problem, {})
            for method, extra in plans.methods_of(plan, problem).items():
                if (problem, method, seed) in done or not method.startswith(options.method):
                    continue
                line = {"problem": problem, "method": method, "seed": seed, **one(base | (extra or {}), seed)}
                with (plans.HERE / f"{name}.jsonl").open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(line, flush=True)


SHOWN = {"hard": tables.hard, "table": tables.table, "choose": choosing.choose}
OVER_PLANS = {"summary": tables.summary, "worth": tables.worth}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["run", *SHOWN, *OVER_PLANS])
    parser.add_argument("plans", nargs="+", metavar="PLAN")
    parser.add_argument("--clinc", type=Path)
    parser.add_argument("--cifar", type=Path)
    parser.add_argument("--problems", nargs="*", help="of the plan's, only these")
    parser.add_argument("--seeds", nargs="*", type=int, help="of the plan's, only these")
    parser.add_argument("--method", default="", help="of the plan's, only those whose names begin so")
    options = parser.parse_args()
    if options.action in OVER_PLANS:
        OVER_PLANS[options.action](options.plans)
        return
    for name in options.plans:
        if options.action == "run":
            run(name, options)
        else:
            SHOWN[options.action](name)


if __name__ == "__main__":
    main()
