"""Training runs that can be interrupted, resumed, audited and compared: ``train(TrainConfig(data="digits"))``."""

from classgap.engine.config import TrainConfig
from classgap.engine.errors import NonFiniteLossError, TrainingInterrupted
from classgap.engine.evaluation import Scores
from classgap.engine.run import Run
from classgap.engine.storage.run_directory import RunDirectory
from classgap.engine.train import TrainResult, train

__all__ = [
    "NonFiniteLossError",
    "Run",
    "RunDirectory",
    "Scores",
    "TrainConfig",
    "TrainResult",
    "TrainingInterrupted",
    "train",
]
