"""Two processes train multi-stage methods as one process does on the global batch."""

from pathlib import Path

import pytest
from method_cases import moons_trained
from training_cases import metrics


def _train(out: Path, method: str) -> None:
    moons_trained(out, method, epochs=2, val_fraction=0.25)


@pytest.mark.parametrize("method", ["supcon+lws", "dro-lt+crt", "center:centers=trained+tau-norm", "lgm"])
def test_two_processes_train_as_one(method: str, tmp_path: Path, processes) -> None:
    processes.run(_train, tmp_path / "two", method)
    _train(tmp_path / "one", method)
    alone, together = metrics(tmp_path / "one"), metrics(tmp_path / "two")
    for one, two in zip(alone, together, strict=True):
        assert one.keys() == two.keys()
        numbers = {key: value for key, value in one.items() if isinstance(value, float)}
        assert {key: two[key] for key in numbers} == pytest.approx(numbers, rel=1e-3, abs=2e-3)
