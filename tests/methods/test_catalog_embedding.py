"""Methods of catalog_embedding that only replace the loss."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from method_cases import assert_resumes, first_batch, moons_run

LOSSES = ["center", "center:centers=trained", "triplet", "range:margin=10", "spread-out", "hybrid:queue=100"]


@pytest.mark.parametrize("method", LOSSES)
def test_stopped_and_resumed(method: str, tmp_path: Path) -> None:
    assert_resumes(tmp_path, method, [5, 13])


@pytest.mark.parametrize(
    "method", ["center:strength=0", "triplet:strength=0", "range:intra=0:inter=0", "spread-out:strength=0"]
)
def test_without_their_term_they_are_cross_entropy(method: str) -> None:
    run = moons_run(method)
    batch = first_batch(run)
    value = run.method.objective(run, batch)
    torch.testing.assert_close(value, F.cross_entropy(run.model(batch.inputs), batch.labels))


def test_trained_centers_have_a_rate_of_their_own() -> None:
    run = moons_run("center:centers=trained", loss_lr=0.5)
    own = run.optimizer.param_groups[1]
    assert own["params"] == [run.method.loss.centers]
    assert (own["lr"], own["weight_decay"]) == (0.5, 0.0)
