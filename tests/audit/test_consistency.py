"""A saved audit that was cut or edited is refused when it is read, with the part that does not fit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from classgap.audit import Audit, AuditSettings


def saved() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    targets = np.arange(60) % 6
    features = rng.normal(size=(60, 4)) + targets[:, None]
    logits = rng.normal(size=(60, 6)) + np.eye(6)[targets]
    settings = AuditSettings(n_resamples=20, map_points=30, check_labels=False)
    return Audit.from_predictions(logits, targets, features=features, index=np.arange(60), settings=settings).to_dict()


def cut(data: dict[str, Any]) -> None:
    del data["classes"][4:]


def cut_and_counted(data: dict[str, Any]) -> None:
    cut(data)
    data["overall"]["num_classes"] = 4


def no_class(data: dict[str, Any]) -> None:
    data["classes"], data["overall"]["num_classes"] = [], 0


def set_to(value: Any, *steps: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        place: Any = data
        for step in steps[:-1]:
            place = place[step]
        place[steps[-1]] = value

    return change


def fewer_predictions(data: dict[str, Any]) -> None:
    other = Audit.from_predictions(predictions=[0] * 59, targets=[0] * 59).to_dict()
    data["samples"]["predictions"] = other["samples"]["predictions"]


def labels_of_more_classes(data: dict[str, Any]) -> None:
    other = Audit.from_predictions(predictions=np.arange(60) % 9, targets=np.arange(60) % 9).to_dict()
    data["samples"]["targets"] = other["samples"]["targets"]


CHANGES = {
    "cut": (cut, "classes must have 6 entries .* got 4"),
    "cut, and counted anew": (cut_and_counted, "not one of the 4 classes"),
    "no class": (no_class, "classes must have 0 entries .* got 0"),
    "order": (lambda data: data["classes"].reverse(), r"classes\[0\]\.index must be 0, got 5"),
    "quantiles": (
        set_to([0.0], "classes", 1, "logit_margin", "quantiles"),
        r"classes\[1\]\.logit_margin must have 9 quantiles, got 1",
    ),
    "equal names": (set_to("1", "classes", 0, "name"), "unique names"),
    "group": (set_to(["x"], "groups", "hard", "members"), r"groups\.hard names the class 'x'"),
    "pair": (set_to("x", "pairs", 0, "second"), r"pairs\[0\] names the class 'x'"),
    "gap": (set_to("x", "gap", "worst_name"), "gap names the class 'x'"),
    "map": (set_to(["x"], "map", "classes"), "map names the class 'x'"),
    "map's points": (set_to([0.5], "map", "x"), "map must have x, y, target and prediction"),
    "confusion": (
        set_to([{"name": "x", "count": 1, "rate": 0.1}], "classes", 2, "confusions"),
        r"classes\[2\]\.confusions names the class 'x'",
    ),
    "map's labels": (lambda data: data["map"]["target"].__setitem__(0, -1), r"map\.target must be in \[0, 5\], got -1"),
    "labels": (labels_of_more_classes, r"samples\.targets must be in \[0, 5\], got 8"),
    "lengths": (fewer_predictions, "samples must hold 60 .* got 59 and 60"),
}


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
def test_parts_that_do_not_belong_together_are_refused(change: Callable[[Any], None], message: str):
    data = saved()
    Audit.from_dict(data)
    change(data)
    with pytest.raises(ValueError, match=message) as caught:
        Audit.from_dict(data)
    assert "\n" not in str(caught.value)


def test_an_audit_with_unseen_classes_is_read(tmp_path: Path):
    audit = Audit.from_predictions(predictions=[0, 2], targets=[0, 0], class_names=["a", "b", "c"])
    audit.save(tmp_path / "audit.json")
    assert Audit.load(tmp_path / "audit.json").to_dict() == audit.to_dict()
