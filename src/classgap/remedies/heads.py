"""Heads retrained on the frozen features of the training samples, by methods that change the classifier only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor, nn

from classgap.data.dataset import Dataset, Split
from classgap.engine import NonFiniteLossError, RunDirectory, TrainConfig, train
from classgap.engine.storage.checkpoint import load_weights, save_weights
from classgap.methods.tau_norm import normalized
from classgap.models import CosineClassifier

BATCH_SIZE = 256
EPOCHS, MIN_STEPS, MAX_STEPS = 20, 400, 4000  # a head that starts from random weights needs epochs, not steps
COSINE_LR = 0.1  # features and weights are normalized
TAUS = (0.5, 1.0)
LOSSES = ("group-dro", "mr2:strength=0", "ldam")
BALANCED_LOSS = "logit-adjustment"  # cross-entropy, if classes are balanced already
MAX_VALUES = 100_000_000  # training samples × features: 400 MB


@dataclass(frozen=True)
class FrozenFeatures:
    """Features of the training samples, and the head of the trained model.

    Attributes:
        features_MD: inputs of the head.
        targets_M: true classes.
        class_names: K names.
        weight_KD: weight of the trained head; ``None`` if it is unknown or not linear.
        bias_K: its bias; 0 if ``None``.
    """

    features_MD: Tensor
    targets_M: Tensor
    class_names: tuple[str, ...]
    weight_KD: Tensor | None = None
    bias_K: Tensor | None = None

    @property
    def steps(self) -> int:
        """Optimizer steps of a head."""
        return min(max(EPOCHS * len(self.features_MD) // BATCH_SIZE, MIN_STEPS), MAX_STEPS)

    def problem(self) -> str | None:
        """Return why no head can be trained, or ``None``."""
        if self.features_MD.numel() > MAX_VALUES:
            return f"the features of {len(self.features_MD)} training samples are too large to refit heads on."
        counts_K = torch.bincount(self.targets_M, minlength=len(self.class_names))
        empty = (counts_K == 0).nonzero().flatten()
        if len(empty):
            return f"heads are not refitted: class {self.class_names[int(empty[0])]!r} has no training features."
        return None


def refit_heads(data: FrozenFeatures, progress: Callable[[str], None]) -> Iterator[tuple[str, nn.Module]]:
    """Yield retrained heads with their names; each maps features (B, D) to logits (B, K).

    Training takes :data:`EPOCHS` epochs per method, within :data:`MIN_STEPS` and :data:`MAX_STEPS` steps, and starts
    from the trained head where the method does. Methods whose loss becomes infinite are left out.

    Args:
        data: features; ``data.problem()`` must be ``None``.
        progress: called with a line of text before each training.
    """
    if data.weight_KD is not None:
        for tau in TAUS:
            yield f"head:tau-norm:tau={tau:g}", _linear(normalized(data.weight_KD, tau), None)
    counts_K = torch.bincount(data.targets_M).double()
    methods = {loss: loss for loss in LOSSES}
    if float(counts_K.max() - counts_K.min()) > 0:
        methods[BALANCED_LOSS] = BALANCED_LOSS
    # These have a stage of their own after the stage of the inner method, which is one step here.
    methods["crt"] = f"crt:fraction={data.steps}"
    if data.weight_KD is not None:
        methods["lws"] = f"lws:fraction={data.steps}"
    for name, method in methods.items():
        progress(f"refitting the head with {name}")
        head = _train(data, method)
        if head is not None:
            yield f"head:{name}", head


def _train(data: FrozenFeatures, method: str) -> nn.Module | None:
    name = method.partition(":")[0]
    data, size = _unit_size(data)
    with TemporaryDirectory() as folder:
        config = TrainConfig(
            data="features",
            model=_start(data, Path(folder)),
            method=method,
            out=Path(folder) / "run",
            max_steps=1 if name in ("crt", "lws") else data.steps,
            batch_size=min(BATCH_SIZE, len(data.features_MD)),
            lr=_learning_rate(data, name),
            weight_decay=5e-4 if name == "ldam" else 0.0,
            audit=False,
            save_features=False,
            save_every=3600.0,
            device="cpu",
        )
        split = Split.from_arrays(data.features_MD, data.targets_M)
        width = data.features_MD.shape[1]
        few = split.subset(torch.arange(1))  # a run is tested, but nothing here depends on it
        dataset = Dataset("features", split, few, data.class_names, "vector", (width,))
        try:
            train(config, data=dataset, quiet=True)
        except NonFiniteLossError:
            return None
        weights = load_weights(RunDirectory(config.out or Path()).model)
    if name == "ldam":
        return _cosine(weights["1.weight"], weights["1.scale"])
    return _linear(weights["1.weight"] / size, weights["1.bias"])


def _unit_size(data: FrozenFeatures) -> tuple[FrozenFeatures, float]:
    """Divide the features by their root mean square, so that initial weights and learning rates suit any features."""
    size = max(float(data.features_MD.double().square().mean().sqrt()), 1e-12)
    weight_KD = None if data.weight_KD is None else data.weight_KD * size
    return replace(data, features_MD=data.features_MD / size, weight_KD=weight_KD), size


def _start(data: FrozenFeatures, folder: Path) -> str:
    """Return the name of a linear model, with the weights of the trained head if they are known."""
    if data.weight_KD is None:
        return "linear"
    path = folder / "head.safetensors"
    save_weights(nn.Sequential(nn.Flatten(), _linear(data.weight_KD, data.bias_K)), path)
    return f"checkpoint:{path}:model=linear"


def _learning_rate(data: FrozenFeatures, name: str) -> float:
    """Return a stable learning rate: the gradient of cross-entropy changes at most half as fast as E‖f‖²."""
    if name == "ldam":
        return COSINE_LR
    inputs_MD = data.features_MD
    if name == "lws":  # its parameters multiply the logits
        assert data.weight_KD is not None
        inputs_MD = nn.functional.linear(inputs_MD, data.weight_KD, data.bias_K)
        return 1.0 / max(float(inputs_MD.square().max(dim=1).values.mean()), 1e-6)
    return 1.0 / (1.0 + float(inputs_MD.square().sum(dim=1).mean()))


def _linear(weight_KD: Tensor, bias_K: Tensor | None) -> nn.Linear:
    head = nn.Linear(weight_KD.shape[1], weight_KD.shape[0])
    with torch.no_grad():
        head.weight.copy_(weight_KD)
        head.bias.zero_() if bias_K is None else head.bias.copy_(bias_K)
    return head.requires_grad_(False).eval()


def _cosine(weight_KD: Tensor, scale: Tensor) -> CosineClassifier:
    head = CosineClassifier(weight_KD.shape[1], weight_KD.shape[0], scale=float(scale))
    with torch.no_grad():
        head.weight.copy_(weight_KD)
    return head.requires_grad_(False).eval()
