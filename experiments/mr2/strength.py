"""Does a fixed λ hurt, and does strength="auto" not? Cross-entropy, MR² as printed, and MR² with auto strength.

    python experiments/mr2/strength.py run --clinc FILE.npz      # everything, about 30 minutes on one core
    python experiments/mr2/strength.py run --problems mnist1d-40 --seeds 1
    python experiments/mr2/strength.py table                     # the table of docs/mr2.md

Results are appended to strength.jsonl beside this file, a line a training; what is there is not run again. The settings
are the constructor's defaults and the paper's values; docs/mr2.md says how they came about. The CLINC150 problems need
--clinc FILE.npz with train_x, train_y, test_x and test_y: the sentences of CLINC150 (Larson et al. 2019) as features of
the sentence encoder all-MiniLM-L6-v2, mean-pooled and not normalised.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from classgap.losses import MR2Loss

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "examples"))
from demo import CrossEntropy, Data, class_accuracies, conv_net, mnist1d, thirds, train  # noqa: E402

RESULTS = HERE / "strength.jsonl"
GROUPS = ("overall", "easy", "medium", "hard")


@dataclass(frozen=True)
class Problem:
    classes: int
    epochs: int
    data: Callable[[], Data]
    model: Callable[[], nn.Module]


def clinc150(path: Path | None, per_class: int = 20) -> Data:
    """A fifth of the training set, the same for all seeds, and the whole test set."""
    if path is None:
        raise SystemExit("the CLINC150 problems need --clinc FILE.npz; see --help")
    stored = np.load(path, allow_pickle=False)
    labels = stored["train_y"]
    chosen = np.random.default_rng(0).permutation(len(labels))
    rows = np.concatenate([chosen[labels[chosen] == k][:per_class] for k in np.unique(labels)])
    inputs, test = (torch.tensor(stored[name].astype(np.float32)) for name in ("train_x", "test_x"))
    return inputs[rows], torch.tensor(labels[rows]).long(), test, torch.tensor(stored["test_y"]).long()


def mlp_head(scale: float = 1.0) -> nn.Module:
    """The same function whatever the scale of its features: what the features gain, the last layer loses."""
    first, last = nn.Linear(384, 256), nn.Linear(256, 150)
    last.weight.data /= scale
    return nn.Sequential(first, nn.ReLU(), Scaled(scale), last)


class Scaled(nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * x


def problems(clinc: Path | None = None) -> dict[str, Problem]:
    return {
        "mnist1d-40": Problem(10, 40, mnist1d, conv_net),
        "mnist1d-200": Problem(10, 200, mnist1d, conv_net),
        "clinc150-mlp": Problem(150, 60, partial(clinc150, clinc), mlp_head),
        "clinc150-mlp-x10": Problem(150, 60, partial(clinc150, clinc), partial(mlp_head, 10.0)),
    }


LOSSES: dict[str, Callable[[int], nn.Module]] = {
    "cross-entropy": lambda classes: CrossEntropy(),
    "γ-margin alone, c̄ = 1": lambda classes: MR2Loss(classes, strength=0),
    "MR² as printed, λ = 0.1, c̄ = 1": lambda classes: MR2Loss(classes, strength=0.1, spread="plain"),
    "MR² as printed, λ = 0.5, c̄ = 1": lambda classes: MR2Loss(classes, strength=0.5, spread="plain"),
    "MR² as printed, λ = 0.5, c̄ = 2": lambda classes: MR2Loss(classes, strength=0.5, margin=2.0, spread="plain"),
    "MR², strength auto (default)": MR2Loss,
}


def one(problem: Problem, loss: str, seed: int, data: Data) -> dict[str, float]:
    torch.manual_seed(seed)
    model = problem.model()
    start = time.perf_counter()
    train(model, LOSSES[loss](problem.classes), data, epochs=problem.epochs, seed=seed)
    return {**thirds(class_accuracies(model, *data[2:])), "seconds": round(time.perf_counter() - start, 1)}


def stored() -> list[dict]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def run(options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    done = {(row["problem"], row["loss"], row["seed"]) for row in stored()}
    for name in options.problems:
        problem = problems(options.clinc)[name]
        data = problem.data()
        for seed in range(options.seeds):
            for loss in LOSSES:
                if (name, loss, seed) not in done:
                    row = {"problem": name, "loss": loss, "seed": seed, **one(problem, loss, seed, data)}
                    with RESULTS.open("a") as file:
                        file.write(json.dumps(row, ensure_ascii=False) + "\n")
                    print(f"{name} seed {seed} {loss}: hard {row['hard']:.2f}, easy {row['easy']:.2f}", flush=True)


def table(options: argparse.Namespace) -> None:
    rows: dict[tuple[str, str], list[dict]] = defaultdict(list)
    for row in stored():
        rows[row["problem"], row["loss"]].append(row)
    for name, problem in problems(options.clinc).items():
        seeds = len(rows[name, "cross-entropy"])
        print(f"\n**{name}** ({problem.epochs} epochs, {seeds} seeds; mean ± standard deviation, %)\n")
        print("| loss | " + " | ".join(GROUPS) + " |\n|---|" + "---|" * len(GROUPS))
        for loss in LOSSES:
            cells = [np.array([row[group] for row in rows[name, loss]]) for group in GROUPS]
            if len(cells[0]) > 1:
                texts = (f"{cell.mean():.2f} ± {cell.std(ddof=1):.2f}" for cell in cells)
                print(f"| {loss} | " + " | ".join(texts) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=["run", "table"])
    parser.add_argument("--problems", nargs="+", default=list(problems()))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--clinc", type=Path)
    options = parser.parse_args()
    {"run": run, "table": table}[options.job](options)


if __name__ == "__main__":
    main()
