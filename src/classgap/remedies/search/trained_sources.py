"""Trained models of a search as sources of a fix, with the networks that the fix contains if it is chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from classgap.audit.io.predictions import Predictions
from classgap.data.splits import other_rows
from classgap.engine.train import choose_device
from classgap.remedies.checks import check_support
from classgap.remedies.network_sources import ScoredNetwork, mean_sources, score_network, view_sources
from classgap.remedies.runs import HOPELESS, Progress, read_runs
from classgap.remedies.samples import Samples
from classgap.remedies.scoring import NetworkScores, accuracy, duplicate_rows
from classgap.remedies.search.records import PREFIX, SearchResult, TrialRecord, best_by_method
from classgap.remedies.sources import Source
from classgap.remedies.stored_runs import open_runs

MAX_MEMBERS = 4  # models of the ensemble
MAX_BEHIND = 0.02  # overall accuracy by which a member may be behind the baseline; worse ones lower the average


def trained_samples(result: SearchResult, progress: Progress = lambda message: None) -> Samples:
    """Return the scores of the baseline and of the trained models, for the same validation and test samples.

    The baseline has all remedies of a single run. The best trial and the ensemble also have views of images.

    Args:
        result: The search.
        progress: Called with a line of text before each step.
    """
    base = read_runs([result.baseline.run], progress)
    name = f"{result.baseline.run.parent.name}/{result.baseline.run.name}"
    sources = [replace(base.sources[0], name=name), *base.sources[1:]]
    best, members = best_by_method(result), _members(result)
    scored = _score({each.number: each for each in (*best.values(), *members)}, progress)
    for title, record in best.items():
        described = {"run": str(record.run), "training_seconds": record.seconds, **record.params}
        found = mean_sources(title, [scored[record.number]], described.items(), views=record == result.best)
        adjustable = record.estimate["overall"].change >= -HOPELESS
        sources += [replace(each, adjustable=adjustable) for each in found]
    if len(members) > 1:
        described = {"models": [str(each.run) for each in members]}
        sources += mean_sources("ensemble", [scored[each.number] for each in members], described.items())
    assert all(len(each.logits_NK) == len(base.fit) for each in sources)
    return Samples(replace(base.fit, name=name), base.test, tuple(sources), base.notices)


def cross_validated_samples(result: SearchResult, progress: Progress = lambda message: None) -> Samples:
    """Return out-of-fold scores of the training samples, and test scores of networks trained on all of them.

    Each training sample is scored by a network that was not trained on it. Training samples that are also test samples,
    and those that no fold holds out, are left out.

    Args:
        result: The search, with finalists.
        progress: Called with a line of text before each step.
    """
    finalists, device = result.finalists, choose_device("auto")
    paths = [run for each in finalists for run in (*each.folds, each.refit)]
    runs = dict(zip(paths, open_runs(paths, validated=False), strict=True))
    train, test = runs[paths[0]].data.train, runs[paths[0]].data.test
    order = train.index.argsort()
    rows = [order[torch.searchsorted(train.index[order], runs[fold].validation.index)] for fold in finalists[0].folds]
    held_out, places = torch.cat(rows).sort()
    kept = other_rows(duplicate_rows(train.subset(held_out), test), len(held_out))
    scored = []
    for each in finalists:
        progress(f"scoring trial {each.record.number}")
        refit = runs[each.refit]
        network, prepared = refit.network, refit.preprocessing
        folds = [runs[fold] for fold in each.folds]
        parts = [score_network(fold.network, fold.validation, fold.preprocessing, device) for fold in folds]
        tested = score_network(network, test, prepared, device)
        refit.check_predictions(tested.logits_NK.argmax(dim=1).numpy())
        scored.append(ScoredNetwork(network, prepared, _concatenate(parts).take(places[kept]), tested))
    targets = train.targets[held_out[kept]]
    base, about = scored[0], runs[finalists[0].refit].data
    name = f"{finalists[0].refit.parent.name}/{finalists[0].refit.name}"
    sources = [Source(name, base.fit.logits_NK, base.test.logits_NK, is_baseline=True)]
    sources += view_sources("", [base], is_average=True)
    for finalist, found in zip(finalists[1:], scored[1:], strict=True):
        record = finalist.record
        described = {"run": str(finalist.refit), "training_seconds": record.seconds, **record.params}
        sources += mean_sources(f"{PREFIX}{record.method}", [found], described.items())
    lowest = accuracy(base.fit.logits_NK, targets) - MAX_BEHIND
    members = [i for i, found in enumerate(scored) if accuracy(found.fit.logits_NK, targets) >= lowest]
    if len(members) > 1:
        described = {"models": [str(finalists[i].refit) for i in members]}
        sources += mean_sources("ensemble", [scored[i] for i in members], described.items())
    data = [
        Predictions.from_arrays(
            labels,
            logits=logits_NK,
            class_names=about.class_names,
            train_counts=about.train_counts,
            name=name,
        )
        for labels, logits_NK in ((targets, base.fit.logits_NK), (test.targets, base.test.logits_NK))
    ]
    check_support(data[0], data[1])
    return Samples(data[0], data[1], tuple(sources))


def _concatenate(parts: Sequence[NetworkScores]) -> NetworkScores:
    views = {name: torch.cat([each.views[name] for each in parts]) for name in parts[0].views}
    return NetworkScores(torch.cat([each.logits_NK for each in parts]), views)


def _members(result: SearchResult) -> list[TrialRecord]:
    """Return the best trials that are about as accurate as the baseline, which is one of them or behind them."""
    return [each for each in result.ranked() if each.estimate["overall"].change >= -MAX_BEHIND][:MAX_MEMBERS]


def _score(records: Mapping[int, TrialRecord], progress: Progress) -> dict[int, ScoredNetwork]:
    runs = open_runs([each.run for each in records.values()])
    validation, test, device = runs[0].validation, runs[0].data.test, choose_device("auto")
    fit = validation.subset(other_rows(duplicate_rows(validation, test), len(validation)))
    found = {}
    for number, run in zip(records, runs, strict=True):
        progress(f"scoring trial {number}")
        found[number] = ScoredNetwork.from_splits(run.network, run.preprocessing, fit, test, device)
        run.check_predictions(found[number].test.logits_NK.argmax(dim=1).numpy())
    return found
