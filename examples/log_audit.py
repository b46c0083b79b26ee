"""Log the audit of every epoch to TensorBoard, Weights & Biases or both.

python examples/log_audit.py                          # TensorBoard: tensorboard --logdir runs/log_audit
python examples/log_audit.py --to wandb               # WANDB_MODE=offline works without an account
python examples/log_audit.py --to tensorboard wandb --epochs 10
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import nn

import classgap as cg
from classgap.integrations.loggers import log_audit


def open_loggers(names: list[str], out: Path) -> dict[str, object]:
    loggers: dict[str, object] = {}
    if "tensorboard" in names:
        from torch.utils.tensorboard import SummaryWriter

        loggers["tensorboard"] = SummaryWriter(out / "tensorboard")
    if "wandb" in names:
        import wandb

        out.mkdir(parents=True, exist_ok=True)
        loggers["wandb"] = wandb.init(project="classgap", dir=out)
    return loggers


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", nargs="+", choices=["tensorboard", "wandb"], default=["tensorboard"])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("runs/log_audit"))
    options = parser.parse_args(words)
    loggers = open_loggers(options.to, options.out)

    data = cg.data.load("digits")
    rows = torch.arange(len(data.train))
    inputs, targets = data.train.inputs[rows].float().flatten(1) / 255, data.train.targets
    test = data.test.inputs[torch.arange(len(data.test))].float().flatten(1) / 255
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(inputs.shape[1], 64), nn.ReLU(), nn.Linear(64, data.num_classes))
    tap, loss = cg.FeatureTap(model), cg.losses.MR2Loss(num_classes=data.num_classes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(1, options.epochs + 1):
        for batch in torch.randperm(len(rows)).split(64):
            optimizer.zero_grad()
            loss(model(inputs[batch]), targets[batch], features=tap.features).backward()
            optimizer.step()
        with torch.no_grad():
            audit = cg.Audit.from_predictions(model(test), data.test.targets, class_names=data.class_names)
        for logger in loggers.values():
            log_audit(audit, logger, step=epoch, name="test")
        print(f"epoch {epoch}: accuracy {audit.overall.accuracy:.3f}, worst class {audit.gap.worst_name}")
    for logger in loggers.values():
        (logger.finish if hasattr(logger, "finish") else logger.close)()


if __name__ == "__main__":
    main()
