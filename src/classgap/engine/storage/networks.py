"""Trained networks of runs: described by plain values, rebuilt from them, and loaded with their final weights."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from classgap._text_checksums import check_text
from classgap.audit.io.readers import find_predictions
from classgap.data import load
from classgap.data.dataset import Dataset
from classgap.data.preprocessing import Preprocessing
from classgap.engine.config import TrainConfig
from classgap.engine.run import Run
from classgap.engine.storage.run_directory import RunDirectory
from classgap.losses import GaussianMixtureHead
from classgap.models import MODELS, CosineClassifier, Frozen
from classgap.models.heads import exchange_head, head_of
from classgap.models.state_files import read_weights


@dataclass(frozen=True)
class TrainedNetwork:
    """Network of a finished run.

    Attributes:
        module: The network with its final weights, in evaluation mode and on the CPU.
        description: Plain values from which :func:`build_network` builds the architecture.
        class_names: One name per class.
        preprocessing: Preparation of the inputs.
    """

    module: nn.Module
    description: Mapping[str, Any]
    class_names: tuple[str, ...]
    preprocessing: Preprocessing


def describe_network(module: nn.Module, model: str, num_classes: int, input_shape: tuple[int, ...]) -> dict[str, Any]:
    """Return plain values from which :func:`build_network` builds the architecture.

    Args:
        module: The network; methods may have replaced its head.
        model: Its name, from which :func:`classgap.models.build` creates the architecture.
        num_classes: Number of classes.
        input_shape: Shape of one input.

    >>> describe_network(nn.Sequential(nn.Linear(4, 3)), "linear", 3, (4,))["head"]
    'linear'
    """
    head = head_of(module)
    described: dict[str, Any] = {"model": model, "num_classes": num_classes, "input_shape": list(input_shape)}
    if isinstance(head, GaussianMixtureHead):
        variances = "unit" if head.log_variance is None else "learned"
        return described | {
            "head": "gaussian-mixture",
            "variances": variances,
            "log_determinant": head.log_determinant,
        }
    if isinstance(head, CosineClassifier):
        return described | {"head": "cosine"}
    return described | {"head": "linear", "bias": getattr(head, "bias", None) is not None}


def build_network(description: Mapping[str, Any]) -> nn.Module:
    """Build an architecture; no pretrained weights are loaded.

    >>> build_network({"model": "mlp:width=8", "num_classes": 3, "input_shape": [4], "head": "linear"})[-1]
    Linear(in_features=8, out_features=3, bias=True)
    """
    classes, shape = int(description["num_classes"]), tuple(description["input_shape"])
    names = [str(k) for k in range(classes)]  # for a zero-shot head, whose weights are loaded afterwards
    module = MODELS.build(description["model"], num_classes=classes, input_shape=shape, class_names=names, load=False)
    module = module.module if isinstance(module, Frozen) else module
    _fit_head(module, description, classes)
    return module


def check_sizes(build: Callable[[], nn.Module], state: Mapping[str, Tensor], file: Path) -> None:
    """Compare the shapes of a module with stored weights before it is allocated: a description may name any size.

    Raises:
        ValueError: With the first tensor that differs.

    >>> check_sizes(lambda: nn.Linear(10**9, 10**9), {"weight": torch.zeros(2, 3)}, Path("w.pt"))
    Traceback (most recent call last):
    ValueError: weight has shape (1000000000, 1000000000), but (2, 3) in w.pt
    """
    try:
        with torch.device("meta"):
            expected = build().state_dict()
    except (NotImplementedError, RuntimeError):  # a network that computes with values while it is built
        return
    for name, tensor in expected.items():
        if name in state and tensor.shape != state[name].shape:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, but {tuple(state[name].shape)} in {file}")
        if name not in state:
            raise ValueError(f"{name} is missing from {file}")


def run_description(run: Run) -> dict[str, Any]:
    """Describe the network of a run."""
    return describe_network(run.model, run.architecture, run.num_classes, run.input_shape)


def run_preprocessing(run: Run) -> Preprocessing:
    """Return the preparation of the test samples of a run."""
    is_image = run.data.kind == "image"
    height, width = run.data.shape[1:] if is_image else (0, 0)
    resize = (height, width) if is_image else None
    return Preprocessing(run.mean, run.std, run.crop, run.input_shape, run.data.kind, resize, run.data.table)


def network_metadata(run: Run) -> dict[str, str]:
    """Return the metadata of the file of the final weights: architecture and class names, as JSON."""
    names = json.dumps(list(run.data.class_names), ensure_ascii=False)
    return {"format": "pt", "network": json.dumps(run_description(run)), "class_names": names}


def read_finished_config(directory: RunDirectory) -> TrainConfig:
    """Return the settings of a finished run.

    Raises:
        ValueError: If the directory holds no run, or the run is not finished.
    """
    if not directory.path.is_dir():
        raise ValueError(f"{directory.path} is not a run directory.")
    if not directory.config.is_file():
        raise ValueError(f"{directory.path} is not a run directory: {directory.config.name} is missing.")
    find_predictions(directory.path)  # explains a run that failed or is not finished
    if not directory.finished() or not directory.model.is_file():
        raise ValueError(f"{directory.path} is not finished: resume it by running the same train command.")
    settings = directory.stored_settings()
    if "data" not in settings:
        raise ValueError(f"{directory.config} is damaged: it does not name the data. Restore it or train again.")
    try:
        return TrainConfig(**settings)
    except ValueError as error:
        raise ValueError(f"{directory.config}: {error}") from None


def load_network(directory: RunDirectory, config: TrainConfig, data: Dataset | None = None) -> TrainedNetwork:
    """Load the network of a finished run.

    Runs of earlier versions did not store how inputs are prepared. It is then derived from their settings and data.

    Args:
        directory: The run.
        config: Its settings.
        data: Its dataset, if it is already loaded.

    Raises:
        ValueError: If the weights do not fit, or the data that an earlier version needs are missing.
    """
    metadata = _read_metadata(directory.model)
    if "network" in metadata and "class_names" in metadata and directory.preprocessing.is_file():
        try:
            description, names = (json.loads(metadata[key]) for key in ("network", "class_names"))
            if (
                not isinstance(description, dict)
                or not isinstance(names, list)
                or not all(isinstance(name, str) for name in names)
            ):
                raise ValueError("network must be an object and class_names a list of strings")
            if description.get("num_classes") != len(names):
                raise ValueError(
                    f"class_names has {len(names)} names, num_classes is {description.get('num_classes')!r}"
                )
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the metadata of {directory.model} is damaged ({error}); train again.") from None
        check_text(directory.preprocessing)
        preprocessing = Preprocessing.load(directory.preprocessing)
    else:
        description, names, preprocessing = _derive(directory, config, data)
    state = read_weights(directory.path).state
    try:
        check_sizes(lambda: build_network(description), state, directory.model)
        module = build_network(description)
    except (LookupError, TypeError, AttributeError, OverflowError, RuntimeError, ValueError) as error:
        reason = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ValueError(f"the network that {directory.model} describes cannot be built: {reason}") from None
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        raise ValueError(f"the weights of {directory.path} do not fit {description['model']}: {error}") from None
    return TrainedNetwork(module.eval().requires_grad_(False), description, tuple(names), preprocessing)


def _derive(
    directory: RunDirectory, config: TrainConfig, data: Dataset | None
) -> tuple[dict[str, Any], tuple[str, ...], Preprocessing]:
    """Build the run again, which replaces the head where its method does, and knows crop and normalization."""
    try:
        data = data or load(config.data)
        run = Run(replace(config, compile=False), data, torch.device("cpu"))
    except ValueError as error:
        raise ValueError(
            f"{directory.path} has no {directory.preprocessing.name}, and it cannot be derived from its data: {error}"
        ) from None
    run.tap.remove()
    return run_description(run), data.class_names, run_preprocessing(run)


def _read_metadata(path: Path) -> dict[str, str]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            return file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{path} cannot be read as weights ({error}); train again.") from None


def _fit_head(module: nn.Module, description: Mapping[str, Any], classes: int) -> None:
    """Replace the head that the architecture was created with, if the trained network has another kind."""
    before, kind = head_of(module), description["head"]
    if kind not in ("linear", "cosine", "gaussian-mixture"):
        raise ValueError(f"head must be linear, cosine or gaussian-mixture, got {kind!r}")
    features = before.get_parameter("weight").shape[1]
    bias = description.get("bias", True)
    if kind == "gaussian-mixture":
        options = {"variances": description["variances"], "log_determinant": description["log_determinant"]}
        exchange_head(module, GaussianMixtureHead(features, classes, **options))
    elif kind == "cosine" and not isinstance(before, CosineClassifier):
        exchange_head(module, CosineClassifier(features, classes))
    elif kind == "linear" and (getattr(before, "bias", None) is not None) != bias:
        exchange_head(module, nn.Linear(features, classes, bias=bias))
