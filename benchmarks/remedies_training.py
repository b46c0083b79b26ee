"""Measure ``classgap fix --data …``: searches with a fixed number of trials, proved once on unseen test samples.

    python benchmarks/remedies_training.py SEARCHES --clinc FILE --cifar FOLDER      # resumes
    python benchmarks/remedies.py docs                                               # writes the tables

The change is measured against the baseline of the search: cross-entropy with default settings, trained on all training
samples. A number of trials instead of a time makes searches the same on every machine. Results are appended to
results/remedies_training.jsonl, one line per problem and seed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import stored
import torch

from classgap.remedies.search import SearchConfig, fix_by_training

RESULTS = stored.RESULTS / "remedies_training.jsonl"
MEASURES = ("overall", "easy", "medium", "hard")

PROBLEMS: dict[str, dict[str, Any]] = {
    "digits": {"data": "digits:test_fraction=0.7:data_seed=1618", "model": "mlp:width=256"},
    "mnist1d": {"data": "mnist1d:seed=2236:n_test=10000", "epochs": 50},
    "clinc150": {"data": "features:{clinc}:test_split=new:fraction=0.2:data_seed=2718", "model": "mlp:width=256"},
    "mnist1d-lt": {"data": "mnist1d:seed=2236:n_train=4000:n_test=10000:imbalance=20", "epochs": 50},
    "cifar100-10": {"data": "folder:{cifar}:size=32:fraction=0.1:data_seed=1618", "model": "resnet20", "epochs": 15},
}


def training_table(lines: list[dict[str, Any]], titles: dict[str, str]) -> str:
    """One row per search: the chosen remedy, and the changes on the test samples in points."""
    rows = [
        "| problem | search | selection on | chosen | hard third, before → after | change | easy third | overall | "
        "hard third, all data | overall, all data |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for line in sorted(lines, key=lambda each: (list(titles).index(each["problem"]), each["seed"])):
        cells = [titles[line["problem"]], *_describe_search(line), line["chosen"] or "nothing"]
        if line.get("proof"):
            proof = line["proof"]
            low, high = proof["hard"]["interval"]
            plain = line.get("plain") or {name: proof[name]["before"] for name in MEASURES}
            cells += [
                f"{100 * proof['hard']['before']:.1f} → {100 * proof['hard']['after']:.1f}",
                f"{_points(proof['hard']['after'] - proof['hard']['before'])} ({_points(low)} to {_points(high)})",
                *(_points(proof[name]["after"] - proof[name]["before"]) for name in ("easy", "overall")),
                *(_points(proof[name]["after"] - plain[name]) for name in ("hard", "overall")),
            ]
        else:
            cells += ["–"] * 6
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _describe_search(line: dict[str, Any]) -> tuple[str, str]:
    """The limit of a search, and the samples that chose. ``plain`` is stored where the baseline had fewer samples."""
    if "plain" in line:
        return f"{line['budget']}, {line['search'].split(' in ')[0].removeprefix('searched ')}", "held-out fifth"
    return f"{line['n_trials']} trials", "five folds"


def _points(change: float) -> str:
    text = f"{100 * change:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def measure(problem: str, settings: dict[str, Any], seed: int, n_trials: int, out: Path) -> dict[str, Any]:
    """Search and prove."""
    config = SearchConfig(**settings, n_trials=n_trials, seed=seed, out=out)
    result = fix_by_training(config, progress=lambda message: print(message, flush=True))
    line: dict[str, Any] = {
        "problem": problem,
        "seed": seed,
        "settings": {name: Path(value).name if name == "data" else value for name, value in settings.items()},
        "n_trials": n_trials,
        "search": list(result.notices),
        "n_fit": result.n_fit,
        "remedies": {row.name: {name: round(row.change[name], 5) for name in MEASURES} for row in result.remedies},
        "estimates": {row.name: {name: round(row.estimate[name], 5) for name in MEASURES} for row in result.remedies},
        "chosen": result.chosen,
    }
    if result.proof is not None:
        line["proof"] = {
            name: {
                "before": round(result.proof[name].before, 5),
                "after": round(result.proof[name].after, 5),
                "interval": [round(bound, 5) for bound in result.proof[name].interval],
            }
            for name in MEASURES
        }
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="where to keep the searches")
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[1900])
    parser.add_argument("--n-trials", type=int, default=8, help="trials of each search")
    parser.add_argument("--clinc", type=Path, help="CLINC150 features with new samples")
    parser.add_argument("--cifar", type=Path, help="folder of CIFAR-100 images")
    options = parser.parse_args()
    torch.set_num_threads(1)
    done = {(line["problem"], line["seed"]) for line in stored.read_lines(RESULTS)}
    for seed in options.seeds:
        for problem in options.problems:
            if (problem, seed) in done:
                continue
            settings = PROBLEMS[problem] | {
                "data": PROBLEMS[problem]["data"].format(clinc=options.clinc, cifar=options.cifar)
            }
            out = options.out / f"{problem}-{seed}"
            line = measure(problem, settings, seed, options.n_trials, out)
            stored.append_line(RESULTS, line)
            print(problem, seed, line["chosen"], line.get("proof"), flush=True)


if __name__ == "__main__":
    main()
