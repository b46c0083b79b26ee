"""Labels that number the classes differently from the predictions are noticed; weak models are not."""

import numpy as np
import pytest

from classgap.audit import Audit, AuditAccumulator, AuditSettings

QUICK = AuditSettings(n_resamples=20)
CODES = ("labels-shifted", "labels-permuted")


def found(targets, predictions, classes):
    audit = Audit.from_predictions(
        predictions=predictions, targets=targets, class_names=[f"c{k}" for k in range(classes)], settings=QUICK
    )
    return [notice for notice in audit.notices if notice.code in CODES], audit


def drawn(classes, support, accuracy, seed=0):
    rng = np.random.default_rng(seed)
    targets = np.repeat(np.arange(classes), support)
    return targets, np.where(rng.random(len(targets)) < accuracy, targets, rng.integers(0, classes, len(targets)))


@pytest.mark.parametrize("shift", [-1, 1])
@pytest.mark.parametrize(("classes", "support", "accuracy"), [(10, 20, 0.9), (100, 20, 0.6), (200, 50, 0.3)])
def test_labels_shifted_by_one(shift, classes, support, accuracy):
    targets, predictions = drawn(classes, support, accuracy)
    (notice,), audit = found(np.clip(targets + shift, 0, classes - 1), predictions, classes)
    assert (notice.code, notice.values["offset"]) == ("labels-shifted", -shift)
    assert notice.values["renamed_accuracy"] > 2 * notice.values["accuracy"]
    text = " ".join(str(audit).split())
    assert f"class k is mostly predicted as class k {'−' if shift > 0 else '+'} 1" in text
    one, zero = ("labels", "predictions") if shift > 0 else ("predictions", "labels")
    assert f"check whether the {one} count from 1 and the {zero} from 0." in text
    assert Audit.from_dict(audit.to_dict()).notices == audit.notices


def test_classes_in_another_order():
    targets, predictions = drawn(20, 30, 0.8)
    order = np.random.default_rng(1).permutation(20)
    (notice,), audit = found(order[targets], predictions, 20)
    assert notice.code == "labels-permuted"
    wrong = {f"c{order[k]}": f"c{k}" for k in range(20)}
    assert wrong[notice.values["label"]] == notice.values["prediction"]
    assert "Classes look permuted" in " ".join(str(audit).split())


def test_accumulated_audits_notice_it_too():
    targets, predictions = drawn(10, 20, 0.9)
    accumulator = AuditAccumulator(num_classes=11)
    accumulator.update(np.eye(11)[predictions], targets + 1)
    assert "labels-shifted" in {notice.code for notice in accumulator.compute().notices}


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
@pytest.mark.parametrize("support", [1, 2, 5, 20, 100])
@pytest.mark.parametrize("accuracy", [0.0, 0.05, 0.5])
def test_weak_models_are_no_reason(classes, support, accuracy):
    rng = np.random.default_rng([classes, support])
    targets, guesses = drawn(classes, support, accuracy)
    favorites = rng.choice(classes, len(targets), p=rng.dirichlet(np.full(classes, 0.1)))
    neighbors = np.clip(targets + rng.integers(-2, 3, len(targets)), 0, classes - 1)
    for wrong in (guesses, favorites, neighbors, np.zeros_like(targets)):
        predictions = np.where(rng.random(len(targets)) < accuracy, targets, wrong)
        assert found(targets, predictions, classes)[0] == []
