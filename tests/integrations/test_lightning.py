"""Lightning: losses in modules, resumed runs, audits of validation and test epochs, two processes."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning_cases import LOSSES, Net, data, fit_and_audit, take_steps, trainer
from torch import Tensor
from torch.utils.data import DataLoader

import classgap as cg
from classgap.integrations.lightning import AuditCallback
from forked import run_ranks

pytestmark = pytest.mark.filterwarnings("ignore:.*(num_workers|log_every_n_steps|does not have many workers)")


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of two processes in Lightning's strategy "ddp"."""
    folder = tmp_path_factory.mktemp("two")
    run_ranks(fit_and_audit, folder)
    return folder


@pytest.mark.parametrize("loss", LOSSES)
def test_two_processes_equal_one(loss: str, two_processes: Path, tmp_path: Path) -> None:
    expected = take_steps(tmp_path, loss)
    assert any(name.startswith("class_loss.") for name in expected)
    for rank in (0, 1):
        found = torch.load(two_processes / f"states-{rank}.pt", weights_only=True)[loss]
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-5, msg=f"{name} on {rank}")


def test_every_sample_is_audited_once_on_two_processes(two_processes: Path) -> None:
    with torch.no_grad():
        logits = Net().model(data(7).tensors[0])
    accuracy = (logits.argmax(dim=1) == data(7).tensors[1]).float().mean().item()
    for rank in (0, 1):
        result = json.loads((two_processes / f"result-{rank}.json").read_text())
        assert result["audits"]["val/dataloader_idx_0"] == [0, 1, 2, 0, 1, 2, 0]
        assert result["audits"]["val/dataloader_idx_1"] == [1, 2, 0, 1, 0]  # samples 4, 2, 0, 1, 3
        assert result["audits"]["test"] == [0, 1, 2, 0, 1, 2, 0]
        validated, tested = result["metrics"]
        assert validated[0]["val_accuracy/dataloader_idx_0"] == pytest.approx(accuracy)
        assert tested[0]["test_accuracy"] == pytest.approx(accuracy)
        assert "index" in result["unknown"]
    assert cg.Audit.load(two_processes / "test" / "audit.json").overall.n_samples == 7
    assert cg.Audit.load(two_processes / "val" / "dataloader_idx_1" / "audit.json").overall.n_samples == 5


@pytest.mark.parametrize("loss", ["mr2:memory_size=6", LOSSES["center"]])
def test_interrupted_equals_uninterrupted(loss: str, tmp_path: Path) -> None:
    loaders = (DataLoader(data(20), batch_size=5), DataLoader(data(9, seed=1), batch_size=4))
    whole, stopped, resumed = (Net(loss, lr=0.1) for _ in range(3))
    trainer(tmp_path, max_epochs=3).fit(whole, *loaders)
    first = trainer(tmp_path, max_epochs=1)
    first.fit(stopped, *loaders)
    first.save_checkpoint(tmp_path / "one.ckpt")
    trainer(tmp_path, max_epochs=3).fit(resumed, *loaders, ckpt_path=tmp_path / "one.ckpt")
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(resumed.state_dict()[name], value, rtol=0, atol=0, msg=name)
    assert not torch.equal(whole.model[0].weight, stopped.model[0].weight)


def test_validation_does_not_change_the_loss(tmp_path: Path) -> None:
    train, other = DataLoader(data(20), batch_size=5), DataLoader(data(9, seed=1), batch_size=4)
    with_validation, without = Net(), Net()
    trainer(tmp_path, val_check_interval=1).fit(with_validation, train, other)
    trainer(tmp_path).fit(without, train)
    for name, value in without.state_dict().items():
        torch.testing.assert_close(with_validation.state_dict()[name], value, rtol=0, atol=0, msg=name)


def test_epochs_are_audited(tmp_path: Path) -> None:
    audit = AuditCallback(class_names=["cat", "dog", "fox"])
    best = ModelCheckpoint(tmp_path / "best", monitor="val_hard_accuracy", mode="max")
    running = trainer(tmp_path, callbacks=[audit, best], enable_checkpointing=True, max_epochs=2)
    net = Net()
    other = data(30, seed=1)
    running.fit(net, DataLoader(data(20), batch_size=5), DataLoader(other, batch_size=4))
    with torch.no_grad():
        right = net.model(other.tensors[0]).argmax(dim=1) == other.tensors[1]
    by_class = [right[label::3].float().mean().item() for label in range(3)]
    saved = cg.Audit.load(tmp_path / "val" / "audit.json")
    assert [each.accuracy for each in saved.classes] == pytest.approx(by_class)
    assert saved.class_names == ("cat", "dog", "fox")
    assert running.callback_metrics["val_worst_class_accuracy"].item() == pytest.approx(min(by_class))
    assert list((tmp_path / "best").iterdir())
    assert (tmp_path / "val" / "report.html").exists()

    (results,) = running.test(net, DataLoader(other, batch_size=7))
    assert results["test_accuracy"] == pytest.approx(right.float().mean().item())
    assert audit.audits["test"].overall.n_samples == 30


class Silent(Net):
    """Its step returns no logits."""

    def test_step(self, batch: Any, batch_idx: int) -> Any:
        return self.class_loss_of(self.model(batch[0]), batch[1])


class Mapped(Net):
    """Its batches are mappings; targets and index are returned or read from the batch."""

    keys: tuple[str, ...] = ()

    def test_step(self, batch: dict[str, Tensor], batch_idx: int) -> dict[str, Tensor]:
        return {"logits": self.model(batch["x"]), **{key: batch[f"my_{key}"] for key in self.keys}}


def test_logits_and_targets_are_found_or_named(tmp_path: Path) -> None:
    running = trainer(tmp_path, callbacks=[AuditCallback()])
    with pytest.raises(ValueError, match=r"logits.*test_step, got Tensor"):
        running.test(Silent(), DataLoader(data(6)))
    inputs, labels = data(6).tensors
    rows = [{"x": x, "labels": y} for x, y in zip(inputs, labels, strict=True)]
    running.test(Mapped(), DataLoader(rows, batch_size=4))
    with pytest.raises(ValueError, match=r"targets.*test_step"):
        running.test(Mapped(), DataLoader([{"x": x} for x in inputs], batch_size=4))
    twice = [{"x": x, "my_targets": y, "my_index": i} for i, (x, y) in enumerate(zip(inputs, labels, strict=True))]
    net, audit = Mapped(), AuditCallback()
    net.keys = ("targets", "index")
    trainer(tmp_path, callbacks=[audit]).test(net, DataLoader(twice + twice[:2], batch_size=4))
    assert audit.audits["test"].overall.n_samples == 6


class Forgetful(Net):
    """Its optimizer has the parameters of the network only."""

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.model.parameters(), lr=0.1)


def test_parameters_of_the_loss_must_be_trained(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"CenterLoss.*self\.parameters\(\)"):
        trainer(tmp_path).fit(Forgetful(LOSSES["center"]), DataLoader(data(6)))
    trainer(tmp_path).fit(Forgetful("mr2"), DataLoader(data(6), batch_size=3))


def test_a_loss_that_compares_samples_warns_of_accumulation(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="accumulate_grad_batches=2: MR2Loss"):
        trainer(tmp_path, accumulate_grad_batches=2).fit(Net(), DataLoader(data(6), batch_size=3))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="accumulate_grad_batches")
        trainer(tmp_path, accumulate_grad_batches=2).fit(Net("erm"), DataLoader(data(6), batch_size=3))


def test_a_loss_that_cannot_be_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"needs the number of training samples .*class_counts=\[…\] to set_class_loss"
    ):
        Net("elm")
    with pytest.raises(ValueError, match="got a CrossEntropyLoss"):
        Net(torch.nn.CrossEntropyLoss())  # type: ignore[arg-type]

    class Forgetful(Net):
        def set_class_loss(self, *args: Any, **kwargs: Any) -> None:
            pass

    with pytest.raises(ValueError, match=r"Forgetful has no loss: call self\.set_class_loss"):
        Forgetful().class_loss_of(torch.zeros(2, 3), torch.zeros(2).long())
    with pytest.raises(ValueError, match="Forgetful has no loss"):
        trainer(tmp_path, num_sanity_val_steps=0).fit(Forgetful(), DataLoader(data(4)))
