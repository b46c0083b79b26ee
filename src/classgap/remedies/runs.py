"""Samples and sources of ``classgap fix RUN [RUN …]``: views of images, ensembles, weight averages and heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from classgap.audit.io.predictions import Predictions
from classgap.data.dataset import Split
from classgap.data.splits import other_rows
from classgap.engine.random_state import preserve_random_state
from classgap.engine.train import choose_device
from classgap.remedies.checks import MIN_SAMPLES, check_support
from classgap.remedies.network_sources import ScoredNetwork, mean_sources, possible_views, score_network, view_sources
from classgap.remedies.networks import Network
from classgap.remedies.refits import refit_run
from classgap.remedies.samples import Samples
from classgap.remedies.scoring import accuracy, duplicate_rows
from classgap.remedies.soup import average_weights, batch_norms, recompute_batch_norm
from classgap.remedies.sources import Source, ensemble
from classgap.remedies.stored_runs import StoredRun, open_runs
from classgap.remedies.views import VIEWS

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
    best = int(np.argmax([accuracy(each.fit.logits_NK, fit.targets) for each in scored]))
    sources = [_baseline(runs[best].name, scored[best]), *view_sources("", [scored[best]], is_average=True)]
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
) -> list[ScoredNetwork]:
    found = []
    for run in runs:
        views = max([VIEWS[name] for name in possible_views(run.preprocessing)], default=1)
        each = f" in {views} views" if views > 1 else ""
        progress(f"scoring {len(fit)} validation and {len(test)} test samples with {run.name}{each}")
        found.append(ScoredNetwork.from_splits(run.network, run.preprocessing, fit, test, device))
    return found


def _lowest_accuracy(sources: Sequence[Source], fit: Split) -> float:
    return accuracy(sources[0].logits_NK, fit.targets) - HOPELESS


def _promising(sources: Sequence[Source], fit: Split) -> list[Source]:
    """Adjust only sources that are about as accurate as the baseline, and leave out views of the others.

    Weight averages of runs that started from different weights are often no better than chance.
    """
    lowest = _lowest_accuracy(sources, fit)
    kept: dict[str, Source] = {}
    for source in sources:
        good = accuracy(source.logits_NK, fit.targets) >= lowest
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


def _baseline(name: str, scored: ScoredNetwork) -> Source:
    return Source(name, scored.fit.logits_NK, scored.test.logits_NK, is_baseline=True)


def _ensemble_sources(runs: Sequence[StoredRun], scored: Sequence[ScoredNetwork]) -> list[Source]:
    if _are_alike(runs):
        return mean_sources("ensemble", scored, [("models", [run.name for run in runs])], is_average=True)
    # Networks that take different inputs are averaged by their logits.
    return [ensemble([_baseline(run.name, each) for run, each in zip(runs, scored, strict=True)])]


def _soup_sources(
    runs: Sequence[StoredRun], fit: Split, test: Split, device: torch.device, lowest: float
) -> list[Source]:
    """Return a source for the mean of the weights, and for views of it if it is about as accurate as the baseline."""
    soup, preprocessing = _make_soup(runs, device), runs[0].preprocessing
    plain = score_network(soup, fit, preprocessing, device, with_views=False)
    good = accuracy(plain.logits_NK, fit.targets) >= lowest
    scored = ScoredNetwork.from_splits(soup, preprocessing, fit, test, device, with_views=good)
    return mean_sources("soup", [scored], is_average=True)


def _make_soup(runs: Sequence[StoredRun], device: torch.device) -> Network:
    """Average the weights, and recompute batch norm over training samples in random order, without augmentation."""
    soup = average_weights([run.network for run in runs])
    if batch_norms(soup):
        train = runs[0].train
        order = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))
        batches = runs[0].preprocessing.batches(train.subset(order), device)
        recompute_batch_norm(soup.to(device), (batch.inputs for batch in batches))
    return soup.cpu()
