"""Samplers in Lightning, the Hugging Face Trainer and accelerate: epochs differ, and draws are divided once."""

from pathlib import Path

import lightning.pytorch as pl
import numpy as np
import pytest
import torch
from accelerate.data_loader import prepare_data_loader
from sampler_cases import TARGETS, Recorder, RecordingModule, Rows
from torch.utils.data import DataLoader
from transformers import Trainer, TrainingArguments

import classgap as cg
from classgap.integrations.samplers import SamplerMixin

EPOCHS = 2


def balanced(**places):
    return cg.data.ClassBalancedSampler(TARGETS, seed=1, **places)


def by_errors(**places):
    return cg.data.ClassQuotaSampler.from_errors(TARGETS, [0.2, 0.2, 0.6], density=0.5, seed=1, **places)


def aware(**places):
    return cg.data.ClassAwareBatchSampler(TARGETS, per_class=2, classes_per_batch=2, seed=1, **places)


def rows_of(sampler, epoch):
    sampler.set_epoch(epoch)
    return np.ravel(list(sampler)).tolist()


def flat(batches):
    return [row for batch in batches for row in batch]


MAKERS = pytest.mark.parametrize("make", [balanced, by_errors, aware])


def lightning_fit(module, folder: Path, **settings) -> None:
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    quiet |= {"enable_model_summary": False, "accelerator": "cpu", "max_epochs": EPOCHS, "default_root_dir": folder}
    pl.Trainer(**quiet, **settings).fit(module)


@MAKERS
def test_lightning_sets_the_epoch(make, tmp_path: Path) -> None:
    lightning_fit(RecordingModule(make(), tmp_path), tmp_path, devices=1)
    found = flat(torch.load(tmp_path / "0.pt"))
    assert found == [row for epoch in range(EPOCHS) for row in rows_of(make(), epoch)]


@pytest.mark.parametrize("make", [balanced, pytest.param(aware, marks=pytest.mark.slow)])
def test_lightning_with_two_processes_divides_the_draws_once(make, tmp_path: Path) -> None:
    """The samplers are created before the processes start. Lightning cannot divide batch samplers itself."""
    own = {"use_distributed_sampler": False} if make is aware else {}
    lightning_fit(RecordingModule(make(), tmp_path), tmp_path, devices=2, strategy="ddp_fork", **own)
    parts = [flat(torch.load(tmp_path / f"{rank}.pt")) for rank in (0, 1)]
    for rank, part in enumerate(parts):
        sampler = make(num_replicas=2, rank=rank)
        assert part == [row for epoch in range(EPOCHS) for row in rows_of(sampler, epoch)]
    assert len(parts[0]) == len(parts[1]) == EPOCHS * len(TARGETS) // 2


class SamplingTrainer(SamplerMixin, Trainer):
    pass


def arguments(folder: Path, **settings) -> TrainingArguments:
    settings = {"per_device_train_batch_size": 4, "num_train_epochs": EPOCHS, "report_to": "none"} | settings
    return TrainingArguments(str(folder), use_cpu=True, save_strategy="no", disable_tqdm=True, **settings)


@MAKERS
def test_hugging_face_trainer(make, tmp_path: Path) -> None:
    model = Recorder()
    trainer = SamplingTrainer(model, arguments(tmp_path), train_dataset=Rows(), train_sampler=make())
    trainer.train()
    assert flat(model.batches) == [row for epoch in range(EPOCHS) for row in rows_of(make(), epoch)]
    if make is aware:
        assert all(sorted(TARGETS[batch].bincount().tolist())[-2:] == [2, 2] for batch in model.batches)


def test_the_mixin_rejects_samplers_that_would_be_divided_twice(tmp_path: Path) -> None:
    given = {"train_dataset": Rows(), "args": arguments(tmp_path)}
    with pytest.raises(ValueError, match="num_replicas=1"):
        SamplingTrainer(Recorder(), train_sampler=balanced(num_replicas=2, rank=0), **given)
    other = cg.data.ClassAwareBatchSampler(TARGETS, per_class=4, classes_per_batch=2)
    with pytest.raises(ValueError, match="per_device_train_batch_size"):
        SamplingTrainer(Recorder(), train_sampler=other, **given)


@MAKERS
def test_accelerate_divides_the_draws_once(make) -> None:
    """As Trainer does on two processes: each takes every other batch."""

    def loader(rank):
        options = {"batch_sampler": make()} if make is aware else {"batch_size": 4, "sampler": make()}
        return prepare_data_loader(
            DataLoader(Rows(), **options), num_processes=2, process_index=rank, put_on_device=False
        )

    loaders = [loader(rank) for rank in (0, 1)]
    for epoch in range(EPOCHS):
        for each in loaders:
            each.set_epoch(epoch)
        one, two = ([batch["x"][:, 0].long().tolist() for batch in each] for each in loaders)
        assert len(one) == len(two)
        assert [row for pair in zip(one, two, strict=True) for row in flat(pair)] == rows_of(make(), epoch)
