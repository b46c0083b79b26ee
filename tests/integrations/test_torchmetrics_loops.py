"""ClassGap in collections, trackers, plots, Lightning and two processes."""

from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from matplotlib import pyplot
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MetricCollection, MetricTracker
from torchmetrics.classification import MulticlassAccuracy
from torchmetrics_cases import BATCHES, NAMES, K, N, assert_values, data, expected, updated, whole

import classgap as cg
from classgap.distributed import rank, world_size
from classgap.integrations.torchmetrics import ClassGap


def test_collections_share_states() -> None:
    logits, targets, _ = data()
    members = {
        "gap": ClassGap(num_classes=K),
        "worst": ClassGap(num_classes=K, worst_k=3),
        "top1": MulticlassAccuracy(num_classes=K, average="micro"),
    }
    collection = MetricCollection(members, prefix="val_")
    for rows in BATCHES:
        collection.update(preds=logits[rows], target=targets[rows])
    assert ["gap", "worst"] in collection.compute_groups.values()
    values = collection.compute()
    assert_values(
        {name.removeprefix("val_gap_"): value for name, value in values.items() if name.startswith("val_gap_")},
        expected(whole()),
    )
    assert values["val_top1"].item() == pytest.approx(values["val_worst_accuracy"].item())
    assert values["val_worst_worst_k_accuracy"] == updated(worst_k=3).compute()["worst_k_accuracy"]
    alone = MetricCollection([ClassGap(num_classes=K), MulticlassAccuracy(num_classes=K)])
    assert alone(logits, targets)["hard_accuracy"].item() == pytest.approx(expected(whole())["hard_accuracy"])


def test_the_best_epoch_of_a_tracker() -> None:
    logits, targets, _ = data()
    tracker = MetricTracker(MetricCollection([ClassGap(num_classes=K)]), maximize=True)
    for scores in (-logits, 10.0 * torch.eye(K)[targets], logits):
        tracker.increment()
        tracker.update(scores, targets)
    best, epochs = tracker.best_metric(return_step=True)
    assert (best["hard_accuracy"], epochs["hard_accuracy"]) == (1, 1)


def test_plots() -> None:
    metric = updated()
    figure, axes = metric.plot()
    assert {line.get_label() for line in axes.lines} == metric.compute().keys()
    hard = next(line for line in axes.lines if line.get_label() == "hard_accuracy")
    assert float(hard.get_ydata()[0]) == pytest.approx(expected(whole())["hard_accuracy"])
    _, again = pyplot.subplots()
    metric.plot([updated(BATCHES[:2]).compute(), metric.compute()], ax=again)
    assert all(len(line.get_ydata()) == 2 for line in again.lines)
    assert again.get_xlabel() == "Step"
    pyplot.close("all")
    assert figure is not None


class Module(LightningModule):
    """Logs and audits every validation epoch, then resets the metric."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(K, K)
        self.metric = ClassGap(class_names=NAMES)
        self.audits: list[cg.Audit] = []

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        return nn.functional.cross_entropy(self.layer(batch[0]), batch[1])

    def validation_step(self, batch: list[Tensor], batch_idx: int) -> None:
        self.metric.update(batch[0], batch[1])

    def on_validation_epoch_end(self) -> None:
        self.log_dict({f"val_{name}": value for name, value in self.metric.compute().items()})
        self.audits.append(self.metric.audit())
        self.metric.reset()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


@pytest.mark.filterwarnings("ignore:.*(num_workers|log_every_n_steps|does not have many workers)")
def test_lightning_logs_the_values_and_monitors_them(tmp_path: Path) -> None:
    logits, targets, _ = data()
    loader = DataLoader(TensorDataset(logits, targets), batch_size=64)
    best = ModelCheckpoint(tmp_path, monitor="val_hard_accuracy", mode="max")
    quiet: dict[str, Any] = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = Trainer(max_epochs=2, callbacks=[best], accelerator="cpu", devices=1, **quiet)
    module = Module()
    trainer.fit(module, loader, loader)
    logged = {name.removeprefix("val_"): value for name, value in trainer.callback_metrics.items()}
    assert_values(logged, expected(whole()))
    assert [audit.overall.n_samples for audit in module.audits] == [128, N, N]  # two batches check that it runs
    assert best.best_model_score == logged["hard_accuracy"]
    saved = torch.load(best.best_model_path, weights_only=True)["state_dict"]
    assert {f"metric.{name}" for name in module.metric.metric_state} <= saved.keys()


def shard() -> dict[str, Any]:
    """Deal batches to the processes; the second has one fewer."""
    metric = updated(BATCHES[rank() :: world_size()])
    own = int(metric.confusion_KK.sum())
    values, audit = metric.compute(), metric.audit()
    with metric.sync_context():
        saved = metric.state_dict()
        inside = metric.audit().overall.n_samples
    idle = updated(BATCHES if rank() == 0 else [])
    logits, targets, _ = data()
    rows = BATCHES[rank()]
    stepped = ClassGap(class_names=NAMES, dist_sync_on_step=True)(logits[rows], targets[rows])
    unsynced = updated(BATCHES[rank() :: world_size()], sync_on_compute=False)
    return {
        "own": (own, int(metric.confusion_KK.sum())),
        "values": values,
        "audit": audit.to_dict(),
        "saved": saved,
        "inside": inside,
        "idle": idle.compute(),
        "stepped": stepped,
        "alone": (unsynced.compute()["accuracy"], unsynced.audit().overall.n_samples),
    }


@pytest.mark.filterwarnings("ignore:The ``compute`` method")
def test_two_processes_return_the_values_of_all_samples(processes: Any) -> None:
    results = processes.run(shard)
    counts = [int(sum(len(rows) for rows in BATCHES[place::2])) for place in (0, 1)]
    for result, own in zip(results, counts, strict=True):
        assert result["own"] == (own, own)  # accumulation goes on with the local samples
        assert_values(result["values"], expected(whole()))
        audit = cg.Audit.from_dict(result["audit"])
        assert audit.overall.n_samples == N
        assert expected(audit) == pytest.approx(expected(whole()))
        assert result["inside"] == N
        loaded = ClassGap(class_names=NAMES)
        loaded.load_state_dict(result["saved"])
        assert_values(loaded.compute(), expected(whole()))
        assert_values(result["idle"], expected(whole()))
        assert_values(result["stepped"], expected(updated(BATCHES[:2]).audit()))
        assert result["alone"][1] == own
    assert results[0]["audit"] == results[1]["audit"]
    assert results[0]["alone"][0] != results[1]["alone"][0]
