"""Training runs that can be interrupted, resumed, audited and compared: ``train(TrainConfig(data="digits"))``."""

from classgap.engine.config import TrainConfig
from classgap.engine.fit import Stopped
from classgap.engine.nonfinite import NonFiniteLoss
from classgap.engine.run import Run
from classgap.engine.run_directory import RunDirectory
from classgap.engine.scores import Scores
from classgap.engine.train import Trained, train

__all__ = ["NonFiniteLoss", "Run", "RunDirectory", "Scores", "Stopped", "TrainConfig", "Trained", "train"]
