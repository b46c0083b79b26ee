"""Sources with a refitted head, for runs and for prediction files with features."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from classgap.audit.io.predictions import Predictions
from classgap.audit.io.rows import as_tensor
from classgap.data.dataset import Split
from classgap.data.preprocessing import Preprocessing
from classgap.data.splits import draw_per_class
from classgap.engine.random_state import preserve_random_state
from classgap.engine.storage.checkpoint import load_weights
from classgap.features import FeatureTap
from classgap.models import CosineClassifier
from classgap.remedies.checks import check_training_rows
from classgap.remedies.heads import FrozenFeatures, refit_heads
from classgap.remedies.modules import CosineHead, Head, Part
from classgap.remedies.networks import Network
from classgap.remedies.scoring import input_details, input_kind
from classgap.remedies.sources import Source
from classgap.remedies.stored_runs import StoredRun

MAX_SAMPLES = 20_000  # training samples to refit on; bounds the time of a pass over them
Refitted = tuple[list[Source], tuple[str, ...]]


@preserve_random_state()
def refit_predictions(fit: Predictions, test: Predictions | None, progress: Callable[[str], None]) -> Refitted:
    """Return sources of refitted heads that take features, and notices.

    Both are empty unless the files have ``features``, and the fitting file ``train_features`` and ``train_targets``.

    Raises:
        ValueError: if all training samples are fitting or test samples.
    """
    features = [fit.features_ND, fit.features_ND if test is None else test.features_ND]
    if fit.train_features_MD is None or fit.train_targets_M is None or features[0] is None or features[1] is None:
        return [], ()
    kept_M, notices = check_training_rows(fit, *(() if test is None else (test,)))
    kept = torch.from_numpy(kept_M)
    targets_M = torch.from_numpy(fit.train_targets_M).long()
    rows = kept[_sample_rows(targets_M[kept], kept, fit.num_classes)]
    bias_K = None if fit.bias_K is None else fit.bias_K.float()
    weight_KD = None if fit.weight_KD is None else fit.weight_KD.float()
    data = FrozenFeatures(fit.train_features_MD[rows].float(), targets_M[rows], fit.class_names, weight_KD, bias_K)
    if (problem := data.problem()) is not None:
        return [], (*notices, problem)
    fit_ND, test_ND = as_tensor(features[0]).float(), as_tensor(features[1]).float()
    found = []
    for name, head in refit_heads(data, progress):
        part = _as_part(head)
        logits = [part(each) for each in (fit_ND, test_ND)]
        test_logits_NK = None if test is None else logits[1]
        found.append(Source(name, logits[0], test_logits_NK, inputs="features", module=part, adjustable=False))
    return found, notices


def refit_run(
    run: StoredRun, fit: Split, test: Split, device: torch.device, progress: Callable[[str], None]
) -> Refitted:
    """Return sources of the network of a run with refitted heads, and notices.

    Heads are trained on features of at most :data:`MAX_SAMPLES` training samples, without augmentation.
    """
    progress(f"computing features of {run.name}")
    rows = _sample_rows(run.train.targets, run.train.index, run.data.num_classes)
    network, trained = run.network.to(device), run.network.head
    train_MD = _stored_features(run)
    if train_MD is None:
        train_MD = compute_features(network, run.train.subset(rows), run.preprocessing, device)
    else:
        train_MD = train_MD[rows]
    weight_KD, bias_K = (trained.weight.cpu(), trained.bias) if type(trained) is nn.Linear else (None, None)
    data = FrozenFeatures(
        train_MD,
        run.train.targets[rows],
        run.data.class_names,
        weight_KD,
        None if bias_K is None else bias_K.cpu(),
    )
    if (problem := data.problem()) is not None:
        network.cpu()
        return [], (problem,)
    fit_ND, test_ND = (compute_features(network, split, run.preprocessing, device) for split in (fit, test))
    network.cpu()
    return [
        Source(
            name,
            _apply(head, fit_ND),
            _apply(head, test_ND),
            inputs=input_kind(run.preprocessing),
            module=network.with_head(head),
            adjustable=False,
            details=input_details(run.preprocessing),
        )
        for name, head in refit_heads(data, progress)
    ], ()


@torch.no_grad()
def compute_features(network: Network, split: Split, preprocessing: Preprocessing, device: torch.device) -> Tensor:
    """Return the inputs of the head for all samples of a split, (N, D), on the CPU."""
    parts = []
    with FeatureTap(network.module) as tap:
        for batch in preprocessing.batches(split, device):
            network(batch.inputs)
            parts.append(tap.features.float().cpu())
    return torch.cat(parts)


def _sample_rows(targets_M: Tensor, index_M: Tensor, num_classes: int) -> Tensor:
    """Rows of all samples, or of a random part with the same class frequencies if there are too many."""
    if len(targets_M) <= MAX_SAMPLES:
        return torch.arange(len(targets_M))
    counts_K = torch.bincount(targets_M, minlength=num_classes).double() * (MAX_SAMPLES / len(targets_M))
    return draw_per_class(targets_M, index_M, counts_K.round().clamp(min=1).long(), 0, "refit heads")


def _stored_features(run: StoredRun) -> Tensor | None:
    """Features of all training samples, if the run stored them."""
    file = run.directory.train_predictions
    if not file.is_file():
        return None
    stored = load_weights(file)
    same = "features" in stored and torch.equal(stored["index"], run.train.index)
    return stored["features"].float() if same else None


def _as_part(head: nn.Module) -> Part:
    if isinstance(head, CosineClassifier):
        return CosineHead(head.weight, head.scale)
    assert isinstance(head, nn.Linear)
    return Head(head.weight, head.bias)


@torch.no_grad()
def _apply(head: nn.Module, features_ND: Tensor) -> Tensor:
    logits_NK: Tensor = head(features_ND)
    return logits_NK
