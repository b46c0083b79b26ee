"""Trained models of a search as sources of a fix, with the networks that the fix contains if it is chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from classgap.data.dataset import Split
from classgap.data.splits import other_rows
from classgap.engine.train import choose_device
from classgap.remedies.fix import Samples
from classgap.remedies.modules import Part, mean_probability
from classgap.remedies.networks import MeanNetwork
from classgap.remedies.runs import HOPELESS, Progress, read_runs
from classgap.remedies.scoring import NetworkScores, duplicate_rows, input_details, input_kind, score
from classgap.remedies.search.records import SearchResult, TrialRecord
from classgap.remedies.sources import Source
from classgap.remedies.stored_runs import StoredRun, open_runs
from classgap.remedies.views import VIEWS, Views, shift_size

MAX_MEMBERS = 4  # models of the ensemble
MAX_BEHIND = 0.02  # overall accuracy by which a member may be behind the baseline; worse ones lower the average
PREFIX = "trained:"


def best_by_method(result: SearchResult) -> dict[str, TrialRecord]:
    """Return the best completed trial of each training method, without the baseline."""
    found: dict[str, TrialRecord] = {}
    for each in result.ranked():
        if each.number:
            found.setdefault(f"{PREFIX}{each.method}", each)
    return found


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
    found += [
        Source(
            f"{name}+{kind}",
            _mean([each.fit.views[kind] for each in scored]),
            _mean([each.test.views[kind] for each in scored]),
            inputs="images",
            module=_average([Views(each.run.network, kind, shift_size(prepared.shape)) for each in scored]),
            passes=float(len(scored) * VIEWS[kind]),
            details=details,
        )
        for kind in (scored[0].fit.views if views else ())
    ]
    return found


def _mean(logits: Sequence[Tensor]) -> Tensor:
    return logits[0] if len(logits) == 1 else mean_probability(logits)


def _average(parts: Sequence[Part]) -> Part:
    return parts[0] if len(parts) == 1 else MeanNetwork(parts)
