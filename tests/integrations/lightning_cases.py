"""A small Lightning module and data, and what two processes do with them."""

import json
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from classgap.integrations.lightning import AuditCallback, ClassLossMixin

CLASSES = 3
LOSSES = {"mr2": "mr2:strength=0.5", "center": "center:strength=0.5:centers=trained"}


class Net(ClassLossMixin, LightningModule):
    def __init__(self, loss: str = "mr2", lr: float = 0.5) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, CLASSES))
        self.lr = lr
        self.set_class_loss(loss, self.model)

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        return self.class_loss_of(self.model(batch[0]), batch[1])

    def validation_step(self, batch: list[Tensor], batch_idx: int, dataloader_idx: int = 0) -> dict[str, Tensor]:
        logits = self.model(batch[0])
        self.log("val_loss", self.class_loss_of(logits, batch[1]), batch_size=len(logits))
        return {"logits": logits}

    test_step = validation_step

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)


class Listed(torch.utils.data.Sampler[int]):
    """A sampler of its own, which Lightning wraps."""

    def __iter__(self) -> Any:
        return iter([4, 2, 0, 1, 3])

    def __len__(self) -> int:
        return 5


def data(size: int, seed: int = 0) -> TensorDataset:
    random = torch.Generator().manual_seed(seed)
    return TensorDataset(torch.randn(size, 5, generator=random), torch.arange(size) % CLASSES)


def trainer(folder: Path, **settings: Any) -> Trainer:
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    defaults = {"max_epochs": 1, "enable_checkpointing": False, "devices": 1, "num_sanity_val_steps": 2}
    return Trainer(default_root_dir=str(folder), **(quiet | defaults | settings))


def take_steps(folder: Path, loss: str, **settings: Any) -> dict[str, Tensor]:
    """The state of a module after two steps on the same 18 samples."""
    net = Net(LOSSES[loss])
    fitting = trainer(folder, max_epochs=2, **settings)
    fitting.fit(net, DataLoader(data(18), batch_size=18 // fitting.num_devices))
    assert fitting.global_step == 2
    return net.state_dict()


def fit_and_audit(folder: Path) -> None:
    """Train, validate and test on two processes, which cannot divide 7 and 5 samples equally."""
    ddp = {"strategy": "ddp", "devices": 2}
    states = {loss: take_steps(folder, loss, **ddp) for loss in LOSSES}
    callback = AuditCallback(folder)
    running = trainer(folder, callbacks=[callback], **ddp)
    loaders = [DataLoader(data(7), batch_size=2), DataLoader(data(5), batch_size=2, sampler=Listed())]
    metrics = [running.validate(Net(), loaders), running.test(Net(), loaders[0])]
    unknown = ""
    try:
        alone = trainer(folder, callbacks=[AuditCallback(folder)], use_distributed_sampler=False, **ddp)
        alone.test(Net(), loaders[0])
    except ValueError as error:
        unknown = str(error)
    rank = running.global_rank
    torch.save(states, folder / f"states-{rank}.pt")
    audits = {name: audit.samples.targets.tolist() for name, audit in callback.audits.items()}
    result = {"audits": audits, "metrics": metrics, "unknown": unknown}
    (folder / f"result-{rank}.json").write_text(json.dumps(result))
