"""Train the networks of the league table: one run directory per problem, remedy and seed. Finished runs are kept.

The learning rate and weight decay of each method are those that searches with equal budgets chose
(experiments/mr2-search.yaml and remedies-search.yaml). With a long tail, the methods of the first search and those for
long tails have a search of their own, and the others use their settings on balanced MNIST-1D. Methods on CIFAR-100 use
the settings of cross-entropy. Seeds are fresh: no search has used them.
"""

from __future__ import annotations

import argparse
import functools
from pathlib import Path
from typing import Any

import torch

from classgap.data import load
from classgap.engine import TrainConfig, train
from classgap.engine.config import parse_settings
from classgap.reproduce.catalog import load_recipe
from classgap.reproduce.cells import make_plan
from classgap.reproduce.results import RecipeResult, collect
from classgap.reproduce.store import ResultStore

ROOT = Path(__file__).parents[1]
SEEDS = (1700, 1701, 1702, 1703, 1704)
BASELINE = "cross-entropy"

MNIST1D = {
    BASELINE: {"method": "erm", "lr": 0.3, "weight_decay": 0.01},
    "default settings, no search": {"method": "erm"},
    "MR²": {"method": "mr2", "lr": 0.3, "weight_decay": 0.01},
    "feature norm": {"method": "feature-norm", "lr": 0.3, "weight_decay": 0.01},
}
DIGITS = {
    BASELINE: {"method": "erm", "lr": 1.0, "weight_decay": 0.005},
    "default settings, no search": {"method": "erm"},
    "MR²": {"method": "mr2", "lr": 0.3, "weight_decay": 0.002},
    "feature norm": {"method": "feature-norm", "lr": 0.3, "weight_decay": 0.002},
}
CLINC = {
    BASELINE: {"method": "erm", "lr": 0.3, "weight_decay": 0.0005},
    "default settings, no search": {"method": "erm"},
    "MR²": {"method": "mr2", "lr": 1.0, "weight_decay": 0.002},
    "feature norm": {"method": "feature-norm", "lr": 1.0, "weight_decay": 0.002},
}
CIFAR100_10 = {
    BASELINE: {"method": "erm", "lr": 0.1, "weight_decay": 0.002},
    "MR²": {"method": "mr2", "lr": 0.1, "weight_decay": 0.002},
}


load_cached = functools.cache(load)


@functools.cache
def search() -> RecipeResult:
    """Return the stored results of the search."""
    plan = make_plan(load_recipe(str(ROOT / "experiments" / "remedies-search.yaml")), "cpu")
    return collect(plan, ResultStore(ROOT / "results"))


def searched(problem: str) -> dict[str, dict[str, Any]]:
    """Return the settings of each method with the highest mean accuracy of the hard third in the search."""
    found = {}
    for name, column, methods in SEARCHES.get(problem, ()):
        part = search().recipe.parts[name]
        hard = {entry.row: entry.mean for entry in search().part(name) if entry.column == column}
        for method in methods:
            rows = [row for row in hard if row.startswith(f"{method}, ")]
            found[method] = dict(part.rows[max(rows, key=lambda row: (hard[row] or 0.0, row))])
    return found


def also(methods: dict[str, dict[str, Any]], **others: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Add methods with the settings of cross-entropy."""
    return methods | {name.replace("_", " "): methods[BASELINE] | extra for name, extra in others.items()}


OTHERS = ("EMA", "SWA", "ELM", "LMDL", "focal", "group DRO", "SAM", "DRoP", "CDB")
LONG_TAIL = ("logit adjustment", "balanced softmax", "LDAM-DRW", "cRT", "class-balanced sampling")
SEARCHES = {  # problem → part and column of the recipe, and the methods that it has settings for
    "mnist1d": [("a", "MNIST-1D, 40 epochs", OTHERS)],
    "mnist1d-lt": [
        ("b", "MNIST-1D with a long tail", (BASELINE, "MR²", "feature norm", *LONG_TAIL)),
        ("a", "MNIST-1D, 40 epochs", OTHERS),
    ],
    "digits": [("a", "digits", OTHERS)],
    "clinc150": [("a", "CLINC150", OTHERS)],
}

PROBLEMS: dict[str, dict[str, Any]] = {
    "mnist1d": {"base": {"data": "mnist1d:seed=3141:n_test=20000", "epochs": 40}, "methods": MNIST1D},
    "mnist1d-lt": {
        "base": {"data": "mnist1d:seed=3141:n_train=4000:n_test=20000:imbalance=20", "epochs": 40},
        "methods": {"default settings, no search": {"method": "erm"}},
    },
    "digits": {"base": {"data": "digits:test_fraction=0.7", "model": "mlp:width=256", "epochs": 40},
               "methods": DIGITS},
    "clinc150": {
        "base": {"data": "features:{clinc}:test_split=new:fraction=0.2:data_seed=2718", "model": "mlp:width=256",
                 "epochs": 60},
        "methods": CLINC,
    },
    "cifar100-10": {
        "base": {"data": "folder:{cifar}:size=32:fraction=0.1:data_seed=2718", "model": "resnet20", "epochs": 20,
                 "batch_size": 64, "precision": "bf16", "channels_last": True, "augment": "crop-flip",
                 "val_fraction": 0.1, "split_seed": 0},
        "methods": also(CIFAR100_10, AutoAugment={"augment": "auto-augment"}, EMA={"ema_decay": 0.99}),
        "seeds": SEEDS[:3],
    },
    "cifar100": {
        "base": {"data": "folder:{cifar}:size=32", "model": "resnet20", "epochs": 30, "batch_size": 128, "lr": 0.1,
                 "weight_decay": 5e-4, "precision": "bf16", "channels_last": True, "augment": "crop-flip",
                 "val_fraction": 0.1},
        "methods": {BASELINE: {"method": "erm"}},
        "seeds": (0,),
    },
}  # fmt: skip


def methods_of(problem: str) -> dict[str, dict[str, Any]]:
    """Return the settings of each method on a problem, the baseline first."""
    methods = PROBLEMS[problem]["methods"] | searched(problem)
    return {BASELINE: methods.pop(BASELINE)} | methods


def method_names(problem: str) -> list[str]:
    """Return the names of :func:`methods_of`, without reading the search."""
    return [*PROBLEMS[problem]["methods"], *(method for *_, names in SEARCHES.get(problem, ()) for method in names)]


def run_path(runs: Path, problem: str, method: str, seed: int) -> Path:
    """Directory of one run."""
    return runs / problem / f"{method.replace(' ', '-').replace(',', '')}-{seed}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, help="where to keep the runs")
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--methods", nargs="*")
    parser.add_argument("--seeds", nargs="*", type=int, help="seeds to train; all by default")
    parser.add_argument("--clinc", type=Path, help="CLINC150 features with new samples")
    parser.add_argument("--cifar", type=Path, help="folder of CIFAR-100 images")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for problem in options.problems:
        plan = PROBLEMS[problem]
        base = {**plan["base"], "data": plan["base"]["data"].format(clinc=options.clinc, cifar=options.cifar)}
        for method, extra in methods_of(problem).items():
            for seed in plan.get("seeds", SEEDS):
                if method not in (options.methods or [method]) or seed not in (options.seeds or [seed]):
                    continue
                out = run_path(options.runs, problem, method, seed)
                config = TrainConfig(**parse_settings(base | extra), seed=seed, out=out, audit=False)
                if not train(config, data=load_cached(config.data), quiet=True).was_finished:
                    print(problem, method, seed, flush=True)


if __name__ == "__main__":
    main()
