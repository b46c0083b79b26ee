"""Figures of the case studies, from the files and names that the blocks of their pages leave.

A figure with an interval is a list: value, lower bound, upper bound. Accuracies and changes are fractions.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import classgap as cg
from classgap.audit.stats.intervals import wilson_interval

SYNONYMS, MISPLACED = 0.4, 0.1  # fractions of images on which both labels, or only the other one, are valid
CHANCE = "too-few-test-samples"
N_RESAMPLES = 2000

Figure = list[float]


class Session(Protocol):
    """The part of ``case_studies.Session`` that the figures use."""

    folder: Any
    names: dict[str, Any]
    seconds: list[tuple[str, float]]

    def read(self, name: str) -> dict[str, Any]: ...
    def total(self, start: str = "") -> float: ...


def imagenet(session: Session) -> dict[str, Any]:
    """Figures of the page on ImageNet."""
    audits = {name: session.read(f"{name}.json") for name in ("dino", "simclr", "cleanlab")}
    models = {name: _model(audit) for name, audit in audits.items()}
    size = len(audits["dino"]["groups"]["hard"]["members"])
    hard, failing = ([set(found(audit)) for audit in audits.values()] for found in (_hard, _failing))
    parts = [[-model["gap_change"][0], model["gap"][0] - model["reranked"][0]] for model in models.values()]
    fractions = [part / model["gap"][0] for model, both in zip(models.values(), parts, strict=True) for part in both]
    pairs = _pairs(session)
    commands = [entry for entry in session.seconds if entry[0] != "python"]
    return {
        "models": models,
        "order": {key: float(session.names[name]) for key, name in ORDER.items()},
        "shared": {
            "hard": len(set.intersection(*hard)),
            "hard_by_chance": size**3 / models["dino"]["num_classes"] ** 2,
            "failing": len(set.intersection(*failing)),
        },
        "label_part": {
            "low": min(map(min, parts)),
            "high": max(map(max, parts)),
            "low_fraction": min(fractions),
            "high_fraction": max(fractions),
            "left_low": min(min(model["valid_gap"][0], model["reranked"][0]) for model in models.values()),
        },
        "worst": _worst_classes(session),
        "pairs": pairs,
        "pair_kinds": {
            "both": sum(row["both"][1] > SYNONYMS for row in pairs),
            "other": sum(row["other"][1] > MISPLACED for row in pairs),
        },
        "compare": _comparison(session, audits["dino"]),
        "seconds": sum(seconds for _, seconds in commands),
        "commands": len(commands),
    }


ORDER = {"agreement": "agreement", "shuffled": "at_random"}


def _model(audit: Mapping[str, Any]) -> dict[str, Any]:
    valid = audit["valid"]
    errors = audit["error_budget"]["errors"]
    causes = Counter(_failing(audit).values())
    return _accuracies(audit) | {
        "causes": {name: causes[name] for name in ("wrong-labels", "overlap", "not-enough-evidence")},
        "valid_accuracy": [valid["overall"]["accuracy"], *valid["overall"]["interval"]],
        "valid_hard": [valid["groups"]["hard"]["accuracy"], *valid["groups"]["hard"]["interval"]],
        "valid_gap": [valid["gap"]["easy_hard"], *valid["gap"]["intervals"]["easy_hard"]],
        "gap_change": [valid["gap_change"], *valid["gap_change_interval"]],
        "reranked": [valid["reranked_easy_hard"], *valid["reranked_interval"]],
        "valid_errors": _proportion(valid["overall"]["valid_errors"], errors),
        "own_label_hard": _own_label(valid["groups"]["hard"]),
        "own_label_easy": _own_label(valid["groups"]["easy"]),
    }


def _accuracies(audit: Mapping[str, Any]) -> dict[str, Any]:
    overall, groups, gap = audit["overall"], audit["groups"], audit["gap"]
    return {
        "n_samples": overall["n_samples"],
        "num_classes": overall["num_classes"],
        "accuracy": [overall["accuracy"], *overall["interval"]],
        "easy": [groups["easy"]["accuracy"], *groups["easy"]["interval"]],
        "hard": [groups["hard"]["accuracy"], *groups["hard"]["interval"]],
        "gap": [gap["easy_hard"], *gap["intervals"]["easy_hard"]],
        "gap_by_chance": gap["expected_by_chance"]["easy_hard"],
        "failing": len(_failing(audit)),
    }


def _hard(audit: Mapping[str, Any]) -> list[str]:
    return [entry["name"] for entry in audit["classes"] if entry["group"] == "hard"]


def _failing(audit: Mapping[str, Any]) -> dict[str, str]:
    """First cause of each failing class."""
    first = {entry["name"]: entry["diagnosis"][0]["name"] for entry in audit["classes"] if entry["diagnosis"]}
    return {name: cause for name, cause in first.items() if cause != CHANCE}


def _own_label(group: Mapping[str, Any]) -> Figure:
    return [group["label_validity"], *group["label_validity_interval"]]


def _proportion(count: float, total: float) -> Figure:
    return [count / total, *wilson_interval(count, total)]


def _bootstrap(values_N: NDArray[np.float64]) -> Figure:
    """Mean over images, with a percentile interval."""
    rng = np.random.default_rng(0)
    means = values_N[rng.integers(0, len(values_N), (N_RESAMPLES, len(values_N)))].mean(axis=1)
    return [float(values_N.mean()), *(float(q) for q in np.quantile(means, [0.025, 0.975]))]


def _aligned(session: Session) -> tuple[NDArray[np.int64], NDArray[np.int64], list[set[int]], list[str]]:
    """Labels (N,), predictions of the three models (3, N), valid labels and class names, by image number."""
    files = [
        np.load(session.folder / name) for name in ("imagenet_val_dino.npz", "imagenet_val_simclr.npz", "cleanlab.npz")
    ]
    orders = [np.argsort(file["index"]) for file in files]
    predictions_3N = np.stack([file["predictions"][order] for file, order in zip(files, orders, strict=True)])
    numbers = np.sort(files[0]["index"])
    sets = json.loads((session.folder / "imagenet_val_real_labels.json").read_text(encoding="utf-8"))
    valid = [set(sets[number - 1]) for number in numbers]
    return files[0]["targets"][orders[0]], predictions_3N, valid, files[0]["class_names"].tolist()


def _worst_classes(session: Session, count: int = 10) -> list[dict[str, Any]]:
    targets, predictions_3N, valid, names = _aligned(session)
    right_N = (predictions_3N == targets).mean(axis=0)
    accuracy_K = np.bincount(targets, right_N) / np.bincount(targets)
    rows = []
    for k in np.argsort(accuracy_K, kind="stable")[:count]:
        own = np.flatnonzero(targets == k)
        judged = [i for i in own if valid[i]]
        valid_N = np.array([np.mean([p in valid[i] for p in predictions_3N[:, i]]) for i in judged])
        wrong = Counter(p for p in predictions_3N[:, own].ravel().tolist() if p != k)
        rows.append(
            {
                "name": names[k],
                "labeled": _bootstrap(right_N[own]),
                "valid": _bootstrap(valid_N),
                "own_label": _proportion(sum(int(k) in valid[i] for i in judged), len(judged)),
                "predicted": names[wrong.most_common(1)[0][0]],
            }
        )
    return rows


def _pairs(session: Session) -> list[dict[str, Any]]:
    targets, predictions_3N, _, names = _aligned(session)
    rows = []
    for a, b, count, own_valid, other_valid in session.names["pairs"]:
        images = np.flatnonzero(np.isin(targets, (a, b)))
        swapped_N = (predictions_3N[:, images] == np.where(targets[images] == a, b, a)).mean(axis=0)
        assert round(swapped_N.sum() * 3) == count
        own_N, other_N = np.array(own_valid), np.array(other_valid)
        kinds = {"both": own_N & other_N, "other": other_N & ~own_N, "own": own_N & ~other_N}
        row = {"first": names[a], "second": names[b], "confused": _bootstrap(swapped_N)}
        rows.append(row | {kind: _proportion(int(held.sum()), len(held)) for kind, held in kinds.items()})
    return sorted(rows, key=lambda row: -row["both"][0])


def _comparison(session: Session, dino: Mapping[str, Any]) -> dict[str, Any]:
    diff, holm = session.read("diff.json"), session.read("holm.json")
    changes = {entry["name"]: entry for entry in diff["classes"]}
    before = {entry["name"]: entry for entry in dino["classes"]}
    valid = {entry["name"]: entry for entry in dino["valid"]["classes"]}
    figures: dict[str, Any] = {
        "overall": _change(diff["overall"]),
        "gap": _change(diff["gap"]["easy_hard"]),
        "own_gap": _change(diff["gap"]["own_easy_hard"]),
        "fdr_gained": len(diff["gained"]),
        "fdr_regressed": len(diff["regressed"]),
        "holm_gained": len(holm["gained"]),
        "holm_regressed": len(holm["regressed"]),
        "changed_estimate": round(diff["changed"]["estimate"]),
        "changed_at_least": diff["changed"]["at_least"],
        "gained": [
            {
                "name": name,
                "change": _change(changes[name]),
                "dino_valid": valid[name]["valid_errors"],
                "dino_errors": before[name]["error_budget"]["errors"],
                "predicted": before[name]["confusions"][0]["name"],
            }
            for name in diff["gained"]
        ],
    }
    for name in ("easy", "hard"):
        group = diff["groups"][name]
        figures[name] = _change(group["change"])
        figures[f"{name}_by_chance"] = group["change"]["expected_by_chance"]
        figures[f"{name}_up"], figures[f"{name}_down"] = group["gained"], group["regressed"]
    return figures


def _change(change: Mapping[str, Any]) -> Figure:
    return [change["change"], *change["interval"]]


def clinc150(session: Session) -> dict[str, Any]:
    """Figures of the page on CLINC150."""
    audit, fixed, diff = (session.read(name) for name in ("audit.json", "fix.json", "diff.json"))
    failing = _failing(audit)
    total = session.total
    return {
        "audit": _accuracies(audit)
        | {
            "failing_names": ", ".join(sorted(failing)),
            "worst": [_class_row(entry) for entry in sorted(audit["classes"], key=lambda e: e["accuracy"])[:5]],
            "errors": audit["error_budget"]["errors"],
            "budget": _budget(audit["error_budget"]),
        },
        "fix": _fix(session, fixed),
        "compare": {
            "overall": _change(diff["overall"]),
            "gained": len(diff["gained"]),
            "regressed": len(diff["regressed"]),
        },
        "gate": {name: _gate(session.read(f"{name}.json")) for name in ("next", "accident")},
        "seconds": {
            "python": total("python"),
            "audit": total("classgap audit test.npz"),
            "fix": total("classgap fix"),
            "compare": total("classgap compare"),
            "gate": total("classgap gate") + total("classgap audit fixed_test.npz"),
            "total": total(),
        },
    }


def _class_row(entry: Mapping[str, Any]) -> dict[str, Any]:
    accuracy = [entry["accuracy"], *entry["interval"]]
    return {"name": entry["name"], "accuracy": accuracy, "predicted": entry["confusions"][0]["name"]}


def _budget(budget: Mapping[str, Any]) -> list[dict[str, Any]]:
    parts = ("labels", "decision", "head", "representation")
    rows = [
        {
            "part": part,
            "errors": budget[part]["removed"],
            "fraction": [budget[part]["fraction"], *budget[part]["interval"]],
        }
        for part in parts
    ]
    return [*rows, {"part": "unexplained", "errors": budget["unexplained"], "fraction": None}]


def _fix(session: Session, fixed: Mapping[str, Any]) -> dict[str, Any]:
    heads = [remedy for remedy in fixed["remedies"] if remedy["name"].startswith("head:")]
    best = max(heads, key=lambda remedy: remedy["change"]["hard"], default=None)
    rows = {"hard": "hard third", "easy": "easy third", "medium": "medium third", "worst": "worst tenth"}
    rows["overall"] = "all samples"
    return {
        "chosen": fixed["chosen"],
        "proof": [
            {
                "name": label,
                "before": fixed["proof"][name]["before"],
                "after": fixed["proof"][name]["after"],
                "change": _change(fixed["proof"][name]),
            }
            for name, label in rows.items()
        ],
        "heads": len(heads),
        "best_head": [best["change"]["hard"], *best["interval"]["hard"]] if best else [0.0, 0.0, 0.0],
        "stronger_penalty": _stronger_penalty(session),
    }


def _stronger_penalty(session: Session) -> Figure:
    """Change of the hard third by ``cg.fix`` for a model with ``C=0.1``."""
    names = session.names
    model = LogisticRegression(C=0.1, max_iter=1000).fit(names["x"]["train"], names["y"]["train"])
    for part in ("val", "test"):
        names["save"](session.folder / f"penalty_{part}.npz", model, part)
    result = cg.fix(session.folder / "penalty_val.npz", session.folder / "penalty_test.npz")
    hard = result.proof["hard"]
    return [hard.change, *hard.interval]


def _gate(result: Mapping[str, Any]) -> dict[str, Any]:
    groups: Mapping[str, Any] = result["groups"]
    classes: Mapping[str, Any] = result["rules"][0]
    broken: Sequence[str] = [rule["rule"] for rule in result["rules"] if not rule["passed"]]
    return {
        "overall": -groups["overall"]["drop"],
        "overall_drop": groups["overall"]["drop"],
        "hard": -groups["hard"]["drop"],
        "worst": classes["worst"],
        "drop": -classes["value"],
        "shown": classes["bound"],
        "verdict": "passes" if result["passed"] else f"fails: {', '.join(broken)}",
        "power": result["power"]["median"],
        "hard_detectable": groups["hard"]["detectable"],
        "overall_detectable": groups["overall"]["detectable"],
    }
