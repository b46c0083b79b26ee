"""Artifacts of a finished run: predictions, audit, report and final metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from classgap._atomic_write import atomic_write
from classgap.audit import Audit, read_predictions
from classgap.data.dataset import Split
from classgap.distributed import barrier, rank
from classgap.engine.evaluation import Predictions, Scores
from classgap.engine.run import Run
from classgap.engine.storage.checkpoint import save_weights
from classgap.engine.storage.disk import explain_write_errors
from classgap.engine.storage.run_directory import RunDirectory


def write_artifacts(run: Run, directory: RunDirectory, best: dict[str, Any] | None) -> None:
    """Test the model once and write all artifacts; the final line of the metrics, written last, marks the run finished.

    Args:
        run: The trained run.
        directory: Where to write.
        best: The selected epoch; ``None`` if it is the last one.
    """
    features = run.config.save_features
    test = run.scores(run.data.test, features=features)
    validation = None if run.validation is None else run.scores(run.validation, features=features)
    train = _evaluate_training(run)
    train_predictions = train.predictions() if isinstance(train, Scores) else train
    if rank() == 0:
        save_weights(run.model, directory.model)
        _write_predictions(run, directory.predictions, run.data.test, test, train_predictions, features=features)
        if run.validation is not None and validation is not None:
            path = directory.val_predictions
            _write_predictions(run, path, run.validation, validation, train_predictions, features=features)
        if isinstance(train, Scores):
            _write_predictions(run, directory.train_predictions, run.train, train, features=True)
        if run.config.report:
            audit = Audit.from_checked(read_predictions(directory.path))
            audit.to_html(directory.report)
            audit.save(directory.audit)
        final: dict[str, Any] = {"final": True, "chosen_epoch": None if best is None else best["epoch"]}
        final |= run.method.findings()
        final |= {f"train_{name}": value for name, value in train_predictions.accuracies().items()}
        final |= {f"test_{name}": value for name, value in test.accuracies().items()}
        directory.add_metrics(final)
    barrier()


def _evaluate_training(run: Run) -> Scores | Predictions:
    """Evaluate the training samples: predicted classes, or logits and features if they are to be stored."""
    if run.config.save_train_features:
        return run.scores(run.train, features=True)
    return run.predictions(run.train)


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
    from safetensors.torch import save

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
        file.write(save(plain, {"class_names": json.dumps(list(run.data.class_names))}))


def _to_half(values: Tensor) -> Tensor:
    """Convert to float16, unless a value would overflow."""
    return values.half() if float(values.abs().max()) <= torch.finfo(torch.float16).max else values
