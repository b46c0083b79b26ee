"""Log the audit of every epoch to TensorBoard, Weights & Biases, MLflow or several of them.

python examples/log_audit.py                          # TensorBoard: tensorboard --logdir runs/log_audit
python examples/log_audit.py --to wandb               # WANDB_MODE=offline works without an account
python examples/log_audit.py --to mlflow              # mlflow ui --backend-store-uri sqlite:///runs/log_audit/mlflow.db
python examples/log_audit.py --to tensorboard wandb --epochs 10
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import nn

import classgap as cg
from classgap.integrations.loggers import log_audit


def open_logger(name: str, out: Path) -> Any:
    """Open a writer or run; all of them are context managers."""
    out.mkdir(parents=True, exist_ok=True)
    if name == "tensorboard":
        from torch.utils.tensorboard import SummaryWriter

        return SummaryWriter(out / "tensorboard")
    if name == "wandb":
        import wandb

        return wandb.init(project="classgap", dir=out)
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{out.resolve() / 'mlflow.db'}")
    if mlflow.get_experiment_by_name("classgap") is None:
        mlflow.create_experiment("classgap", (out.resolve() / "mlflow").as_uri())
    mlflow.set_experiment("classgap")
    return mlflow.start_run()


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", nargs="+", choices=["tensorboard", "wandb", "mlflow"], default=["tensorboard"])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("runs/log_audit"))
    options = parser.parse_args(words)
    with ExitStack() as stack:
        train([stack.enter_context(open_logger(name, options.out)) for name in options.to], options.epochs)


def train(loggers: list[Any], epochs: int) -> None:
    data = cg.data.load("digits")
    rows = torch.arange(len(data.train))
    inputs, targets = data.train.inputs[rows].float().flatten(1) / 255, data.train.targets
    test = data.test.inputs[torch.arange(len(data.test))].float().flatten(1) / 255
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(inputs.shape[1], 64), nn.ReLU(), nn.Linear(64, data.num_classes))
    tap, loss = cg.FeatureTap(model), cg.losses.MR2Loss(num_classes=data.num_classes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(1, epochs + 1):
        for batch in torch.randperm(len(rows)).split(64):
            optimizer.zero_grad()
            loss(model(inputs[batch]), targets[batch], features=tap.features).backward()
            optimizer.step()
        with torch.no_grad():
            scores = model(test)
        audit = cg.Audit.from_predictions(scores, data.test.targets, class_names=data.class_names)
        for logger in loggers:
            log_audit(audit, logger, step=epoch, name="test")
        print(f"epoch {epoch}: accuracy {audit.overall.accuracy:.3f}, worst class {audit.gap.worst_name}")


if __name__ == "__main__":
    main()
