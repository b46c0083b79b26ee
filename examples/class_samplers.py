"""Train a small network on long-tailed data with each sampler, and compare the accuracy of rare classes.

python examples/class_samplers.py              # a few seconds
python examples/class_samplers.py --steps 1000
torchrun --nproc-per-node 2 examples/class_samplers.py
"""

from __future__ import annotations

import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import classgap as cg
from classgap import distributed


def fit(data: cg.data.Dataset, loader: DataLoader, sampler: object, steps: int) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, data.num_classes))
    network = nn.parallel.DistributedDataParallel(model) if distributed.world_size() > 1 else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    for epoch in range(math.ceil(steps / len(loader))):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(inputs), targets).backward()
            optimizer.step()
    return model


def audit(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor, name: str) -> cg.Audit:
    with torch.no_grad():
        return cg.Audit.from_predictions(model(inputs), targets, name=name)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args(words)
    distributed.init_from_env(torch.device("cpu"))
    data = cg.data.load("digits:imbalance=20")
    rest, held_out = cg.data.hold_out(data.train, 0.2, seed=0, num_classes=data.num_classes)
    inputs, labels = stacked(rest)

    def train(sampler: object, *, batches: bool = False) -> nn.Module:
        place = {"batch_sampler": sampler} if batches else {"batch_size": 64, "sampler": sampler}
        return fit(data, DataLoader(TensorDataset(inputs, labels), **place), sampler, options.steps)

    counts = rest.class_counts(data.num_classes)
    plain = train(cg.data.ClassQuotaSampler(labels, counts))  # every sample once
    errors = [1 - each.accuracy for each in audit(plain, *stacked(held_out), "held out").classes]
    models = {
        "every sample": plain,
        "class-balanced": train(cg.data.ClassBalancedSampler(labels)),
        "error quotas": train(cg.data.ClassQuotaSampler.from_errors(labels, errors, density=0.5)),
        "class-aware": train(cg.data.ClassAwareBatchSampler(labels, per_class=8, classes_per_batch=8), batches=True),
    }
    rare = counts.argsort()[:3].tolist()
    for name, model in models.items():
        result = audit(model, *stacked(data.test), name)
        accuracy = sum(result.classes[k].accuracy for k in rare) / len(rare)
        if distributed.rank() == 0:
            print(f"{name}: accuracy {result.overall.accuracy:.3f}, three rarest classes {accuracy:.3f}")
    distributed.destroy()


def stacked(split: cg.data.Split) -> tuple[torch.Tensor, torch.Tensor]:
    """Return all samples of a split."""
    return split.inputs[torch.arange(len(split))].float() / 255, split.targets


if __name__ == "__main__":
    main()
