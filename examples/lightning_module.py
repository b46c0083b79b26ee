"""Train a classifier with Lightning, MR² and per-class audits; keep the checkpoint with the best hard classes.

The data is generated, so the script needs no download. Several processes: --devices 2.

    python examples/lightning_module.py --out runs/lightning
"""

import argparse
from pathlib import Path

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from classgap.integrations.lightning import AuditCallback, ClassLossMixin

NAMES = ["near", "middle", "far"]


class Classifier(ClassLossMixin, LightningModule):
    def __init__(self, loss: str) -> None:
        super().__init__()
        self.model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))
        self.set_class_loss(loss, self.model)

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        inputs, targets = batch
        return self.class_loss_of(self.model(inputs), targets)

    def validation_step(self, batch: list[Tensor], batch_idx: int) -> dict[str, Tensor]:
        return {"logits": self.model(batch[0])}  # AuditCallback takes the targets from the batch

    test_step = validation_step

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)  # self.parameters() includes those of the loss


def rings(size: int, seed: int) -> TensorDataset:
    """Points on three rings; the outer ones are noisier and therefore harder."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(size) % len(NAMES)
    angles = 2 * torch.pi * torch.rand(size, generator=random)
    radii = 1 + labels + (0.1 + 0.3 * labels) * torch.randn(size, generator=random)
    return TensorDataset(torch.stack([radii * angles.cos(), radii * angles.sin()], dim=1), labels)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loss", default="mr2", help="a loss by name, such as mr2:strength=0.1 or erm")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/lightning"))
    options = parser.parse_args(words)

    seed_everything(0, verbose=False)
    audit = AuditCallback(options.out, class_names=NAMES)
    best = ModelCheckpoint(options.out / "checkpoints", monitor="val_hard_accuracy", mode="max")
    trainer = Trainer(
        default_root_dir=options.out,
        max_epochs=options.epochs,
        accelerator="cpu",
        devices=options.devices,
        strategy="ddp" if options.devices > 1 else "auto",
        callbacks=[audit, best],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    train, val, test = (DataLoader(rings(900, seed), batch_size=64, shuffle=seed == 0) for seed in range(3))
    trainer.fit(Classifier(options.loss), train, val)
    trainer.test(ckpt_path="best", dataloaders=test, verbose=False)
    if trainer.is_global_zero:
        print(audit.audits["test"])
        print(f"Report: {options.out / 'test' / 'report.html'}")


if __name__ == "__main__":
    main()
