"""Trained models of a search as sources of a fix, with the networks that the fix contains if it is chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from classgap.audit.io.predictions import Predictions
from classgap.data.dataset import Split
from classgap.data.splits import other_rows
from classgap.engine.train import choose_device
from classgap.remedies.checks import check_support
from classgap.remedies.fix import Samples
from classgap.remedies.modules import Part, mean_probability
from classgap.remedies.networks import MeanNetwork
from classgap.remedies.runs import HOPELESS, Progress, read_runs
from classgap.remedies.scoring import NetworkScores, duplicate_rows, input_details, input_kind, score
from classgap.remedies.search.records import PREFIX, SearchResult, TrialRecord, best_by_method
from classgap.remedies.sources import Source
from classgap.remedies.stored_runs import StoredRun, open_runs
from classgap.remedies.views import VIEWS, Views, shift_size

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
        found = _sources(title, [scored[record.number]], described, views=record == result.best)
        adjustable = record.estimate["overall"].change >= -HOPELESS
        sources += [replace(each, adjustable=adjustable) for each in found]
    if len(members) > 1:
        described = {"models": [str(each.run) for each in members]}
        sources += _sources("ensemble", [scored[each.number] for each in members], described, views=True)
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
        parts = [_score_split(runs[fold], runs[fold].validation, device) for fold in each.folds]
        found = _Scored(refit, _concatenate(parts).take(places[kept]), _score_split(refit, test, device))
        refit.check_predictions(found.test.logits_NK.argmax(dim=1).numpy())
        refit.network.cpu()
        scored.append(found)
    targets = train.targets[held_out[kept]]
    base, name = scored[0], f"{finalists[0].refit.parent.name}/{finalists[0].refit.name}"
    sources = [Source(name, base.fit.logits_NK, base.test.logits_NK, is_baseline=True)]
    sources += [replace(each, is_average=True) for each in _views("", [base], ())]
    for finalist, found in zip(finalists[1:], scored[1:], strict=True):
        record = finalist.record
        described = {"run": str(finalist.refit), "training_seconds": record.seconds, **record.params}
        sources += _sources(f"{PREFIX}{record.method}", [found], described, views=True)
    lowest = _accuracy(base, targets) - MAX_BEHIND
    members = [i for i, found in enumerate(scored) if _accuracy(found, targets) >= lowest]
    if len(members) > 1:
        described = {"models": [str(finalists[i].refit) for i in members]}
        sources += _sources("ensemble", [scored[i] for i in members], described, views=True)
    data = [
        Predictions.from_arrays(
            labels,
            logits=logits_NK,
            class_names=base.run.data.class_names,
            train_counts=base.run.data.train_counts,
            name=name,
        )
        for labels, logits_NK in ((targets, base.fit.logits_NK), (test.targets, base.test.logits_NK))
    ]
    check_support(data[0], data[1])
    return Samples(data[0], data[1], tuple(sources))


def _concatenate(parts: Sequence[NetworkScores]) -> NetworkScores:
    views = {name: torch.cat([each.views[name] for each in parts]) for name in parts[0].views}
    return NetworkScores(torch.cat([each.logits_NK for each in parts]), views)


def _accuracy(scored: _Scored, targets_N: Tensor) -> float:
    return float((scored.fit.logits_NK.argmax(dim=1) == targets_N).double().mean())


def _members(result: SearchResult) -> list[TrialRecord]:
    """Return the best trials that are about as accurate as the baseline, which is one of them or behind them."""
    return [each for each in result.ranked() if each.estimate["overall"].change >= -MAX_BEHIND][:MAX_MEMBERS]


@dataclass(frozen=True)
class _Scored:
    """A run with its scores of the fitting and the test samples."""

    run: StoredRun
    fit: NetworkScores
    test: NetworkScores


def _score(records: Mapping[int, TrialRecord], progress: Progress) -> dict[int, _Scored]:
    runs = open_runs([each.run for each in records.values()])
    validation, test, device = runs[0].validation, runs[0].data.test, choose_device("auto")
    fit = validation.subset(other_rows(duplicate_rows(validation, test), len(validation)))
    found = {}
    for number, run in zip(records, runs, strict=True):
        progress(f"scoring trial {number}")
        found[number] = _Scored(run, *(_score_split(run, split, device) for split in (fit, test)))
        run.check_predictions(found[number].test.logits_NK.argmax(dim=1).numpy())
        run.network.cpu()
    return found


def _score_split(run: StoredRun, split: Split, device: torch.device) -> NetworkScores:
    shape, is_image = run.preprocessing.shape, run.preprocessing.is_image
    views = tuple(VIEWS) if is_image and min(shape[1:]) > 1 else ()
    shift = shift_size(shape) if views else 1
    return score([run.network.to(device)], split, run.preprocessing, device, views=views, shift=shift)[0]


def _sources(name: str, scored: Sequence[_Scored], described: Mapping[str, Any], *, views: bool) -> list[Source]:
    """Return a source for the mean of some networks, and for views of it. All trials prepare inputs alike."""
    prepared = scored[0].run.preprocessing
    inputs = input_kind(prepared)
    details = (*input_details(prepared), *described.items())
    found = [
        Source(
            name,
            _mean([each.fit.logits_NK for each in scored]),
            _mean([each.test.logits_NK for each in scored]),
            inputs=inputs,
            module=_average([each.run.network for each in scored]),
            passes=float(len(scored)),
            details=details,
        )
    ]
    return [*found, *(_views(f"{name}+", scored, details) if views else ())]


def _views(prefix: str, scored: Sequence[_Scored], details: tuple[tuple[str, Any], ...]) -> list[Source]:
    """Return a source for each set of views of the mean of some networks."""
    prepared = scored[0].run.preprocessing
    return [
        Source(
            f"{prefix}{kind}",
            _mean([each.fit.views[kind] for each in scored]),
            _mean([each.test.views[kind] for each in scored]),
            inputs="images",
            module=_average([Views(each.run.network, kind, shift_size(prepared.shape)) for each in scored]),
            passes=float(len(scored) * VIEWS[kind]),
            details=details or input_details(prepared),
        )
        for kind in scored[0].fit.views
    ]


def _mean(logits: Sequence[Tensor]) -> Tensor:
    return logits[0] if len(logits) == 1 else mean_probability(logits)


def _average(parts: Sequence[Part]) -> Part:
    return parts[0] if len(parts) == 1 else MeanNetwork(parts)
