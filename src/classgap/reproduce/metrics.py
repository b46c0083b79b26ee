"""Metrics of a finished run, as plain values for the store.

A record has metrics over all classes, values per class for test and, if the run stored them, training samples, and
the lines of the training epochs. :func:`find_metric` reads one number from it:

- ``hard``: a metric over all classes; ``val_hard``: the same for held-out training samples, after the last epoch;
- ``spread@hard``: mean over the classes of a group (``easy``, ``medium``, ``hard``, ``head``, ``torso``, ``tail``,
  ``all``) or the value of a class, by its name; ``accuracy@gap``: the easy classes minus the hard ones;
- ``train.spread@all``: the same for training samples;
- ``corrupted.blur@hard``: accuracy of a group of classes on test samples with a corruption;
- ``maps.layer2.within_between``: within-class over between-class variance of the features of an earlier layer;
- ``epochs.0.5.spread@hard``: a class statistic of a group after this fraction of the epochs;
- ``config.epochs``: a setting.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from classgap.audit import Audit, read_predictions
from classgap.audit.geometry.class_clouds import farthest_distances
from classgap.audit.io.predictions import Predictions
from classgap.audit.results import QUANTILE_LEVELS
from classgap.audit.serialization import to_plain
from classgap.audit.settings import AuditSettings
from classgap.data.dataset import Dataset
from classgap.engine import RunDirectory
from classgap.reproduce.cells import PICTURES
from classgap.reproduce.probes import corrupted_accuracies, layer_features

CLASS_FIELDS = (
    "accuracy",
    "margin",
    "spread",
    "mean_norm",
    "spread_to_norm",
    "weight_norm",
    "max_intra_distance",
    "train_count",
    "train_accuracy",
)
_EPOCH_FIELDS = ("epoch", "lr")  # left out of the record: they follow from the settings
MAP_POINTS = 400
MAX_NUMBER = 1e300  # NaN, infinity and integers beyond the range of floats are no numbers
DIGITS, EPOCH_DIGITS = 6, 4  # significant; float32 has no more than 7


def measure_run(
    path: Path, data: Dataset | None = None, maps: Sequence[str] = (), corruptions: bool = False
) -> dict[str, Any]:
    """Return the metrics of a finished run.

    Args:
        path: Run directory.
        data: Its dataset, for earlier layers and corruptions.
        maps: "test" or "train" to add a map of the features of these samples, or the name of an earlier layer to add a
            map of its features of the test samples.
        corruptions: Whether to test on corrupted samples too.
    """
    directory = RunDirectory(path)
    lines = directory.read_metrics()
    if not lines:
        raise ValueError(f"{directory.metrics} has no metrics: the run was removed or never started; train it again.")
    *epochs, final = lines
    names = {name.removeprefix("test_"): value for name, value in final.items() if name.startswith("test_")}
    trained = {name: value for name, value in final.items() if name.startswith("train_")}
    audit = _audit(path)
    summary = to_plain(audit)
    held_out = {name: value for name, value in (epochs[-1] if epochs else {}).items() if name.startswith("val_")}
    metrics = {**names, **trained, **held_out, "margin": summary["overall"]["margin"], **_feature_metrics(summary)}
    found: dict[str, Any] = {
        "metrics": {name: _round(value) for name, value in metrics.items() if _is_number(value)},
        "classes": _class_values(summary["classes"]),
        "epochs": _columns(epochs),
    }
    if directory.train_predictions.exists():
        trained_on = read_predictions(directory.train_predictions)
        found["train_classes"] = _class_values(to_plain(_audit(directory.train_predictions))["classes"])
        if trained_on.features_ND is not None:
            found["train_classes"]["max_intra_distance_quantiles"] = _distance_quantiles(trained_on)
    for name in maps:
        if name in PICTURES:
            source = read_predictions(directory.predictions if name == "test" else directory.train_predictions)
            found.setdefault("maps", {})[name] = {"points": _map_points(source), **_boundary(source)}
        elif data is not None:
            found.setdefault("maps", {})[name] = _measure_layer(path, data, name)
    if corruptions and data is not None:
        accuracies = corrupted_accuracies(path, data)
        found["corrupted"] = {name: [_round(v) if v is not None else v for v in a] for name, a in accuracies.items()}
    if directory.class_stats.exists():
        found["class_stats"] = _group_statistics(directory.read_class_stats(), found["classes"])
    return found


def find_metric(record: Mapping[str, Any], name: str) -> float | None:
    """Return a metric of a record; ``None`` if the run does not have it.

    >>> record = {"metrics": {"hard": 0.5}, "classes": {"name": ["a", "b"], "groups": [["easy"], ["hard"]],
    ...                                                 "spread": [1.0, 3.0]}}
    >>> [find_metric(record, name) for name in ("hard", "spread@hard", "spread@all", "spread@a", "angle")]
    [0.5, 3.0, 2.0, 1.0, None]
    """
    if name.startswith("config."):
        value = record["settings"].get(name.removeprefix("config."))
        return float(value) if _is_number(value) else None
    if name.startswith("maps."):
        layer, _, field = name.removeprefix("maps.").rpartition(".")
        return record.get("maps", {}).get(layer, {}).get(field)
    field, at, selector = name.partition("@")
    if selector == "gap":
        ends = [find_metric(record, f"{field}@{group}") for group in ("easy", "hard")]
        return None if ends[0] is None or ends[1] is None else ends[0] - ends[1]
    if field.startswith("epochs."):
        return _at_epoch(record, *name.removeprefix("epochs.").rsplit(".", 1))
    if not at:
        value = record["metrics"].get(name)
        return None if value is None else float(value)
    classes = record.get("train_classes" if field.startswith("train.") else "classes") or {}
    if field.startswith("corrupted."):
        values = record.get("corrupted", {}).get(field.removeprefix("corrupted."))
    else:
        values = classes.get(field.removeprefix("train."))
    known = [] if values is None else [values[i] for i in _chosen(classes, selector) if values[i] is not None]
    return float(np.mean(known)) if known else None


def _at_epoch(record: Mapping[str, Any], fraction: str, name: str) -> float | None:
    """Return a class statistic after a fraction of the epochs."""
    values = record.get("class_stats", {}).get(name) or [None]
    value = values[max(0, math.ceil(float(fraction) * len(values)) - 1)]
    return None if value is None else float(value)


def _chosen(classes: Mapping[str, Any], selector: str) -> list[int]:
    count = range(len(classes["name"]))
    if selector == "all":
        return list(count)
    return [i for i in count if classes["name"][i] == selector or selector in classes["groups"][i]]


def _audit(path: Path) -> Audit:
    settings = AuditSettings(map="none", diagnose=False, n_resamples=2)
    return Audit.from_checked(read_predictions(path), settings=settings)


def _measure_layer(path: Path, data: Dataset, layer: str) -> dict[str, Any]:
    """Return the variance within and between classes at an earlier layer, and a map of its features."""
    features = layer_features(path, data, layer)
    source = replace(read_predictions(path), features_ND=features, weight_KD=None, bias_K=None)
    audit = Audit.from_checked(source, settings=AuditSettings(map="none", diagnose=False, n_resamples=2))
    ratio = None if audit.features is None else audit.features.within_between
    return {"within_between": None if ratio is None else _round(ratio), "points": _map_points(source)}


def _boundary(data: Predictions) -> dict[str, list[float]]:
    """Return a, b and c of the decision boundary a·x + b·y + c = 0 between two classes in a plane of features."""
    weight_KD, bias_K = data.weight_KD, data.bias_K
    if weight_KD is None or tuple(weight_KD.shape) != (2, 2):
        return {}
    normal = (weight_KD[0] - weight_KD[1]).tolist()
    offset = 0.0 if bias_K is None else float(bias_K[0] - bias_K[1])
    return {"boundary": [_round(value) for value in (*normal, offset)]}


def _map_points(data: Predictions) -> dict[str, list[tuple[float, float]]]:
    """Return points by class: the features themselves if they have two dimensions, otherwise their t-SNE map."""
    if data.features_ND is not None and data.features_ND.shape[1] == 2:
        rng = np.random.default_rng(0)
        found: dict[str, list[tuple[float, float]]] = {}
        for k, name in enumerate(data.class_names):
            rows = rng.permutation(np.flatnonzero(data.targets_N == k))[: MAP_POINTS // len(data.class_names)]
            points = data.features_ND[torch.from_numpy(np.sort(rows))].double().tolist()
            found[name] = [(_round(x, EPOCH_DIGITS), _round(y, EPOCH_DIGITS)) for x, y in points]
        return found
    settings = AuditSettings(diagnose=False, n_resamples=2, map_points=MAP_POINTS)
    drawn = Audit.from_checked(data, settings=settings).map
    if drawn is None:
        return {}
    mapped: dict[str, list[tuple[float, float]]] = {name: [] for name in drawn.classes}
    for x, y, target in zip(drawn.x, drawn.y, drawn.target, strict=True):
        mapped[data.class_names[target]].append((_round(x, EPOCH_DIGITS), _round(y, EPOCH_DIGITS)))
    return mapped


def _feature_metrics(summary: Mapping[str, Any]) -> dict[str, Any]:
    features = summary.get("features") or {}
    plain = {name: value for name, value in features.items() if _is_number(value)}
    correlations = {
        f"{name}_rho": value["rho"]
        for name, value in features.items()
        if isinstance(value, Mapping) and _is_number(value.get("rho"))
    }
    return {**plain, **correlations, "gap": summary["gap"]["easy_hard"], "worst_class": summary["gap"]["worst_class"]}


def _class_values(classes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": [each["name"] for each in classes],
        "groups": [list(each["groups"]) for each in classes],
    }
    for field in CLASS_FIELDS:
        values = [each.get(field) for each in classes]
        if any(value is not None for value in values):
            found[field] = [None if value is None else _round(value) for value in values]
    margins = [each.get("logit_margin") for each in classes]
    if any(margins):
        found["logit_margin"] = [None if each is None else _round(each["mean"]) for each in margins]
        found["logit_margin_std"] = [None if each is None else _round(each["std"]) for each in margins]
        found["logit_margin_quantiles"] = [
            None if each is None else [_round(value) for value in each["quantiles"]] for each in margins
        ]
    return found


def _distance_quantiles(data: Predictions) -> list[list[float] | None]:
    """Return quantiles of the distances of the samples of each class to the farthest one of the class (ELM Fig. 4)."""
    assert data.features_ND is not None
    features_ND = data.features_ND[torch.arange(len(data.targets_N))].double()
    largest = float(torch.linalg.vector_norm(features_ND, dim=1).max()) or 1.0
    found: list[list[float] | None] = []
    for k in range(len(data.class_names)):
        own_nD = features_ND[torch.as_tensor(data.targets_N == k)]
        if len(own_nD) < 2:
            found.append(None)
            continue
        deviations_nD = own_nD - own_nD.mean(dim=0)
        far_n = farthest_distances(deviations_nD, deviations_nD.square().sum(dim=1), len(own_nD)).numpy() / largest
        found.append([_round(value) for value in np.quantile(far_n, QUANTILE_LEVELS).tolist()])
    return found


def _group_statistics(lines: Sequence[Mapping[str, Any]], classes: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """Return the mean of each class statistic over the easy, medium and hard classes, per epoch, as columns."""
    found = []
    for line in lines:
        values: dict[str, Any] = {"epoch": line.get("epoch")}
        for name, per_class in line.items():
            if not isinstance(per_class, list) or len(per_class) != len(classes["name"]):
                continue
            for group in ("easy", "medium", "hard"):
                known = [per_class[i] for i in _chosen(classes, group) if _is_number(per_class[i])]
                if known:
                    values[f"{name}@{group}"] = _round(float(np.mean(known)))
        for group in ("easy", "medium", "hard"):
            spread, norm = values.get(f"spread@{group}"), values.get(f"mean_norm@{group}")
            if spread is not None and norm:
                values[f"spread_to_norm@{group}"] = _round(spread / norm)
        found.append(values)
    return _columns(found)


def _columns(lines: Sequence[Mapping[str, Any]]) -> dict[str, list[float | None]]:
    """Return the metrics per epoch as columns, which are a third of the size of lines."""
    names = dict.fromkeys(name for line in lines for name, value in line.items() if _is_number(value))
    return {
        name: [_round(line[name], EPOCH_DIGITS) if _is_number(line.get(name)) else None for line in lines]
        for name in names
        if name not in _EPOCH_FIELDS
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX_NUMBER


def _round(value: float, digits: int = DIGITS) -> float:
    return value if isinstance(value, int) else float(f"{value:.{digits}g}")
