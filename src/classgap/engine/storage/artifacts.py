"""Artifacts of a finished run: predictions, audit, report and final metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from classgap._atomic_write import atomic_write
from classgap._tensor_files import serialize_checked
from classgap._text_checksums import renew_checksum
from classgap.audit import Audit, read_predictions
from classgap.data.dataset import Split
from classgap.distributed import barrier, rank
from classgap.engine.evaluation import Predictions, Scores
from classgap.engine.run import Run
from classgap.engine.storage.checkpoint import save_weights
from classgap.engine.storage.disk import explain_write_errors
from classgap.engine.storage.networks import network_metadata, run_preprocessing
from classgap.engine.storage.run_directory import RunDirectory


def write_artifacts(run: Run, directory: RunDirectory, best: dict[str, Any] | None) -> None:
    """Test the model once and write all artifacts; the final line of the metrics, written last, marks the run finished.

    Args:
        run: The trained run.
        directory: Where to write.
        best: The selected epoch; ``None`` if it is the last one.
    """
    # One split at a time: the logits of several may not fit in memory together.
    if rank() == 0:
        save_weights(run.model, directory.model, network_metadata(run))
        with explain_write_errors(directory.preprocessing), renew_checksum(directory.preprocessing):
            run_preprocessing(run).save(directory.preprocessing)
    train = _evaluate_training(run, directory)
    if run.validation is not None:
        _evaluate(run, directory.val_predictions, run.validation, train)
    test = _evaluate(run, directory.predictions, run.data.test, train)
    if rank() == 0:
        if run.config.audit:
            audit = Audit.from_checked(read_predictions(directory.path))
            audit.to_html(directory.report)
            audit.save(directory.audit)
        final: dict[str, Any] = {"final": True, "chosen_epoch": None if best is None else best["epoch"]}
        final |= run.method.findings()
        final |= {f"train_{name}": value for name, value in train.accuracies().items()}
        final |= {f"test_{name}": value for name, value in test.accuracies().items()}
        directory.add_metrics(final)
        directory.update_checksums()
    barrier()


def _evaluate_training(run: Run, directory: RunDirectory) -> Predictions:
    """Evaluate the training samples, and store their logits and features if configured."""
    if not run.config.save_train_features:
        return run.predictions(run.train)
    scores = run.scores(run.train, features=True)
    if rank() == 0:
        _write_predictions(run, directory.train_predictions, run.train, scores, features=True)
    return scores.predictions()


def _evaluate(run: Run, path: Path, split: Split, train: Predictions) -> Predictions:
    """Evaluate a split and store its logits and features."""
    scores = run.scores(split, features=run.config.save_features)
    if rank() == 0:
        _write_predictions(run, path, split, scores, train, features=run.config.save_features)
    return scores.predictions()


def _write_predictions(
    run: Run, path: Path, split: Split, scores: Scores, train: Predictions | None = None, *, features: bool
) -> None:
    """Write the predictions of a split in the layout of :mod:`classgap.audit.io.readers`.

    Args:
        run: The trained run.
        path: File to write.
        split: Evaluated samples.
        scores: Their logits and features.
        train: Predictions of the training samples, to compare with.
        features: Whether to store the features and the head.
    """
    tensors: dict[str, Tensor] = {
        "logits": scores.logits_NK,
        "targets": scores.targets_N,
        "index": split.index,
        "train_counts": run.train_counts,
    }
    if train is not None:
        tensors |= {"train_predictions": train.classes_N, "train_targets": train.targets_N}
    if features:
        tensors["features"] = _to_half(scores.features_ND)
        weight = getattr(run.tap.head, "weight", None)
        bias = getattr(run.tap.head, "bias", None)
        if isinstance(weight, Tensor):
            tensors["head_weight"] = weight.detach().float().cpu()
            if isinstance(bias, Tensor):
                tensors["head_bias"] = bias.detach().float().cpu()
    plain = {name: tensor.contiguous() for name, tensor in tensors.items()}
    with explain_write_errors(path), atomic_write(path) as file:
        names = json.dumps(list(run.data.class_names))
        file.write(serialize_checked(plain, {"class_names": names}))


def _to_half(values: Tensor) -> Tensor:
    """Convert to float16, unless a value would overflow."""
    return values.half() if float(values.abs().max()) <= torch.finfo(torch.float16).max else values
