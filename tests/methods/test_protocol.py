"""``engine.Run`` offers what ``TrainingRun`` promises to methods, and methods use nothing beyond it."""

import ast
from pathlib import Path

import pytest
from method_cases import moons_run

from classgap.engine import Run
from classgap.methods import protocol
from classgap.methods.protocol import TrainingRun

SOURCES = Path(protocol.__file__).parent


def as_training_run(run: Run) -> TrainingRun:
    """Checked by mypy, as are the engine's own calls of methods."""
    return run


def members(kind: type) -> set[str]:
    return {name for name in vars(kind) | kind.__annotations__ if not name.startswith("_")}


@pytest.fixture(scope="module")
def run() -> TrainingRun:
    return as_training_run(moons_run("erm", val_fraction=0.25))


def test_a_run_has_every_member(run: TrainingRun) -> None:
    assert members(TrainingRun) <= set(dir(run))


def test_parts_of_a_run_have_every_member(run: TrainingRun) -> None:
    parts = {
        protocol.RunConfig: run.config,
        protocol.RunPosition: run.position,
        protocol.RunMeter: run.meter,
        protocol.BatchOutputs: next(iter(run.iterate_outputs(run.train))),
        protocol.Predictions: run.predictions(run.train),
        protocol.Scores: run.scores(run.train),
    }
    for kind, part in parts.items():
        assert members(kind) <= set(dir(part)), kind


def test_methods_use_every_member_and_no_other() -> None:
    used = {
        node.attr
        for path in SOURCES.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "run"
    }
    assert used == members(TrainingRun)
