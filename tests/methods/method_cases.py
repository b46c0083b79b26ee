"""Small training runs of methods, complete or interrupted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
from training_cases import config as config
from training_cases import metrics, new_run, stopped_after, trained

from classgap.engine import Run, RunDirectory
from classgap.engine.storage.checkpoint import load_weights

# Two classes in the plane, one of them rare: 8 steps an epoch.
MOONS: dict[str, Any] = {"data": "two-moons:n_train=512:n_test=200", "model": "mlp:width=8", "epochs": 3}
STEPS = 8


def moons_run(method: str, **settings: Any) -> Run:
    """Create a run that is ready for its first step."""
    return new_run(**(MOONS | {"method": method} | settings))


def moons_trained(out: Path, method: str, **settings: Any) -> RunDirectory:
    """Train a run to its end."""
    return trained(out, **(MOONS | {"method": method} | settings))


def assert_resumes(tmp_path: Path, method: str, stops: Sequence[int], **settings: Any) -> RunDirectory:
    """Check that a run interrupted after these steps ends like an uninterrupted one; return the latter."""
    whole = moons_trained(tmp_path / "whole", method, **settings)
    before = 0
    for stop in stops:
        with stopped_after(stop - before):
            moons_trained(tmp_path / "stopped", method, **settings)
        before = stop
    resumed = moons_trained(tmp_path / "stopped", method, **settings)
    assert metrics(resumed) == metrics(whole)
    ours, theirs = load_weights(resumed.model), load_weights(whole.model)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())
    return whole


def first_batch(run: Run) -> Any:
    return next(iter(run.batches.epoch(0)))


def copied(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}
