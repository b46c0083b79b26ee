"""Measure remedies on random splits of samples that no network was trained on, and print the tables of gains.

    python benchmarks/remedies_runs.py RUNS --clinc FILE --cifar FOLDER      # trains; resumes
    python benchmarks/remedies.py measure RUNS --predictions FOLDER          # resumes
    python benchmarks/remedies.py extend RUNS                                # adds methods to measured splits
    python benchmarks/remedies.py targets                                    # prints targets, results, met or not
    python benchmarks/remedies.py docs                                       # writes the tables of docs/remedies.md

In each split, remedies are fitted and chosen on some of the samples (``classgap fix`` with its default settings), and
the change is measured on the others. Classes are ranked by cross-entropy on the fitting samples. Results are appended
to results/remedies.jsonl, one line per split.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import remedies_headroom
import remedies_targets
import remedies_training
import stored
import torch
from remedies_runs import BASELINE, PROBLEMS, SEEDS, method_names, run_path

from classgap.audit import AuditSettings, read_predictions
from classgap.audit.io.predictions import Predictions
from classgap.engine import RunDirectory
from classgap.remedies.evaluation import Ranking, group_weights, measure
from classgap.remedies.fix import fix, fix_samples
from classgap.remedies.results import FixResult
from classgap.remedies.rule import Rule
from classgap.remedies.runs import read_runs
from classgap.remedies.samples import Samples

RESULTS = stored.RESULTS / "remedies.jsonl"
SECTION = stored.Section("docs/remedies.md", "tables")
FIX_ROW = "**classgap fix**"
IMAGES = ("cifar100-10", "cifar100")
SEVERAL = ("ensemble", "soup")  # sources that need several runs
TARGETS = (
    "We set these targets before we measured. Results are means over splits, or over the searches of a problem;\n"
    "where nothing was chosen, the change is 0."
)
TITLES = {
    "20news": "20 Newsgroups, predictions only",
    "cifar10": "CIFAR-10, predictions only",
    "mnist1d": "MNIST-1D, one run",
    "mnist1d × 5": "MNIST-1D, five runs",
    "mnist1d-lt": "MNIST-1D with a long tail (imbalance 20), one run",
    "mnist1d-lt × 5": "MNIST-1D with a long tail, five runs",
    "digits": "digits, one run",
    "digits × 5": "digits, five runs",
    "clinc150": "CLINC150, one run",
    "clinc150 × 5": "CLINC150, five runs",
    "cifar100-10": "10 % of CIFAR-100, one run with its images",
    "cifar100-10 × 3": "10 % of CIFAR-100, three runs with their images",
    "cifar100": "CIFAR-100, one run with its images",
}
SEARCHED = {
    "mnist1d": "MNIST-1D",
    "mnist1d-lt": "MNIST-1D with a long tail",
    "digits": "digits",
    "clinc150": "CLINC150",
    "cifar100-10": "CIFAR-100, 10 % of it",
}
MEASURES = ("overall", "easy", "medium", "hard")
FIT = {
    "20news": 0.5,
    "cifar10": 0.5,
    "mnist1d": 0.1,
    "mnist1d-lt": 0.1,
    "digits": 0.33,
    "clinc150": 0.4,
    "cifar100-10": 0.5,
}


def take(data: Predictions, rows: np.ndarray[Any, Any], name: str) -> Predictions:
    """Some of the samples, with their scores but without features and the head."""
    return replace(
        data.take(rows), features_ND=None, weight_KD=None, bias_K=None, train_features_MD=None, index_N=None, name=name
    )


def random_split(targets: np.ndarray[Any, Any], fraction: float, seed: int) -> tuple[Any, Any]:
    """Rows to fit on and rows to test on, the same fraction of each class."""
    rng = np.random.default_rng([seed, 7])
    fit = np.concatenate(
        [rng.permutation(rows)[: round(fraction * len(rows))] for k in np.unique(targets)
         if len(rows := np.flatnonzero(targets == k))]
    )  # fmt: skip
    inside = np.zeros(len(targets), dtype=bool)
    inside[fit] = True
    return np.flatnonzero(inside), np.flatnonzero(~inside)


def summarize(result: FixResult) -> dict[str, Any]:
    """Changes of all remedies on the test samples, and the proof of the chosen one."""
    found: dict[str, Any] = {
        "remedies": {row.name: {name: round(row.change[name], 5) for name in MEASURES} for row in result.remedies},
        "chosen": result.chosen,
    }
    if result.proof is not None:
        found["proof"] = {name: round(result.proof[name].change, 5) for name in MEASURES}
        found["interval"] = [round(bound, 5) for bound in result.proof["hard"].interval]
    return found


def measure_splits(
    problem: str,
    models: list[list[Predictions]],
    done: set[tuple[str, int]],
    trained: list[dict[str, Predictions]],
    splits: int,
) -> Iterator[dict[str, Any]]:
    """Split each model's samples; ``models`` has one list of predictions per seed, ``trained`` other methods."""
    for split in range(splits):
        if (problem, split) in done:
            continue
        at = split % len(models)
        data = models[at]
        fit_rows, test_rows = random_split(data[0].targets_N, FIT[strip_count(problem)], split)
        fits, tests = ([take(each, rows, f"m{i}") for i, each in enumerate(data)] for rows in (fit_rows, test_rows))
        line = {"problem": problem, "split": split, **summarize(fix(fits, tests))}
        if trained:
            line["remedies"] |= trained_changes(data[0], trained[at], fit_rows, test_rows)
        yield line


def trained_changes(
    base: Predictions, trained: dict[str, Predictions], fit_rows: np.ndarray[Any, Any], test_rows: np.ndarray[Any, Any]
) -> dict[str, dict[str, float]]:
    """Changes that other training methods make on the test samples, in thirds that the fitting samples rank."""
    targets, predictions = base.targets_N, base.predictions_N
    ranking = Ranking.from_predictions(predictions[fit_rows], targets[fit_rows], base.num_classes)
    weights = group_weights(targets[test_rows], ranking, base.num_classes)
    found = {}
    for method, other in trained.items():
        change = measure(predictions[test_rows], other.predictions_N[test_rows], targets[test_rows], weights)
        found[f"train: {method}"] = {name: round(change[name].change, 5) for name in MEASURES}
    return found


def extend(options: argparse.Namespace) -> None:
    """Add training methods to stored splits. Runs of the same seed are identical, so baselines may be trained again."""
    lines = stored.read_lines(RESULTS)
    for problem, models, trained in problems(options.runs, None):
        if not trained or len(models) < len(SEEDS):
            continue
        complete = set.intersection(*(set(each) for each in trained))
        for line in lines:
            if line["problem"] == problem:
                at = line["split"] % len(models)
                split = random_split(models[at][0].targets_N, FIT[problem], line["split"])
                methods = {name: trained[at][name] for name in trained[at] if name in complete}
                line["remedies"] |= trained_changes(models[at][0], methods, *split)
    for problem in (name for name in IMAGES if name in FIT):
        changes = trained_image_changes(problem, options.runs)
        for line in lines:
            if line["problem"] == problem:
                line["remedies"] |= changes(line["split"])
    stored.write_lines(RESULTS, lines)


def measure_images(problem: str, samples: Samples, done: set[tuple[str, int]], splits: int) -> Iterator[dict[str, Any]]:
    """Split the validation and test images of runs, with the scores that ``samples`` has of them."""
    assert samples.test is not None
    targets = np.concatenate([samples.fit.targets_N, samples.test.targets_N])
    pooled = [torch.cat([each.logits_NK, each.test_logits_NK]) for each in samples.sources]  # type: ignore[list-item]
    whole = Predictions.from_arrays(
        targets, logits=pooled[0], class_names=samples.fit.class_names, train_counts=samples.fit.train_counts_K
    )
    context, limits = Rule().resolve(whole.class_names, whole.train_counts_K)
    for split in range(splits):
        if (problem, split) in done:
            continue
        fraction = FIT.get(strip_count(problem), len(samples.fit) / len(targets))
        fit_rows, test_rows = random_split(targets, fraction, split)
        sources = tuple(
            replace(
                each, logits_NK=logits[torch.from_numpy(fit_rows)], test_logits_NK=logits[torch.from_numpy(test_rows)]
            )
            for each, logits in zip(samples.sources, pooled, strict=True)
        )
        parts = (take(whole, fit_rows, "val"), take(whole, test_rows, "test"))
        settings = AuditSettings(map="none", diagnose=False)
        yield {
            "problem": problem,
            "split": split,
            **summarize(fix_samples(Samples(*parts, sources), context, limits, settings)),
        }


def trained_image_changes(problem: str, runs: Path) -> Callable[[int], dict[str, dict[str, float]]]:
    """Return a function of the split: changes that other training methods make to the baseline of the same seed.

    A method is measured for the seeds that are finished, in turn.
    """
    plan = PROBLEMS[problem]
    pairs: dict[str, list[tuple[Predictions, Predictions]]] = {}
    for seed in plan.get("seeds", SEEDS):
        paths = {method: run_path(runs, problem, method, seed) for method in method_names(problem)}
        found = {method: pooled_predictions(path) for method, path in paths.items() if is_finished(path)}
        base = found.pop(BASELINE, None)
        for method, other in found.items():
            if base is not None:
                pairs.setdefault(method, []).append((base, other))

    def changes(split: int) -> dict[str, dict[str, float]]:
        rows = {}
        for method, seeds in pairs.items():
            base, other = seeds[split % len(seeds)]
            rows |= trained_changes(base, {method: other}, *random_split(base.targets_N, FIT[problem], split))
        return rows

    return changes


def pooled_predictions(run: Path) -> Predictions:
    """Validation and test predictions of a run."""
    val, test = read_predictions(RunDirectory(run).val_predictions), read_predictions(run)
    return Predictions.from_arrays(
        np.concatenate([val.targets_N, test.targets_N]),
        predictions=np.concatenate([val.predictions_N, test.predictions_N]),
        class_names=test.class_names,
    )


def strip_count(problem: str) -> str:
    """Name of a problem without its number of runs.

    >>> strip_count("digits × 5")
    'digits'
    """
    return problem.partition(" × ")[0]


def problems(runs: Path, predictions: Path | None) -> Iterator[tuple[str, list[list[Predictions]], list[Any]]]:
    """Problems whose inputs exist."""
    if predictions is not None:
        for name in ("20news", "cifar10"):
            yield name, [[read_predictions(predictions / f"{name}_test_cleanlab.npz")]], []
    for name, plan in PROBLEMS.items():
        seeds = plan.get("seeds", SEEDS)
        finished = [seed for seed in seeds if is_finished(run_path(runs, name, BASELINE, seed))]
        if not finished or name in IMAGES:
            continue
        base = [read_predictions(run_path(runs, name, BASELINE, seed)) for seed in finished]
        trained = [
            {
                method: read_predictions(path)
                for method in method_names(name)
                if method != BASELINE and is_finished(path := run_path(runs, name, method, seed))
            }
            for seed in finished
        ]
        yield name, [[each] for each in base], trained
        if len(base) > 1:
            yield f"{name} × 5", [base], []


def is_finished(run: Path) -> bool:
    """Whether a run has its predictions."""
    return (run / "predictions.safetensors").exists()


def run(options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    done = {(line["problem"], line["split"]) for line in stored.read_lines(RESULTS)}
    for name, models, trained in problems(options.runs, options.predictions):
        if options.only and name not in options.only:
            continue
        for line in measure_splits(name, models, done, trained, options.splits):
            stored.append_line(RESULTS, line)
            print(name, line["split"], line["chosen"], line.get("proof"), flush=True)
    for name in IMAGES:
        run_images(name, options, done)


def run_images(name: str, options: argparse.Namespace, done: set[tuple[str, int]]) -> None:
    """Measure one run and all runs of an image problem; views, weight averages and heads are computed once."""
    seeds = PROBLEMS[name].get("seeds", SEEDS)
    paths = [path for seed in seeds if is_finished(path := run_path(options.runs, name, BASELINE, seed))]
    wanted = [name] if len(paths) < 2 else [name, f"{name} × {len(paths)}"]
    wanted = [each for each in wanted if not options.only or each in options.only]
    if not paths or all((each, split) in done for each in wanted for split in range(options.splits)):
        return
    samples = read_runs(paths, lambda message: print(message, flush=True))
    one = replace(samples, sources=tuple(each for each in samples.sources if not each.name.startswith(SEVERAL)))
    for problem in wanted:
        for line in measure_images(problem, one if problem == name else samples, done, options.splits):
            if problem == name and name in FIT:
                line["remedies"] |= trained_image_changes(name, options.runs)(line["split"])
            stored.append_line(RESULTS, line)
            print(problem, line["split"], line["chosen"], line.get("proof"), flush=True)


def by_remedy(lines: list[dict[str, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """Remedy → changes in points (splits, measures); ``fix`` itself is 0 where it chose nothing."""
    names = dict.fromkeys(name for line in lines for name in line["remedies"])
    changes = {
        name: [[100 * line["remedies"][name][each] for each in MEASURES] for line in lines if name in line["remedies"]]
        for name in names
    }
    chosen = [[100 * line.get("proof", {}).get(each, 0.0) for each in MEASURES] for line in lines]
    return {FIX_ROW: np.array(chosen), **{name: np.array(values) for name, values in changes.items()}}


def markdown_table(lines: list[dict[str, Any]]) -> str:
    """One row per remedy: mean change over the splits and the range of the middle 95 % of them."""
    rows = ["| remedy | hard third | medium third | easy third | overall |", "|---|---|---|---|---|"]
    changes = by_remedy(lines)
    at = {name: MEASURES.index(name) for name in ("hard", "medium", "easy", "overall")}
    for name in sorted(changes, key=lambda name: (name != FIX_ROW, -changes[name][:, at["hard"]].mean())):
        cells = [describe(changes[name][:, column]) for column in at.values()]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def describe(values: np.ndarray[Any, Any]) -> str:
    """Mean and range of changes."""
    low, high = np.quantile(values, [0.025, 0.975])
    return f"{stored.signed(values.mean())} ({stored.signed(low)} to {stored.signed(high)})"


def tables() -> str:
    """All tables of docs/remedies.md."""
    lines = stored.read_lines(RESULTS)
    sections = [section(name, own) for name in TITLES if (own := [each for each in lines if each["problem"] == name])]
    found = f"### Targets\n\n{TARGETS}\n\n{remedies_targets.to_markdown(targets())}\n"
    return "\n".join([*sections, training_section(), found])


def targets() -> list[remedies_targets.Target]:
    """The targets, compared with all stored results."""
    return remedies_targets.targets(stored.read_lines(RESULTS), stored.read_lines(remedies_training.RESULTS), TITLES)


def print_targets(options: argparse.Namespace) -> None:
    for each in targets():
        print(f"{'met' if each.is_met else 'NOT MET':8}{each.goal}: {each.reached}")


def training_section() -> str:
    """Title and table of the searches."""
    table = remedies_training.training_table(stored.read_lines(remedies_training.RESULTS), SEARCHED)
    return f"### With a training budget\n\n{table}\n"


def section(problem: str, own: list[dict[str, Any]]) -> str:
    """Title, counts and table of one problem."""
    worse = sum("interval" in line and line["interval"][1] < 0 for line in own)
    better = sum("interval" in line and line["interval"][0] > 0 for line in own)
    acted = sum(line["chosen"] is not None for line in own)
    counts = (
        f"{len(own)} splits. `classgap fix` chose a remedy in {acted}; on the test samples the hard third was "
        f"significantly better in {better} and significantly worse in {worse}."
    )
    bounds = remedies_headroom.read_bounds().get(problem)
    limits = f"**What could be gained.** {remedies_headroom.describe(bounds)}\n\n" if bounds else ""
    return f"### {TITLES[problem]}\n\n{counts}\n\n{limits}{markdown_table(own)}\n"


def write_docs(options: argparse.Namespace) -> None:
    SECTION.write(tables())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    measured = commands.add_parser("measure")
    measured.add_argument("runs", type=Path)
    measured.add_argument("--predictions", type=Path, help="folder of 20news_test_cleanlab.npz, cifar10_…")
    measured.add_argument("--only", nargs="*", help="problems to measure")
    measured.add_argument("--splits", type=int, default=50, help="splits per problem")
    measured.set_defaults(call=run)
    extended = commands.add_parser("extend")
    extended.add_argument("runs", type=Path)
    extended.set_defaults(call=extend)
    commands.add_parser("targets").set_defaults(call=print_targets)
    commands.add_parser("docs").set_defaults(call=write_docs)
    options = parser.parse_args()
    options.call(options)


if __name__ == "__main__":
    main()
