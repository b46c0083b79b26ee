"""``load_run``: a finished run as a model that takes new inputs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from classgap._text_checksums import check_text
from classgap.data.preprocessing import Preprocessing
from classgap.distributed import gather_rows, rank, world_size
from classgap.engine import RunDirectory, TrainConfig
from classgap.engine.optim import autocast
from classgap.engine.storage.checkpoint import load_weights
from classgap.engine.storage.networks import load_network, read_finished_config
from classgap.engine.train import choose_device
from classgap.features import FeatureTap
from classgap.inference.results import PredictResult
from classgap.inference.samples import InputSamples
from classgap.remedies.fixed_model import Fix
from classgap.remedies.modules import ExpectedCost


@dataclass(frozen=True, repr=False)
class LoadedRun:
    """A trained model with everything needed to use it.

    Attributes:
        model: The network with the weights that the run was tested with, in evaluation mode.
        preprocessing: Prepares one input, such as a Pillow image, for the network.
        class_names: One name per class.
        config: Settings of the run.
        directory: Its files.
        device: Device of the model.

    >>> from tempfile import TemporaryDirectory
    >>> from classgap.engine.train import train
    >>> with TemporaryDirectory() as folder:
    ...     out = Path(folder) / "moons"
    ...     config = TrainConfig(data="two-moons:n_train=64:n_test=64", epochs=1, out=out, audit=False)
    ...     run = load_run(train(config, quiet=True).run_dir, device="cpu")
    ...     run.features([[0.0, 1.0], [1.0, -0.5]]).shape
    torch.Size([2, 2])
    """

    model: nn.Module
    preprocessing: Preprocessing
    class_names: tuple[str, ...]
    config: TrainConfig
    directory: RunDirectory
    device: torch.device

    def __repr__(self) -> str:
        facts = f"{self.config.model} for {len(self.class_names)} classes, inputs {self.preprocessing.shape}"
        return f"LoadedRun({str(self.directory.path)!r}: {facts}, on {self.device})"

    @property
    def batch_size(self) -> int:
        """Batch size with which the run tested its model; with it, logits are bitwise equal to those of the run."""
        try:
            check_text(self.directory.environment)
            processes = int(json.loads(self.directory.environment.read_text(encoding="utf-8"))["processes"])
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            processes = 1
        return max(1, (self.config.batch_size or 256) // (self.config.micro_batches * processes))

    @property
    def train_counts(self) -> Tensor | None:
        """Training samples of each class, (K,), or ``None`` if the run does not store them."""
        if not self.directory.predictions.is_file():
            return None
        return load_weights(self.directory.predictions).get("train_counts")

    def predict(
        self,
        inputs: Any,
        *,
        batch_size: int | None = None,
        workers: int = 0,
        fix: Fix | None = None,
        shard: bool = False,
        progress: Callable[[int], None] = lambda count: None,
    ) -> PredictResult:
        """Predict the classes of new inputs.

        Args:
            inputs: An array or tensor (N, …); an image, an image file or a folder; a list or iterator of images, files
                and arrays; or a split of a dataset. A model of a table takes a data frame or a list of rows, a model of
                texts takes texts. Inputs are prepared as in training: images are bytes or numbers in [0, 1], not
                normalized, in any size.
            batch_size: Batch size; by default, that with which the run tested its model.
            workers: Processes that decode image files.
            fix: A remedy to apply; see :func:`classgap.load_fix`.
            shard: Divide the samples among the processes of the process group. All must pass the same inputs, and all
                get the whole result.
            progress: Called with the number of newly finished samples.

        Raises:
            ValueError: If an input or the fix does not fit the model.
        """
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
        if workers < 0:
            raise ValueError(f"workers must be at least 0, got {workers}.")
        self.check_fix(fix)
        samples = InputSamples.from_any(inputs, self.preprocessing)
        wanted = "logits" if fix is None else fix.inputs
        size = batch_size or self.batch_size
        mine = samples.shard(rank(), world_size(), size) if shard else samples
        parts = [torch.empty(0, len(self.class_names))]
        with torch.inference_mode(), FeatureTap(self.model) if wanted == "features" else nullcontext() as tap:
            for raw in mine.batches(size, workers=workers):
                parts.append(self._score(raw, fix, tap).cpu())
                progress(len(raw))
            scores_NK = gather_rows(torch.cat(parts)) if shard else torch.cat(parts)
            if fix is not None and wanted == "logits":
                scores_NK = fix.to("cpu")(scores_NK)
        has_probabilities = fix is None or not any(isinstance(part, ExpectedCost) for part in fix.parts)
        return PredictResult.from_logits(
            scores_NK.clone(), self.class_names, has_probabilities=has_probabilities, filenames=samples.filenames
        )

    @torch.inference_mode()
    def features(
        self,
        inputs: Any,
        *,
        layer: str | None = None,
        pool: bool = True,
        batch_size: int | None = None,
        workers: int = 0,
    ) -> Tensor:
        """Return the features of inputs, float32, on the CPU: the input of the head, or the output of an earlier layer.

        Args:
            inputs: As for :meth:`predict`, for example ``cg.data.load(run.config.data).test``.
            layer: Dotted name of a layer, such as ``layer2``; see ``run.model.named_modules()``.
            pool: Average the output of ``layer`` over positions: the last dimensions of channels-first outputs
                (B, C, H, W), and (B, C, L) of signals; the tokens of others, (B, T, D). False returns it as it is.
            batch_size: Batch size; by default, that with which the run tested its model.
            workers: Processes that decode image files.

        Raises:
            ValueError: If an input does not fit the model, or it has no such layer.
        """
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
        samples = InputSamples.from_any(inputs, self.preprocessing)
        parts = []
        with FeatureTap(self.model, layer=layer) as tap:
            for raw in samples.batches(batch_size or self.batch_size, workers=workers):
                self._score(raw, None, tap)
                found = tap.features.float()
                parts.append((self._pool(found) if pool else found).cpu())
        return torch.cat(parts).clone()

    def _pool(self, features: Tensor) -> Tensor:
        if features.ndim == 3:
            return features.mean(dim=2 if self.preprocessing.kind == "signal" else 1)
        return features.flatten(2).mean(dim=2) if features.ndim > 3 else features

    def check_fix(self, fix: Fix | None) -> None:
        """Check that a fix belongs to this model.

        Raises:
            ValueError: If it has other classes, takes the scores of several models, or other inputs.
        """
        if fix is None:
            return
        if fix.class_names != self.class_names:
            raise ValueError(
                f"the fix {fix.name} has other classes than {self.directory.path}: {', '.join(fix.class_names[:3])}, … "
                f"instead of {', '.join(self.class_names[:3])}, …; fit it to this run with `classgap fix`."
            )
        if fix.inputs == "ensemble":
            raise ValueError(
                f"the fix {fix.name} takes the scores of {len(fix.members)} models ({', '.join(fix.members)}), not of "
                "one: predict with each of them and pass the stacked logits to cg.load_fix."
            )
        shape = fix.details.get("input_shape")
        if fix.inputs in ("images", "samples") and shape is not None and tuple(shape) != self.preprocessing.shape:
            raise ValueError(
                f"the fix {fix.name} takes inputs of shape {tuple(shape)}, but {self.directory.path} takes "
                f"{self.preprocessing.shape}."
            )
        mean = fix.details.get("mean")
        if fix.inputs in ("images", "samples") and mean is not None and tuple(mean) != self.preprocessing.mean:
            raise ValueError(
                f"the fix {fix.name} takes inputs normalized with mean {mean}, but {self.directory.path} uses "
                f"{self.preprocessing.mean}."
            )

    def _score(self, raw: Tensor, fix: Fix | None, tap: FeatureTap | None) -> Tensor:
        inputs = self.preprocessing.prepare(raw).to(self.device)
        if fix is not None and fix.inputs in ("images", "samples"):  # the fix holds its own networks
            scores: Tensor = fix.to(self.device)(inputs)
            return scores
        if self.config.channels_last and inputs.ndim == 4:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        with autocast(self.config.precision, self.device):
            logits_BK: Tensor = self.model(inputs)
        if fix is not None and tap is not None:
            adjusted: Tensor = fix.to(self.device)(tap.features)
            return adjusted
        return logits_BK.to(torch.promote_types(logits_BK.dtype, torch.float32))


def load_run(path: str | os.PathLike[str], *, device: str = "auto") -> LoadedRun:
    """Load the model of a finished run of :func:`classgap.train` or ``classgap train``.

    Args:
        path: Directory of the run.
        device: "auto", "cpu", "cuda" or "cuda:N".

    Raises:
        ValueError: If the directory holds no finished run, or the device does not exist.

    >>> from tempfile import TemporaryDirectory
    >>> from classgap.engine.train import train
    >>> with TemporaryDirectory() as folder:
    ...     out = Path(folder) / "run"
    ...     config = TrainConfig(data="two-moons:n_train=64:n_test=64", epochs=1, out=out, audit=False)
    ...     run = load_run(train(config, quiet=True).run_dir, device="cpu")
    ...     result = run.predict([[0.0, 1.0], [1.0, -0.5]])
    >>> result.logits.shape, run.class_names
    (torch.Size([2, 2]), ('Head', 'Tail'))
    >>> run
    LoadedRun('...run': elm-mlp for 2 classes, inputs (2,), on cpu)
    """
    place = choose_device(device)
    directory = RunDirectory(Path(path))
    config = read_finished_config(directory)
    trained = load_network(directory, config)
    model = trained.module.to(place)
    if config.channels_last:
        model = model.to(memory_format=torch.channels_last)
    return LoadedRun(model, trained.preprocessing, trained.class_names, config, directory, place)
