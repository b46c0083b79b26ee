"""Samples and sources of ``classgap fix RUN [RUN …]``: views of images, ensembles, weight averages and heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from classgap.audit.io.predictions import Predictions
from classgap.data.dataset import Split
from classgap.data.preprocessing import Preprocessing
from classgap.data.splits import other_rows
from classgap.engine.random_state import preserve_random_state
from classgap.engine.train import choose_device
from classgap.remedies.checks import MIN_SAMPLES, check_support
from classgap.remedies.fix import Samples
from classgap.remedies.modules import Part, mean_probability
from classgap.remedies.networks import MeanNetwork, Network
from classgap.remedies.refits import refit_run
from classgap.remedies.scoring import NetworkScores, duplicate_rows, input_details, input_kind, score
from classgap.remedies.soup import average_weights, batch_norms, recompute_batch_norm
from classgap.remedies.sources import Source, ensemble
from classgap.remedies.stored_runs import StoredRun, open_runs
from classgap.remedies.views import VIEWS, Views, shift_size

Progress = Callable[[str], None]
HOPELESS = 0.05  # accuracy below that of the baseline; no adjustment makes up for it


@preserve_random_state()
def read_runs(paths: Sequence[Path], progress: Progress = lambda message: None) -> Samples:
    """Score the validation and test samples of runs with their networks, averages of them, and views of images.

    Fitting samples are the samples that every run held out; use the same ``--split-seed`` in runs of different seeds.
    Validation samples whose inputs are also test inputs are left out. The model to fix is the run that is most
    accurate on the fitting samples.

    Args:
        paths: run directories.
        progress: called with a line of text before each step.

    Raises:
        ValueError: if a run is unfinished or has no validation samples, or the runs have different data.
    """
    progress("reading runs")
    runs = open_runs(paths)
    fit, notices = _fitting_samples(runs)
    test, device = runs[0].data.test, choose_device("auto")
    scored = _score_runs(runs, fit, test, device, progress)
    for run, each in zip(runs, scored, strict=True):
        run.check_predictions(each.test.logits_NK.argmax(dim=1).numpy())
    best = int(np.argmax([_accuracy(each.fit.logits_NK, fit) for each in scored]))
    sources = [_baseline(runs[best].name, scored[best]), *_view_sources("", [scored[best]], runs[best].preprocessing)]
    if len(runs) > 1:
        sources += _ensemble_sources(runs, scored)
        if _are_alike(runs) and all(run.network.same_architecture(runs[0].network) for run in runs):
            progress("averaging the weights of the runs")
            sources += _soup_sources(runs, fit, test, device, _lowest_accuracy(sources, fit))
    sources = _promising(sources, fit)
    heads, problems = refit_run(runs[best], fit, test, device, progress)
    sources, notices = [*sources, *heads], (*notices, *problems)
    data = [
        _predictions(split, logits_NK, runs[best])
        for split, logits_NK in ((fit, scored[best].fit.logits_NK), (test, scored[best].test.logits_NK))
    ]
    check_support(data[0], data[1])
    return Samples(data[0], data[1], tuple(sources), notices)


@dataclass(frozen=True)
class _Scored:
    """A network with its scores of the fitting and the test samples."""

    network: Network
    fit: NetworkScores
    test: NetworkScores


def _fitting_samples(runs: Sequence[StoredRun]) -> tuple[Split, tuple[str, ...]]:
    """Return the samples that every run held out and that are not test samples."""
    first, notices = runs[0].validation, []
    kept = torch.ones(len(first), dtype=torch.bool)
    for run in runs[1:]:
        kept &= torch.isin(first.index, run.validation.index)
    fit = first.subset(kept.nonzero().flatten())
    if len(fit) < max(len(run.validation) for run in runs):
        counts = fit.class_counts(runs[0].data.num_classes)
        wanted = first.class_counts(runs[0].data.num_classes) > 0
        if int(counts[wanted].min()) < MIN_SAMPLES:
            seeds = ", ".join(str(run.config.seed) for run in runs)
            raise ValueError(
                f"the runs hold out different samples: only {len(fit)} were held out by all {len(runs)} runs, and a "
                f"class has fewer than {MIN_SAMPLES}. Train runs of different seeds (here {seeds}) with the same "
                "--split-seed and --val-fraction."
            )
        notices.append(f"fitted to the {len(fit)} samples that all {len(runs)} runs held out.")
    duplicates = duplicate_rows(fit, runs[0].data.test)
    if len(duplicates):
        notices.append(f"left out {len(duplicates)} validation samples that are also test samples.")
        fit = fit.subset(other_rows(duplicates, len(fit)))
    return fit, tuple(notices)


def _are_alike(runs: Sequence[StoredRun]) -> bool:
    """Return whether all networks take the same inputs."""
    return all(run.preprocessing == runs[0].preprocessing for run in runs)


def _score_runs(
    runs: Sequence[StoredRun], fit: Split, test: Split, device: torch.device, progress: Progress
) -> list[_Scored]:
    found = []
    for run in runs:
        views = max([VIEWS[name] for name in _possible_views(run.preprocessing)], default=1)
        each = f" in {views} views" if views > 1 else ""
        progress(f"scoring {len(fit)} validation and {len(test)} test samples with {run.name}{each}")
        found += _score([run.network], run.preprocessing, fit, test, device)
    return found


def _score(
    networks: Sequence[Network],
    preprocessing: Preprocessing,
    fit: Split,
    test: Split,
    device: torch.device,
    *,
    with_views: bool = True,
) -> list[_Scored]:
    views = _possible_views(preprocessing) if with_views else ()
    shift = shift_size(preprocessing.shape) if views else 1
    for network in networks:
        network.to(device)
    scores = [score(networks, split, preprocessing, device, views=views, shift=shift) for split in (fit, test)]
    return [_Scored(network.cpu(), *both) for network, *both in zip(networks, *scores, strict=True)]


def _possible_views(preprocessing: Preprocessing) -> tuple[str, ...]:
    if not preprocessing.is_image or min(preprocessing.shape[1:]) < 2:
        return ()
    return tuple(VIEWS)


def _accuracy(logits_NK: Tensor, split: Split) -> float:
    return float((logits_NK.argmax(dim=1) == split.targets).double().mean())


def _lowest_accuracy(sources: Sequence[Source], fit: Split) -> float:
    return _accuracy(sources[0].logits_NK, fit) - HOPELESS


def _promising(sources: Sequence[Source], fit: Split) -> list[Source]:
    """Adjust only sources that are about as accurate as the baseline, and leave out views of the others.

    Weight averages of runs that started from different weights are often no better than chance.
    """
    lowest = _lowest_accuracy(sources, fit)
    kept: dict[str, Source] = {}
    for source in sources:
        good = _accuracy(source.logits_NK, fit) >= lowest
        origin = kept.get(source.name.partition("+")[0])
        if good or origin is None or origin.adjustable:
            kept[source.name] = source if good else replace(source, adjustable=False)
    return list(kept.values())


def _predictions(split: Split, logits_NK: Tensor, run: StoredRun) -> Predictions:
    return Predictions.from_arrays(
        split.targets,
        logits=logits_NK,
        class_names=run.data.class_names,
        train_counts=run.train.class_counts(run.data.num_classes),
        name=run.name,
    )


def _baseline(name: str, scored: _Scored) -> Source:
    return Source(name, scored.fit.logits_NK, scored.test.logits_NK, is_baseline=True)


def _ensemble_sources(runs: Sequence[StoredRun], scored: Sequence[_Scored]) -> list[Source]:
    if _are_alike(runs):
        return _named_sources("ensemble", scored, runs[0].preprocessing, tuple(run.name for run in runs))
    # Networks that take different inputs are averaged by their logits.
    return [ensemble([_baseline(run.name, each) for run, each in zip(runs, scored, strict=True)])]


def _named_sources(
    name: str, scored: Sequence[_Scored], preprocessing: Preprocessing, models: tuple[str, ...] = ()
) -> list[Source]:
    """Return a source for the mean of some networks, and for views of it."""
    networks: list[Part] = [each.network for each in scored]
    plain = Source(
        name,
        _mean([each.fit.logits_NK for each in scored]),
        _mean([each.test.logits_NK for each in scored]),
        inputs=input_kind(preprocessing),
        module=networks[0] if len(networks) == 1 else MeanNetwork(networks),
        passes=float(len(networks)),
        is_average=True,
        details=(*input_details(preprocessing), *_models(models)),
    )
    return [plain, *_view_sources(f"{name}+", scored, preprocessing, models)]


def _view_sources(
    prefix: str, scored: Sequence[_Scored], preprocessing: Preprocessing, models: tuple[str, ...] = ()
) -> list[Source]:
    found = []
    for views in scored[0].fit.views:
        parts = [Views(each.network, views, shift_size(preprocessing.shape)) for each in scored]
        found.append(
            Source(
                f"{prefix}{views}",
                _mean([each.fit.views[views] for each in scored]),
                _mean([each.test.views[views] for each in scored]),
                inputs="images",
                module=parts[0] if len(parts) == 1 else MeanNetwork(parts),
                passes=float(len(parts) * VIEWS[views]),
                is_average=True,
                details=(*input_details(preprocessing), *_models(models)),
            )
        )
    return found


def _models(names: tuple[str, ...]) -> tuple[tuple[str, Any], ...]:
    return (("models", list(names)),) if names else ()


def _mean(logits: Sequence[Tensor]) -> Tensor:
    return logits[0] if len(logits) == 1 else mean_probability(logits)


def _soup_sources(
    runs: Sequence[StoredRun], fit: Split, test: Split, device: torch.device, lowest: float
) -> list[Source]:
    """Return a source for the mean of the weights, and for views of it if it is about as accurate as the baseline."""
    soup, preprocessing = _make_soup(runs, device), runs[0].preprocessing
    good = _accuracy(score([soup.to(device)], fit, preprocessing, device)[0].logits_NK, fit) >= lowest
    return _named_sources("soup", _score([soup], preprocessing, fit, test, device, with_views=good), preprocessing)


def _make_soup(runs: Sequence[StoredRun], device: torch.device) -> Network:
    """Average the weights, and recompute batch norm over training samples in random order, without augmentation."""
    soup = average_weights([run.network for run in runs])
    if batch_norms(soup):
        train = runs[0].train
        order = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))
        batches = runs[0].preprocessing.batches(train.subset(order), device)
        recompute_batch_norm(soup.to(device), (batch.inputs for batch in batches))
    return soup.cpu()
