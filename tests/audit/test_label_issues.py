"""When labels are checked, and what is said when they are not."""

import importlib.util
import warnings

import numpy as np
import pytest
import torch

from classgap.audit import Audit, AuditSettings
from classgap.audit.diagnosis import label_issues as module
from classgap.audit.diagnosis.label_issues import label_issues
from classgap.audit.results import Notice

LOGITS, TARGETS = torch.randn(30, 3), np.arange(30) % 3


def skipped(reason: str) -> Notice:
    return Notice("labels-not-checked", {"reason": reason})


def test_off_is_noted():
    assert label_issues(LOGITS, TARGETS, wanted=False) == (None, skipped("disabled"))


def test_without_cleanlab_it_is_skipped_or_an_error_if_wanted(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert label_issues(LOGITS, TARGETS, wanted=None) == (None, skipped("no-cleanlab"))
    with pytest.raises(ValueError, match="cleanlab is not installed"):
        label_issues(LOGITS, TARGETS, wanted=True)


def test_without_scores_or_with_too_many_it_is_skipped(monkeypatch):
    assert label_issues(None, TARGETS, wanted=None)[1] == skipped("no-scores")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(module, "MOST_SCORES", 10)
    assert label_issues(LOGITS, TARGETS, wanted=None)[1] == skipped("too-many-scores")


@pytest.mark.parametrize("only", [0, 1, 2])
def test_samples_of_a_single_class_are_not_checked_whichever_class_it_is(only):
    targets = np.full(30, only)
    found, notice = label_issues(LOGITS, targets, wanted=None)
    assert found is None
    assert notice == skipped("one-target")
    with pytest.raises(ValueError, match="check_labels: all test samples are of one class"):
        label_issues(LOGITS, targets, wanted=True)
    audit = Audit.from_predictions(LOGITS, targets, settings=AuditSettings(n_resamples=20))
    assert notice in audit.notices


def test_cleanlab_counts_changed_labels():
    pytest.importorskip("cleanlab")
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), 100)
    logits = torch.from_numpy(rng.normal(size=(300, 3)) + 6 * np.eye(3)[truth])
    labels = truth.copy()
    labels[:15] = 2
    found, notice = label_issues(logits, labels, wanted=True)
    assert notice is None
    assert found[2] == pytest.approx(15, abs=2)
    assert found[:2].sum() <= 4


def test_what_cleanlab_warns_of_small_classes_is_not_passed_on():
    cleanlab = pytest.importorskip("cleanlab.filter")
    logits, labels = torch.eye(3).repeat(2, 1), np.array([0, 1, 2, 0, 1, 1])
    with pytest.warns(UserWarning, match="too few examples"):  # or nothing is tested
        cleanlab.find_label_issues(labels, logits.softmax(dim=1).numpy(), filter_by="both", n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        label_issues(logits, labels, wanted=True)
