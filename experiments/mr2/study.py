"""Train methods on problems with several seeds. Results are stored, and stored results are not recomputed.

    python experiments/mr2/study.py run PLAN --clinc FILE.npz --cifar FOLDER    # resumes
    python experiments/mr2/study.py hard PLAN                      # hard third of all problems, in Markdown
    python experiments/mr2/study.py table PLAN                     # all metrics, one table per problem
    python experiments/mr2/study.py choose PLAN                    # best setting of each method, as a plan
    python experiments/mr2/study.py worth PLAN PLAN …              # gain from tuning weight decay, and gain left after
    python experiments/mr2/study.py summary PLAN PLAN …            # one row per problem, for methods in all plans

A plan is a YAML file in this directory:

- ``problems``: files in problems/;
- ``seeds``;
- ``samples``: "choice" (other data, validation samples or held-out training samples), "end" (test samples) or "new"
  (samples that no other plan has used), see sample_sets.py;
- ``settings`` of single problems;
- ``methods``: name → settings of ``classgap train``, for all problems or under the name of a problem;
- ``fitted``: ``choose`` only takes settings with at least this training accuracy.

Results are appended to PLAN.jsonl, one line per run.

A name is a form, followed by training settings from the first ", lr " or ", wd ". ``hard`` has one row per form. A form
without the number at its end is a method, and ``choose`` takes one setting of each: "feature norm 0.03, lr 1" has the
form "feature norm 0.03" and the method "feature norm".
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
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "benchmarks")]  # forms uses a network of benchmarks/
import forms  # noqa: E402, F401 - adds its methods to the registry
import plans  # noqa: E402
import selection  # noqa: E402
import tables  # noqa: E402
import training  # noqa: E402


def run_one(settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Train once and return the metrics."""
    start = time.monotonic()
    try:
        with training.temporary_run(settings, seed) as directory:
            *_, last, final = directory.read_metrics()
    except ArithmeticError as failure:
        return {"failed": str(failure)}
    # With held-out training samples, the test samples are not used.
    metrics, samples = (last, "val") if settings.get("val_fraction") else (final, "test")
    values = {name: round(metrics[f"{samples}_{name}"], 5) for name in tables.METRICS}
    return values | {"train": round(final["train_accuracy"], 4), "seconds": round(time.monotonic() - start, 1)}


def select(planned: list[Any], only: list[Any] | None) -> list[Any]:
    """Restrict a plan to the values given on the command line."""
    return [each for each in planned if not only or each in only]


def run(name: str, options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    plan, files = plans.read_plan(name), {"clinc": options.clinc, "cifar": options.cifar}
    plans.drop_incomplete_line(name)
    done = plans.results_by_run(name)
    for seed in select(plan["seeds"], options.seeds):
        for problem in select(plan["problems"], options.problems):
            base = plans.problem_settings(problem, plan["samples"], files) | plan.get("settings", {}).get(problem, {})
            for method, extra in plans.plan_methods(plan, problem).items():
                if (problem, method, seed) in done or not method.startswith(options.method):
                    continue
                line = {"problem": problem, "method": method, "seed": seed, **run_one(base | (extra or {}), seed)}
                with (plans.HERE / f"{name}.jsonl").open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(line, flush=True)


ONE_PLAN = {"hard": tables.hard, "table": tables.table, "choose": selection.print_chosen}
SEVERAL_PLANS = {"summary": tables.summary, "worth": tables.worth}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["run", *ONE_PLAN, *SEVERAL_PLANS])
    parser.add_argument("plans", nargs="+", metavar="PLAN")
    parser.add_argument("--clinc", type=Path)
    parser.add_argument("--cifar", type=Path)
    parser.add_argument("--problems", nargs="*", help="only these of the plan")
    parser.add_argument("--seeds", nargs="*", type=int, help="only these of the plan")
    parser.add_argument("--method", default="", help="only methods whose names start with this")
    options = parser.parse_args()
    if options.action in SEVERAL_PLANS:
        SEVERAL_PLANS[options.action](options.plans)
        return
    for name in options.plans:
        if options.action == "run":
            run(name, options)
        else:
            ONE_PLAN[options.action](name)


if __name__ == "__main__":
    main()
