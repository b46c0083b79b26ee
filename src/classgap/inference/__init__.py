"""Predictions of trained models: runs as artifacts, new inputs in, prediction files and ONNX models out."""

from classgap.inference.loaded_run import LoadedRun, load_run
from classgap.inference.results import PredictResult
from classgap.inference.samples import InputSamples

__all__ = ["InputSamples", "LoadedRun", "PredictResult", "load_run"]
