"""Artifacts of a finished run: predictions, audit, report and final metrics."""

from __future__ import annotations

import json
from typing import Any

import torch
from torch import Tensor

from classgap._atomic_write import atomic_write
from classgap.audit import Audit, read_predictions
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
    test, train = run.scores(run.data.test, features=run.config.save_features), run.predictions(run.train)
    if rank() == 0:
        save_weights(run.model, directory.model)
        _write_predictions(run, directory, test, train)
        if run.config.report:
            audit = Audit.from_checked(read_predictions(directory.path))
            audit.to_html(directory.report)
            audit.save(directory.audit)
        final: dict[str, Any] = {"final": True, "chosen_epoch": None if best is None else best["epoch"]}
        final |= run.method.findings()
        final |= {f"train_{name}": value for name, value in train.accuracies().items()}
        final |= {f"test_{name}": value for name, value in test.accuracies().items()}
        directory.add_metrics(final)
    barrier()


def _write_predictions(run: Run, directory: RunDirectory, test: Scores, train: Predictions) -> None:
    from safetensors.torch import save

    tensors: dict[str, Tensor] = {
        "logits": test.logits_NK,
        "targets": test.targets_N,
        "index": run.data.test.index,
        "train_counts": run.train_counts,
        "train_predictions": train.classes_N,
        "train_targets": train.targets_N,
    }
    if run.config.save_features:
        tensors["features"] = _to_half(test.features_ND)
        weight = getattr(run.tap.head, "weight", None)
        bias = getattr(run.tap.head, "bias", None)
        if isinstance(weight, Tensor):
            tensors["head_weight"] = weight.detach().float().cpu()
            if isinstance(bias, Tensor):
                tensors["head_bias"] = bias.detach().float().cpu()
    plain = {name: tensor.contiguous() for name, tensor in tensors.items()}
    with explain_write_errors(directory.predictions), atomic_write(directory.predictions) as file:
        file.write(save(plain, {"class_names": json.dumps(list(run.data.class_names))}))


def _to_half(values: Tensor) -> Tensor:
    """Convert to float16, unless a value would overflow."""
    return values.half() if float(values.abs().max()) <= torch.finfo(torch.float16).max else values
