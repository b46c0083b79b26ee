"""A dataset that records its reads, and tiny models for Lightning and Trainer."""

from __future__ import annotations

from pathlib import Path

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import classgap as cg

TARGETS = torch.tensor([0] * 16 + [1] * 8 + [2] * 8)


class Rows(Dataset):
    """Samples with their row as input."""

    def __len__(self) -> int:
        return len(TARGETS)

    def __getitem__(self, row: int) -> dict[str, Tensor]:
        return {"x": torch.tensor([float(row)]), "labels": TARGETS[row]}


class Recorder(nn.Module):
    """A linear classifier that records the rows of each training batch."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1, 3)
        self.batches: list[list[int]] = []

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        self.batches.append(x[:, 0].long().tolist())
        logits = self.layer(x / 32)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class RecordingModule(pl.LightningModule):
    """Train with a sampler that the caller created, and write the rows of each process to a file."""

    def __init__(self, sampler: object, folder: Path) -> None:
        super().__init__()
        self.net, self.sampler, self.folder = Recorder(), sampler, folder

    def train_dataloader(self) -> DataLoader:
        if isinstance(self.sampler, cg.data.ClassAwareBatchSampler):
            return DataLoader(Rows(), batch_sampler=self.sampler)
        return DataLoader(Rows(), batch_size=4, sampler=self.sampler)

    def training_step(self, batch: dict[str, Tensor], number: int) -> Tensor:
        return self.net(**batch)["loss"]

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)

    def on_train_end(self) -> None:
        torch.save(self.net.batches, self.folder / f"{self.global_rank}.pt")
