"""F1 scores of a comparison against scikit-learn and a bootstrap over samples."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from classgap.audit import Audit, AuditDiff, AuditSettings, compare
from classgap.audit.stats.f1_scores import F1Side, stratified_variance

QUICK = AuditSettings(n_resamples=50, map="none", diagnose=False)


def labels(seed, sizes=(60, 40, 25, 10), noise=0.4):
    rng = np.random.default_rng(seed)
    targets = np.repeat(np.arange(len(sizes)), sizes)
    wrong = rng.random(len(targets)) < noise
    return targets, np.where(wrong, rng.integers(0, len(sizes), len(targets)), targets)


def audit(targets, predictions, name="run", **given):
    return Audit.from_predictions(predictions=predictions, targets=targets, name=name, settings=QUICK, **given)


def test_class_and_macro_f1_are_those_of_scikit_learn():
    targets, first = labels(0)
    _, second = labels(1, noise=0.2)
    diff = compare(audit(targets, first), audit(targets, second))
    assert [entry.f1_before for entry in diff.classes] == pytest.approx(f1_score(targets, first, average=None))
    assert [entry.f1_after for entry in diff.classes] == pytest.approx(f1_score(targets, second, average=None))
    assert diff.macro_f1.before == pytest.approx(f1_score(targets, first, average="macro"))
    assert diff.macro_f1.change == pytest.approx(
        f1_score(targets, second, average="macro") - f1_score(targets, first, average="macro")
    )
    assert diff.macro_f1.before == pytest.approx(audit(targets, first).overall.macro_f1)


def test_means_over_runs():
    targets, _ = labels(0)
    befores = [labels(seed)[1] for seed in range(3)]
    afters = [labels(seed, noise=0.2)[1] for seed in range(3, 6)]
    diff = compare([audit(targets, each) for each in befores], [audit(targets, each) for each in afters])
    by_run = np.array([[f1_score(targets, each, average="macro") for each in side] for side in (befores, afters)])
    assert (diff.macro_f1.before, diff.macro_f1.after) == pytest.approx(tuple(by_run.mean(axis=1)))
    assert diff.over_runs["macro_f1"].change_std == pytest.approx((by_run[1] - by_run[0]).std(ddof=1))
    assert diff.classes[2].f1_after == pytest.approx(
        np.mean([f1_score(targets, each, average=None)[2] for each in afters])
    )


def test_influences_are_derivatives():
    """The weight of one sample is raised, with its class shrunk to the same total: the oracle is a difference."""
    targets, predictions = labels(2)
    side = F1Side.from_labels(targets, predictions[None], 4)

    def macro(weight):
        matrix = np.zeros((4, 4))
        np.add.at(matrix, (targets, predictions), weight)
        return np.mean(2 * np.diag(matrix) / (np.bincount(targets) + matrix.sum(axis=0)))

    for i in (0, 70, 100, 130):
        weight = np.ones(len(targets))
        weight[i] += 1e-6
        assert (macro(weight) - macro(np.ones(len(targets)))) / 1e-6 == pytest.approx(side.influence_N[i], abs=1e-6)


@pytest.mark.parametrize("paired", [True, False])
def test_interval_against_a_bootstrap(paired):
    targets, first = labels(3, sizes=(200, 150, 100, 60))
    rng = np.random.default_rng(0)
    second = np.where(rng.random(len(targets)) < 0.5, targets, first)
    before, after = audit(targets, first), audit(targets, second)
    diff = AuditDiff.from_audits(before, after, unpaired=not paired, n_resamples=50)

    def draw():
        return np.concatenate([rng.choice(np.flatnonzero(targets == k), (targets == k).sum()) for k in range(4)])

    def macro(rows, predictions):
        correct = np.bincount(targets[rows][targets[rows] == predictions[rows]], minlength=4)
        return (2 * correct / (np.bincount(targets[rows]) + np.bincount(predictions[rows], minlength=4))).mean()

    drawn = []
    for _ in range(2000):
        one = draw()
        drawn.append(macro(one if paired else draw(), second) - macro(one, first))
    width = np.diff(np.quantile(drawn, [0.025, 0.975])).item()
    assert diff.macro_f1.interval.high - diff.macro_f1.interval.low == pytest.approx(width, rel=0.1)
    assert diff.macro_f1.significant


def test_classes_of_one_side_and_without_samples_are_left_out():
    """Predictions of a class that only one side knows count as wrong, and its samples are left out."""
    before = audit([0, 0, 1, 1, 2, 2], [0, 2, 1, 1, 2, 0], class_names=["a", "b", "old"])
    after = audit([0, 0, 1, 1], [0, 0, 1, 0], class_names=["a", "b", "new"])
    diff = AuditDiff.from_audits(before, after, unpaired=True, n_resamples=50)
    a, b = diff.classes
    assert (a.f1_before, b.f1_before) == pytest.approx((2 / 3, 1.0))  # a: 1 of 2, predicted once among its samples
    assert (a.f1_after, b.f1_after) == pytest.approx((0.8, 2 / 3))
    unseen = compare(*[audit([0, 0, 1], [0, 1, 2], class_names=["a", "b", "c"])] * 2)
    assert [entry.f1_after for entry in unseen.classes] == pytest.approx([2 / 3, 0.0, None])
    assert unseen.macro_f1.after == pytest.approx(1 / 3)


def test_an_accumulated_audit_has_no_samples_and_the_comparison_no_f1():
    import torch

    from classgap.audit import AuditAccumulator

    targets, predictions = labels(0)
    accumulator = AuditAccumulator(4)
    accumulator.update(torch.nn.functional.one_hot(torch.tensor(predictions), 4).float(), torch.tensor(targets))
    accumulated = accumulator.compute()
    diff = AuditDiff.from_audits(accumulated, audit(targets, predictions), unpaired=True, n_resamples=50)
    assert diff.macro_f1 is None
    assert diff.classes[0].f1_before is None
    assert AuditDiff.from_dict(diff.to_dict()) == diff
    assert "Macro F1" not in str(diff)


def test_where_it_is_shown():
    targets, first = labels(0)
    diff = compare(audit(targets, first), audit(targets, targets))
    assert f"Macro F1 rose from {100 * diff.macro_f1.before:.1f} % to 100.0 %" in str(diff)
    assert {"f1_before", "f1_after"} <= set(diff.to_pandas().columns)
    assert "Macro F1" in diff._repr_html_()
    assert AuditDiff.from_dict(diff.to_dict()).macro_f1 == diff.macro_f1


def test_variance_of_classes_of_one_sample():
    influence = np.array([0.0, 2.0, 5.0])
    assert stratified_variance(influence, np.array([0, 0, 1])) == pytest.approx(2 * 2.0 + 2.0)  # the pooled variance
    assert stratified_variance(influence, np.array([0, 1, 2])) == pytest.approx(3 * influence.var())
