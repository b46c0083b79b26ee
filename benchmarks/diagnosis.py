"""How often is the diagnosis right? Audits of constructed problems whose cause is known.

    python benchmarks/diagnosis.py                                  # all configurations, seeds 0 to 4, one core
    python benchmarks/diagnosis.py --store results.jsonl            # stores each result and resumes
    python benchmarks/diagnosis.py --only bias,prior --seeds 0-1    # some causes, some seeds
    python benchmarks/diagnosis.py --store results.jsonl --markdown # tables for the documentation

Thresholds were chosen on seeds 0 and 1 of the development configurations. The test problems are the other seeds and
the held-out configurations, which have other models, numbers of classes and data. Three rates have a target:

- the first-named cause is right, over affected classes that fail (by a binomial test of this benchmark, so that a
  failing class without a cause counts as wrong);
- "wrong-labels" is claimed at any rank for a class whose test labels are right, over audits that checked labels;
- no class of a problem without a cause gets one ("too-few-test-samples" and "not-enough-evidence" claim nothing).
"""

from __future__ import annotations

import argparse
import inspect
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from statistics import NormalDist, fmean
from typing import Any

import torch
from diagnosis_grid import CONFIGURATIONS
from diagnosis_problems import CAUSES, NO_CLAIM, Configuration, Problem, build
from scipy.stats import binom
from threadpoolctl import threadpool_limits

import classgap as cg

DEVELOPMENT_SEEDS = (0, 1)
FAILING_LEVEL = 0.01  # of the binomial test, divided by the number of classes
SETTINGS = cg.AuditSettings(map="none")  # the map takes longer than everything else and is not diagnosed
Result = dict[str, Any]


def run(configuration: Configuration, seed: int, examined: int | None = None) -> Result:
    """Audit one problem and return the truth and the named causes, ready for JSON.

    Args:
        configuration: kind of problem.
        seed: seed of the problem.
        examined: number of samples that the error budget examines, instead of that of the configuration.
    """
    start = time.perf_counter()
    problem = build(configuration, seed)
    built = time.perf_counter()
    known = inspect.signature(cg.Audit.from_predictions).parameters
    given = {name: value for name, value in problem.audit_inputs(configuration.inputs).items() if name in known}
    settings = SETTINGS
    if (examined or configuration.examined) is not None:
        settings = replace(settings, diagnosis_samples=examined or configuration.examined)
    audit = cg.Audit.from_predictions(**given, settings=settings)
    sampled = [notice.values for notice in audit.notices if notice.code == "diagnosis-sampled"]
    return {
        "configuration": str(configuration),
        "seed": seed,
        "cause": configuration.cause,
        "held_out": configuration.held_out,
        "clean": problem.clean,
        "accepted": list(problem.accepted),
        "affected": list(problem.affected),
        "mislabeled": list(problem.mislabeled),
        "failing": failing_classes(problem),
        "accuracy": [round(float(x), 4) for x in problem.correct_K / problem.support_K],
        "diagnosis": [[cause.name for cause in report.diagnosis or ()] for report in audit.classes],
        "labels_checked": any(report.label_issues is not None for report in audit.classes),
        "examined": sampled[0]["examined"] if sampled else audit.overall.n_samples,
        "seconds": [round(built - start, 2), round(time.perf_counter() - built, 2)],
    }


def failing_classes(problem: Problem) -> list[int]:
    """Return classes whose accuracy is significantly below the mean accuracy of all classes."""
    mean = float((problem.correct_K / problem.support_K).mean())
    p_value_K = binom.cdf(problem.correct_K, problem.support_K, mean)
    return [k for k, p in enumerate(p_value_K) if p < FAILING_LEVEL / len(p_value_K)]


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


@dataclass(frozen=True)
class Rate:
    """A fraction with its 95 % Wilson interval."""

    hits: int
    total: int

    def __str__(self) -> str:
        if not self.total:
            return "–"
        low, high = self.interval()
        return f"{percent(self.hits / self.total)} ({self.hits} of {self.total}; {percent(low)} to {percent(high)})"

    def interval(self) -> tuple[float, float]:
        z = NormalDist().inv_cdf(0.975)
        rate, n = self.hits / self.total, self.total
        center = (rate + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * (rate * (1 - rate) / n + z * z / (4 * n * n)) ** 0.5
        return max(0.0, center - half), min(1.0, center + half)


def judged(results: Iterable[Result]) -> Iterator[tuple[Result, str]]:
    """Yield the first-named cause of each affected class that fails ("–" without a diagnosis)."""
    for result in results:
        for k in sorted(set(result["affected"]) & set(result["failing"])):
            yield result, (result["diagnosis"][k] or ["–"])[0]


def right_causes(results: Iterable[Result]) -> Rate:
    named = [first in result["accepted"] for result, first in judged(results)]
    return Rate(sum(named), len(named))


def false_label_claims(results: Iterable[Result], failing_only: bool = False) -> Rate:
    claimed = [
        "wrong-labels" in names
        for result in results
        if result["labels_checked"]  # an audit without scores cannot be wrong about labels
        for k, names in enumerate(result["diagnosis"])
        if k not in result["mislabeled"] and (k in result["failing"] or not failing_only)
    ]
    return Rate(sum(claimed), len(claimed))


def quiet_problems(results: Iterable[Result]) -> Rate:
    quiet = [
        not any(name not in NO_CLAIM for names in result["diagnosis"] for name in names)
        for result in results
        if result["clean"]
    ]
    return Rate(sum(quiet), len(quiet))


def claims_elsewhere(results: Iterable[Result]) -> Rate:
    """Classes that the construction left alone and that get a cause, in problems with a constructed cause."""
    claimed = [
        any(name not in NO_CLAIM for name in names)
        for result in results
        if result["accepted"]
        for k, names in enumerate(result["diagnosis"])
        if k not in result["affected"]
    ]
    return Rate(sum(claimed), len(claimed))


def macro_right(results: Sequence[Result]) -> str:
    causes = {result["cause"] for result in results}
    rates = [right_causes([result for result in results if result["cause"] == cause]) for cause in sorted(causes)]
    known = [rate.hits / rate.total for rate in rates if rate.total]
    return f"{percent(fmean(known))} ({len(known)} causes)" if known else "–"


def is_development(result: Result) -> bool:
    return not result["held_out"] and result["seed"] in DEVELOPMENT_SEEDS


def rates_table(results: Sequence[Result]) -> list[list[str]]:
    """Return the rates on development problems, on test problems, and on those with held-out configurations."""
    parts = (
        [result for result in results if is_development(result)],
        [result for result in results if not is_development(result)],
        [result for result in results if result["held_out"]],
    )
    rows = [["", "target", "development problems", "test problems", "test problems with held-out configurations"]]
    rows.append(["first-named cause is right", "≥ 90 %", *(str(right_causes(part)) for part in parts)])
    rows.append(["the same, mean over causes", "", *(macro_right(part) for part in parts)])
    rows.append(["“wrong-labels” on clean labels", "≤ 1 %", *(str(false_label_claims(part)) for part in parts)])
    rows.append(["the same, failing classes only", "", *(str(false_label_claims(part, True)) for part in parts)])
    rows.append(["no cause named where none was constructed", "≥ 95 %", *(str(quiet_problems(part)) for part in parts)])
    rows.append(["a cause named for an unaffected class", "", *(str(claims_elsewhere(part)) for part in parts)])
    return rows


def causes_table(results: Sequence[Result]) -> list[list[str]]:
    """Return counts of the first-named cause (columns) of affected failing classes for each true cause (rows)."""
    pairs = [(result["cause"], first, first in result["accepted"]) for result, first in judged(results)]
    named = sorted({first for _, first, _ in pairs}, key=lambda name: (name == "–", name in NO_CLAIM, name))
    rows = [["true cause", *named, "right"]]
    for cause in CAUSES:
        here = [pair for pair in pairs if pair[0] == cause]
        if here:
            counts = Counter(first for _, first, _ in here)
            right = sum(accepted for _, _, accepted in here)
            rows.append([cause, *(str(counts[name] or "") for name in named), f"{right} of {len(here)}"])
    return rows


def constructions_table() -> list[list[str]]:
    """Return what each true cause is: the first line of the function that constructs it."""
    rows = [["true cause", "construction"]]
    return rows + [[cause, (construct.__doc__ or "").partition("\n")[0]] for cause, construct in CAUSES.items()]


def format_table(rows: list[list[str]], markdown: bool) -> str:
    if markdown:
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        lines.insert(1, "|" + "---|" * len(rows[0]))
        return "\n".join(lines)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def mistakes(results: Iterable[Result]) -> Iterator[str]:
    """Yield one line for each wrong first-named cause and each claim in a problem without a cause."""
    for result in results:
        where = f"{result['configuration']} seed {result['seed']}"
        for k in sorted(set(result["affected"]) & set(result["failing"])):
            if (result["diagnosis"][k] or ["–"])[0] not in result["accepted"]:
                yield f"{where}: class {k}, {', '.join(result['diagnosis'][k]) or 'no diagnosis'}"
        for k, names in enumerate(result["diagnosis"]):
            if result["clean"] and any(name not in NO_CLAIM for name in names):
                yield f"{where}: class {k} without a cause, {', '.join(names)}"
            elif k not in result["mislabeled"] and "wrong-labels" in names:
                yield f"{where}: class {k} with clean labels, {', '.join(names)}"


def read_store(path: Path | None) -> list[Result]:
    """Read stored results; an unfinished last line is dropped."""
    if path is None or not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    whole = lines[:-1]
    if lines[-1]:
        path.write_text("".join(line + "\n" for line in whole), encoding="utf-8")
    return [json.loads(line) for line in whole]


def use_one_thread() -> None:
    torch.set_num_threads(1)
    threadpool_limits(1)


def run_all(tasks: Sequence[tuple[Configuration, int]], jobs: int) -> Iterator[Result]:
    if jobs == 1:
        use_one_thread()
        yield from (run(*task) for task in tasks)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn"), use_one_thread) as pool:
        for future in as_completed([pool.submit(run, *task) for task in tasks]):
            yield future.result()


def parse_seeds(text: str) -> list[int]:
    """Parse "0-4" or "0,2,3"."""
    seeds: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def parse_causes(text: str) -> list[str]:
    causes = text.split(",")
    unknown = sorted(set(causes) - set(CAUSES))
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown cause {', '.join(unknown)}; choose from {', '.join(CAUSES)}")
    return causes


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Measure how often the diagnosis names the true cause.")
    parser.add_argument(
        "--seeds", type=parse_seeds, default=parse_seeds("0-4"), help="such as 0-4 or 0,2 (default 0-4)"
    )
    parser.add_argument("--only", type=parse_causes, help="comma-separated causes: " + ", ".join(CAUSES))
    parser.add_argument("--store", type=Path, metavar="FILE", help="JSON lines: append results, skip stored ones")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes, one thread each (default 1)")
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    parser.add_argument("--mistakes", action="store_true", help="list every wrong diagnosis")
    options = parser.parse_args(arguments)

    chosen = [c for c in CONFIGURATIONS if options.only is None or c.cause in options.only]
    wanted = {(str(c), seed) for c in chosen for seed in options.seeds}
    results = [r for r in read_store(options.store) if (r["configuration"], r["seed"]) in wanted]
    finished = {(r["configuration"], r["seed"]) for r in results}
    tasks = [(c, seed) for c in chosen for seed in options.seeds if (str(c), seed) not in finished]
    for result in run_all(tasks, options.jobs):
        results.append(result)
        if options.store is not None:
            with options.store.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")

    if options.mistakes:
        print("\n".join(mistakes(results)), end="\n\n")
    seconds = [sum(part) for part in zip(*(r["seconds"] for r in results), strict=True)] or [0.0, 0.0]
    print(
        f"{len(chosen)} configurations, {len(results)} problems; {seconds[0]:.0f} s models, {seconds[1]:.0f} s audits\n"
    )
    print(format_table(rates_table(results), options.markdown), end="\n\n")
    for title, part in (
        ("Development", [r for r in results if is_development(r)]),
        ("Report", [r for r in results if not is_development(r)]),
    ):
        print(f"{title}: true cause (rows), first-named cause of affected failing classes (columns)\n")
        print(format_table(causes_table(part), options.markdown), end="\n\n")
    print(format_table(constructions_table(), options.markdown))


if __name__ == "__main__":
    main()
