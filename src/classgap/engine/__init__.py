"""Training runs that can be interrupted, resumed, audited and compared: ``train(TrainConfig(data="digits"))``."""

from classgap.engine.config import TrainConfig
from classgap.engine.errors import NonFiniteLossError
from classgap.engine.fit import TrainingInterrupted
from classgap.engine.run import Run
from classgap.engine.scores import Scores
from classgap.engine.storage.run_directory import RunDirectory
from classgap.engine.train import Trained, train

__all__ = [
    "NonFiniteLossError",
    "Run",
    "RunDirectory",
    "Scores",
    "TrainConfig",
    "Trained",
    "TrainingInterrupted",
    "train",
]
