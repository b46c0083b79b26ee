"""Train a classifier in a plain PyTorch loop, follow its hard classes with torchmetrics, and keep the best epoch.

The data is generated, so the script needs no download.

    python examples/torchmetrics_loop.py --out runs/torchmetrics
"""

import argparse
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassAccuracy

from classgap.integrations.torchmetrics import ClassGap

NAMES = ["steady", "shaky", "wild"]


def waves(size: int, seed: int) -> TensorDataset:
    """Sine waves of three frequencies, with more noise at the higher ones."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(size) % len(NAMES)
    phases = 2 * torch.pi * torch.rand(size, 1, generator=random)
    times = torch.linspace(0, 2 * torch.pi, 32)
    clean = torch.sin((labels[:, None] + 1) * times + phases)
    return TensorDataset(clean + (0.5 + labels[:, None]) * torch.randn(size, 32, generator=random), labels)


def evaluate(model: nn.Module, loader: DataLoader[tuple[Tensor, ...]], metrics: MetricCollection) -> dict[str, Tensor]:
    model.eval()
    metrics.reset()
    with torch.no_grad():
        for inputs, targets in loader:
            metrics.update(model(inputs), targets)
    return metrics.compute()


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("runs/torchmetrics"))
    options = parser.parse_args(words)

    torch.manual_seed(0)
    options.out.mkdir(parents=True, exist_ok=True)
    train, val, test = (DataLoader(waves(900, seed), batch_size=64, shuffle=seed == 0) for seed in range(3))
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, len(NAMES)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    gap = ClassGap(class_names=NAMES, per_class=True, name="test")
    metrics = MetricCollection([gap, MulticlassAccuracy(num_classes=len(NAMES))])

    best = -1.0
    for epoch in range(options.epochs):
        model.train()
        for inputs, targets in train:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        values = evaluate(model, val, metrics)
        print(f"{epoch}: accuracy {values['accuracy']:.3f}, hard third {values['hard_accuracy']:.3f}")
        if values["hard_accuracy"] > best:
            best = values["hard_accuracy"].item()
            torch.save(model.state_dict(), options.out / "best.pt")

    model.load_state_dict(torch.load(options.out / "best.pt", weights_only=True))
    values = evaluate(model, test, metrics)
    print(", ".join(f"{name} {values[f'accuracy_{name}']:.3f}" for name in NAMES))
    audit = gap.audit()
    audit.save(options.out / "audit.json")
    audit.to_html(options.out / "report.html")
    print(f"Report: {options.out / 'report.html'}")


if __name__ == "__main__":
    main()
