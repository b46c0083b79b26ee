"""Losses and learning rates are read from the metrics of a run."""

import json

import numpy as np
import pytest

from classgap.audit import read_predictions


def with_metrics(tmp_path, *lines):
    np.savez(tmp_path / "predictions.npz", logits=np.eye(3), targets=np.arange(3))
    (tmp_path / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def test_losses_of_the_last_stage_are_read(tmp_path):
    stages = [("a", 1, 9.0), ("b", 1, 3.0), ("b", 2, 2.0)]
    lines = [json.dumps({"stage": name, "epoch": i, "lr": 0.1, "loss": loss}) for name, i, loss in stages]
    run = with_metrics(tmp_path, *lines, json.dumps({"final": True, "test_accuracy": 0.5}))
    for source in (run, run / "predictions.npz"):
        data = read_predictions(source)
        assert (data.train_losses_E.tolist(), data.learning_rates_E.tolist()) == ([3.0, 2.0], [0.1, 0.1])
    (run / "predictions.npz").rename(run / "other.npz")
    assert read_predictions(run / "other.npz").train_losses_E is None


@pytest.mark.parametrize(
    "line",
    [
        *(
            "",
            "{",
            "[1]",
            "3",
            '{"epoch": 1}',
            '{"epoch": 1, "loss": "x", "lr": 1}',
            '{"epoch": 1, "loss": NaN, "lr": 1}',
        ),
        *('{"epoch": 1, "loss": [1, 2], "lr": 1}', '{"epoch": 1, "loss": null, "lr": null}', "[" * 100_000),
    ],
)
def test_metrics_of_other_programs_are_ignored(tmp_path, line):
    data = read_predictions(with_metrics(tmp_path, line))
    assert (data.train_losses_E, data.learning_rates_E) == (None, None)
