"""Plain cross-entropy against MR² on MNIST-1D, with a training loop of your own: about two minutes on two cores.

    python examples/demo.py

MNIST-1D is generated on the spot (10 classes, 1,000 training and 10,000 test samples). Each loss trains the same small
network from the same seeds; the classes are then ranked by accuracy and averaged in thirds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from mnist1d.data import get_dataset_args, make_dataset
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from torch import Tensor, nn

import classgap as cg

Data = tuple[Tensor, Tensor, Tensor, Tensor]  # training inputs and targets, test inputs and targets
Losses = dict[str, Callable[[], nn.Module]]


def mnist1d(train: int = 1000, test: int = 10000) -> Data:
    settings = get_dataset_args()
    settings.num_samples, settings.train_split = train + test, train / (train + test)
    made = make_dataset(settings)
    inputs, test_inputs = (torch.tensor(made[name], dtype=torch.float32)[:, None] for name in ("x", "x_test"))
    return inputs, torch.tensor(made["y"]), test_inputs, torch.tensor(made["y_test"])


def conv_net(classes: int = 10, width: int = 64) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inside in (1, width, width):
        layers += [nn.Conv1d(inside, width, 5, stride=2, padding=2), nn.BatchNorm1d(width), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(width, classes))


def train(
    model: nn.Module,
    loss: nn.Module,
    data: Data,
    *,
    epochs: int,
    seed: int,
    rate: float = 0.1,
    batch: int = 128,
    report: Callable[[int], None] = lambda epoch: None,
) -> None:
    inputs, targets, _, _ = data
    order = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    tap = cg.FeatureTap(model)
    for epoch in range(epochs):
        for rows in torch.randperm(len(inputs), generator=order).split(batch):
            logits = model(inputs[rows])
            optimizer.zero_grad()
            loss(logits, targets[rows], features=tap.features).backward()
            optimizer.step()
        schedule.step()
        report(epoch)
    tap.remove()


class CrossEntropy(nn.Module):
    """Cross-entropy that, like the losses of classgap, is offered the features."""

    def forward(self, logits: Tensor, targets: Tensor, *, features: Tensor) -> Tensor:
        return F.cross_entropy(logits, targets)


@torch.no_grad()
def class_accuracies(model: nn.Module, inputs: Tensor, targets: Tensor) -> np.ndarray:
    right = (model.eval()(inputs).argmax(dim=1) == targets).double()
    model.train()
    return np.array([right[targets == k].mean().item() for k in targets.unique()])


def thirds(accuracies: np.ndarray) -> dict[str, float]:
    """Mean accuracy overall and of the easy, medium and hard third of the classes, in per cent."""
    ranked = np.sort(accuracies)[::-1]
    easy, medium, hard = np.array_split(ranked, 3)
    means = {"overall": ranked, "easy": easy, "medium": medium, "hard": hard}
    return {name: 100 * float(values.mean()) for name, values in means.items()}


def run(losses: Losses, data: Data, seeds: int, epochs: int) -> dict[str, list[dict[str, float]]]:
    results: dict[str, list[dict[str, float]]] = {name: [] for name in losses}
    with Progress(transient=True) as progress:
        task = progress.add_task("training", total=len(losses) * seeds * epochs)
        for seed in range(seeds):
            for name, make in losses.items():
                torch.manual_seed(seed)
                model = conv_net()
                progress.update(task, description=f"{name}, seed {seed}")
                train(model, make(), data, epochs=epochs, seed=seed, report=lambda _: progress.advance(task))
                results[name].append(thirds(class_accuracies(model, *data[2:])))
    return results


def show(results: dict[str, list[dict[str, float]]], epochs: int) -> None:
    seeds = len(next(iter(results.values())))
    table = Table(title=f"MNIST-1D, {epochs} epochs, {seeds} seeds: test accuracy in %")
    groups = ("overall", "easy", "medium", "hard")
    for column in ("loss", *groups):
        table.add_column(column, justify="left" if column == "loss" else "right")
    for name, rows in results.items():
        cells = [np.array([row[group] for row in rows]) for group in groups]
        table.add_row(name, *(f"{cell.mean():.1f} ± {cell.std(ddof=1) if seeds > 1 else 0:.1f}" for cell in cells))
    console = Console()
    console.print(table)
    plain, fixed = results.values()
    change = {group: np.array([b[group] - a[group] for a, b in zip(plain, fixed, strict=True)]) for group in groups}
    better = int((change["hard"] > 0).sum())
    console.print(
        f"MR² changed the hard third by {change['hard'].mean():+.1f} points ({better} of {seeds} seeds better), "
        f"the easy third by {change['easy'].mean():+.1f}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(2)
    losses: Losses = {"cross-entropy": CrossEntropy, "MR²": lambda: cg.losses.MR2Loss(num_classes=10)}
    show(run(losses, mnist1d(), options.seeds, options.epochs), options.epochs)


if __name__ == "__main__":
    main()
