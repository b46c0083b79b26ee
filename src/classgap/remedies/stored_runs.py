"""Finished run directories: their networks, their samples, and the preparation of the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from classgap.audit.io.predictions import Predictions
from classgap.audit.io.readers import read_predictions
from classgap.data import load
from classgap.data.dataset import Dataset, Split
from classgap.data.preprocessing import Preprocessing
from classgap.engine import RunDirectory, TrainConfig
from classgap.engine.run import split_training
from classgap.engine.storage.networks import load_network, read_finished_config
from classgap.remedies.networks import Network

MAX_DIFFERENT = 0.05  # of the stored test predictions; more means other data or weights than in training


@dataclass(frozen=True)
class StoredRun:
    """A finished run.

    Attributes:
        name: name of its directory.
        directory: its files.
        config: its settings.
        data: its dataset.
        train: its training samples.
        validation: its held-out samples; none if it was trained on all.
        network: its network with the final weights.
        preprocessing: preparation of the inputs.
    """

    name: str
    directory: RunDirectory
    config: TrainConfig
    data: Dataset
    train: Split
    validation: Split
    network: Network
    preprocessing: Preprocessing

    def check_predictions(self, predictions_N: np.ndarray) -> None:
        """Check predicted test classes against the ones that training stored.

        Raises:
            ValueError: if targets or many predictions differ.
        """
        stored: Predictions = read_predictions(self.directory.path)
        targets_N = self.data.test.targets.numpy()
        if stored.index_N is not None:  # stored predictions are sorted by index
            order = self.data.test.index.numpy().argsort(kind="stable")
            targets_N, predictions_N = targets_N[order], predictions_N[order]
        if not np.array_equal(stored.targets_N, targets_N):
            raise ValueError(
                f"{self.config.data} no longer has the test samples of {self.directory.path}: "
                "restore the data, or train again."
            )
        different = float(np.mean(stored.predictions_N != predictions_N))
        if different > MAX_DIFFERENT:
            raise ValueError(
                f"{self.directory.path}: {different:.0%} of the test predictions differ from the stored ones: its "
                "weights or its data changed since training."
            )


def open_runs(paths: Sequence[Path], *, validated: bool = True) -> list[StoredRun]:
    """Open finished runs of the same data.

    Args:
        paths: run directories.
        validated: whether each run must have validation samples.

    Raises:
        ValueError: if a run is not finished, has no validation samples, or was trained on other data.
    """
    configs = [_read_config(RunDirectory(path), validated=validated) for path in paths]
    for path, config in zip(paths, configs, strict=True):
        if config.data != configs[0].data:
            raise ValueError(
                f"{paths[0]} and {path} were trained on different data, {configs[0].data!r} and {config.data!r}: pass "
                "runs of the same data."
            )
    names = [path.resolve().name for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    if len(set(names)) < len(names):
        raise ValueError(f"each run must be passed only once, got {', '.join(names)}.")
    data = load(configs[0].data)
    return [
        _open(name, RunDirectory(path), config, data) for name, path, config in zip(names, paths, configs, strict=True)
    ]


def _read_config(directory: RunDirectory, *, validated: bool) -> TrainConfig:
    config = read_finished_config(directory)
    if validated and not directory.val_predictions.is_file():
        raise ValueError(
            f"{directory.path} has no validation samples (val_fraction is 0), which a fix is fitted to: train with "
            "--val-fraction 0.1, or pass predictions of other samples."
        )
    return config


def _open(name: str, directory: RunDirectory, config: TrainConfig, data: Dataset) -> StoredRun:
    trained = load_network(directory, config, data)
    train, validation = split_training(config, data)
    if validation is None:
        validation = train.subset(torch.arange(0))
    network = Network.from_trained(trained)
    return StoredRun(name, directory, config, data, train, validation, network, trained.preprocessing)
