"""fix(): choices, proofs and results against direct computations from the scores."""

import json
import sys

import numpy as np
import pytest
import torch
from fix_cases import biased, biased_logits, exact_posteriors, softmax
from torch import nn

from classgap.audit import AuditSettings
from classgap.audit.io.predictions import Predictions
from classgap.remedies import fix
from classgap.remedies.adjustments import Adjustment, Candidate, Context
from classgap.remedies.fix import fix_samples
from classgap.remedies.samples import Samples
from classgap.remedies.selection import Limits
from classgap.remedies.sources import Source

FREE = {"max_easy_loss": 100, "max_overall_loss": 100, "max_medium_loss": 100}


def class_accuracy(predicted, labels, num_classes):
    return np.array([np.mean(predicted[labels == k] == k) for k in range(num_classes)])


def thirds_by_hand(accuracy):
    ranked = sorted(range(len(accuracy)), key=lambda k: (-accuracy[k], k))
    outer = len(ranked) // 3 + (len(ranked) % 3 == 2)
    return {"easy": ranked[:outer], "medium": ranked[outer : len(ranked) - outer], "hard": ranked[-outer:]}


@pytest.mark.parametrize("goal", ["hard", "worst", "balanced"])
def test_proof_by_hand(goal):
    """Accuracies on the test samples, with thirds that the fitting samples rank."""
    (labels, logits), (test_labels, test_logits) = biased_logits(7, 60), biased_logits(7, 60, seed=1)
    result = fix(biased(7, 60), biased(7, 60, seed=1), goal=goal, **FREE)
    groups = thirds_by_hand(class_accuracy(logits.argmax(axis=1), labels, 7))
    before = class_accuracy(test_logits.argmax(axis=1), test_labels, 7)
    after = class_accuracy(result.fix.predict(test_logits), test_labels, 7)
    expected = {name: (before[members].mean(), after[members].mean()) for name, members in groups.items()}
    expected |= {"overall": (before.mean(), after.mean()), "balanced": (before.mean(), after.mean())}
    for name, (old, new) in expected.items():
        proof = result.proof[name]
        assert (proof.before, proof.after) == (pytest.approx(old), pytest.approx(new))
        assert proof.change == pytest.approx(new - old)
        assert proof.interval.low <= proof.change <= proof.interval.high
    chosen = next(each for each in result.remedies if each.chosen)
    assert chosen.name == result.chosen
    for name in groups:
        assert chosen.change[name] == pytest.approx(result.proof[name].change)
    assert result.proof[goal].change > 0
    assert result.diff is not None


@pytest.mark.parametrize("kept", [range(7), [0, 2, 3, 5, 6]])
def test_a_change_has_one_interval(kept):
    """In the table of remedies, the proof and the comparison, also if classes have no test samples."""
    labels, logits = biased_logits(7, 60, seed=1)
    rows = np.isin(labels, kept)
    result = fix(biased(7, 60), Predictions.from_arrays(labels[rows], logits=logits[rows]), **FREE)
    (chosen,) = [each for each in result.remedies if each.chosen]
    assert set(result.proof) == set(chosen.interval)
    compared = {name: group.change for name, group in result.diff.groups.items() if group.kind == "thirds"}
    compared |= {"overall": result.diff.overall, "balanced": result.diff.balanced}
    for name, proof in result.proof.items():
        assert proof.interval == chosen.interval[name]
        assert (proof.change, *proof.interval) == pytest.approx(
            (compared[name].change, *compared[name].interval) if name in compared else (proof.change, *proof.interval)
        )
    assert {"hard", "medium", "easy"} < compared.keys()


def test_imbalanced_training_sets_name_the_limits_that_are_dropped():
    labels, logits = biased_logits(4, 40)
    data = Predictions.from_arrays(labels, logits=logits, train_counts=[100, 50, 50, 10])
    expected = {
        (): "losses of the easy and medium thirds have no limit, and the limit on overall losses weights all classes",
        ("max_easy_loss",): "losses of the medium third have no limit, and the limit on overall",
        ("max_easy_loss", "max_medium_loss"): "rare ones: the limit on overall losses weights all classes equally.",
    }
    for given, text in expected.items():
        (notice,) = fix(data, **dict.fromkeys(given, 1.0)).notices
        assert text in notice
    assert fix(biased(4, 40)).notices == ()


def test_test_labels_choose_nothing():
    fit_data, (test_labels, test_logits) = biased(6, 40), biased_logits(6, 40, seed=1)
    results = [
        fix(fit_data, Predictions.from_arrays(labels, logits=test_logits), **FREE)
        for labels in (test_labels, np.random.default_rng(0).permutation(test_labels))
    ]
    first, second = results
    assert first.chosen == second.chosen
    assert [(each.name, each.settings, each.estimate) for each in first.remedies] == [
        (each.name, each.settings, each.estimate) for each in second.remedies
    ]
    for mine, theirs in zip(first.fix.state_dict().values(), second.fix.state_dict().values(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)
    assert first.proof["overall"].change != second.proof["overall"].change


def test_the_same_seed_gives_the_same_result():
    data = biased(3, 20), biased(3, 20, seed=1)
    results = [fix(*data, **FREE).to_dict() for _ in range(2)]
    assert results[0] == results[1]
    other = fix(*data, **FREE, seed=1).to_dict()
    assert other["remedies"][0]["estimate"] != results[0]["remedies"][0]["estimate"]


class Recorder(nn.Module):
    """Checks that it is never applied to a sample that fitted it."""

    calls = 0

    def __init__(self, fitted):
        super().__init__()
        self.fitted = fitted

    def forward(self, logits):
        top = logits.topk(2, dim=1).values
        applied = {round(float(gap), 6) for gap in top[:, 0] - top[:, 1]}
        assert applied
        assert not applied & self.fitted
        Recorder.calls += 1
        return logits


def test_nested_folds_measure_no_part_that_they_fitted(monkeypatch):
    def record(data, ranking):
        return [Candidate({}, Recorder({round(float(-each) / data.scale, 6) for each in data.scores.logits_Nm[:, 1]}))]

    monkeypatch.setattr(
        sys.modules["classgap.remedies.fix"], "adjustments", lambda context: [Adjustment("record", record, "records")]
    )
    labels, logits = biased_logits(4, 15)
    Recorder.calls = 0
    result = fix(Predictions.from_arrays(labels, logits=logits.astype(float)))
    assert Recorder.calls == 15 + 5 * 5 + 5  # repeats and folds, folds inside outer folds, outer folds
    assert result.nested
    assert (result.n_fit, result.n_test) == (60, 0)


def test_nested_estimates_by_hand():
    """A change without parameters has the mean change over samples; outer folds are equally large here."""
    labels, logits = biased_logits(4, 25)
    shifted = logits - np.float32([1.5, 0, 0, 0])
    data = Predictions.from_arrays(labels, logits=logits)
    sources = (
        Source("model", torch.from_numpy(logits), is_baseline=True),
        Source("shifted", torch.from_numpy(shifted), adjustable=False),
    )
    settings = AuditSettings(map="none", diagnose=False)
    result = fix_samples(Samples(data, None, sources), Context(4), Limits(1, 1), settings)
    row = next(each for each in result.remedies if each.name == "shifted")
    before, after = (np.mean(scores.argmax(axis=1) == labels) for scores in (logits, shifted))
    for name in ("overall", "balanced"):
        assert row.change[name] == pytest.approx(after - before)
        assert row.estimate[name] == pytest.approx(after - before)


def test_perfect_predictions_need_no_remedy(tmp_path):
    data = [biased(4, 20, seed=seed, separation=50.0) for seed in (0, 1)]
    for result in (fix(*data), fix(data[0])):
        assert (result.chosen, result.proof, result.fix, result.diff) == (None, None, None, None)
        assert "nothing helped" in repr(result)
        assert not any(each.chosen for each in result.remedies)
        result.save(tmp_path / "fix.json")
        content = json.loads((tmp_path / "fix.json").read_text())
        assert content["chosen"] is None
        assert content["proof"] is None


def test_json_holds_fractions(tmp_path):
    result = fix(biased(6, 40), biased(6, 40, seed=1), **FREE)
    result.save(tmp_path / "fix.json")
    content = json.loads((tmp_path / "fix.json").read_text(), parse_constant=pytest.fail)
    assert content["chosen"] == result.chosen
    assert content["limits"] == {"easy": 1, "medium": 1, "overall": 1}
    for name in ("overall", "easy", "medium", "hard"):
        proof = content["proof"][name]
        assert proof["after"] - proof["before"] == pytest.approx(proof["change"])
        assert 0 <= proof["before"] <= 1
        for remedy in content["remedies"]:
            assert -1 <= remedy["change"][name] <= 1
    assert content["remedies"][0]["chosen"]
    estimates = [each["estimate"]["hard"] for each in content["remedies"][1:]]
    assert estimates == sorted(estimates, reverse=True)


def test_long_tails_are_corrected_by_training_counts():
    """A model trained on a long tail carries its log-prior; the correction gains over 10 points on the hard third."""
    counts = 1000 * 0.5 ** np.arange(9)
    parts = []
    for seed in (0, 1):
        labels, logits = exact_posteriors(9, 900, seed)
        logits = logits + np.log(counts / counts.sum()).astype(np.float32)
        parts.append(Predictions.from_arrays(labels, logits=logits, train_counts=counts))
    result = fix(*parts)
    assert result.limits["easy"] == 1  # imbalanced: frequent classes may pay
    assert result.proof["hard"].change > 0.1
    assert result.proof["overall"].change > 0
    assert {"prior-correction", "class-offsets"} <= {each.name for each in result.remedies}


def test_ensembles_are_averaged_in_the_order_of_the_files():
    fit_data, test_data, raw = [], [], []
    for seed, parts in ((0, fit_data), (1, test_data)):
        rng = np.random.default_rng(seed)
        labels = np.arange(600) % 6
        for i, noise in enumerate((1.2, 1.0, 1.1)):
            logits = (2 * np.eye(6)[labels] + noise * rng.normal(size=(600, 6))).astype(np.float32)
            parts.append(Predictions.from_arrays(labels, logits=logits, name=f"model {i}"))
            raw += [logits] if seed else []
    result = fix(fit_data, test_data)
    assert result.model_name == "model 1"  # the most accurate
    assert result.chosen.startswith("ensemble")
    assert result.fix.members == ("model 0", "model 1", "model 2")
    row = next(each for each in result.remedies if each.name == "ensemble")
    assert row.passes == 3
    mean = np.mean([softmax(each.astype(float)) for each in raw], axis=0)
    gain = np.mean(mean.argmax(axis=1) == labels) - np.mean(raw[1].argmax(axis=1) == labels)
    assert row.change["overall"] == pytest.approx(gain)
    predicted = result.fix.predict(np.stack(raw))
    assert np.mean(predicted == labels) == pytest.approx(result.proof["overall"].after)


def test_overall_counts_samples_alike_if_only_the_training_set_is_imbalanced():
    """The choice then counts classes alike; the report must not call that the overall accuracy."""
    rng, parts = np.random.default_rng(0), []
    for count in (120, 400):
        labels = rng.permutation(np.repeat([0, 1, 2, 3], [8 * count // 4, count, count, count // 2]))
        logits = 2 * np.eye(4)[labels] + rng.normal(size=(len(labels), 4)) + [2, 0, 0, 0]
        counts = np.array([800, 100, 100, 50])
        parts.append(Predictions.from_arrays(labels, logits=logits.astype(np.float32), train_counts=counts))
    fit_data, test = parts
    result = fix(fit_data, test, max_overall_loss=50)
    row = next(each for each in result.remedies if each.chosen)
    before = np.mean(test.predictions_N == test.targets_N)
    after = np.mean(result.fix.predict(test.logits_NK.numpy()) == test.targets_N)
    assert result.proof["overall"].before == pytest.approx(before)
    assert result.proof["overall"].change == pytest.approx(after - before)
    assert row.change["overall"] == pytest.approx(after - before)
    assert result.proof["balanced"].change != pytest.approx(after - before, abs=0.01)
    assert "imbalanced" in result.notices[0]


def test_few_samples_per_class_are_noticed():
    few, enough = (fix(biased(3, count), biased(3, 60, seed=1)).notices for count in (9, 10))
    assert "9 fitting samples" in few[0]
    assert enough == ()


def test_costs_and_priors():
    (test_labels, test_logits), data = biased_logits(4, 100, seed=1), (biased(4, 100), biased(4, 100, seed=1))
    costs = np.array([[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [9, 9, 9, 0.0]])
    result = fix(*data, goal="cost", costs=costs)
    before, after = test_logits.argmax(axis=1), result.fix.predict(test_logits)
    assert result.proof["cost"].before == pytest.approx(-costs[test_labels, before].mean())
    assert result.proof["cost"].after == pytest.approx(-costs[test_labels, after].mean())
    assert result.proof["cost"].change > 0
    # Priors weight the classes of the overall accuracy.
    priors = np.array([0.1, 0.2, 0.3, 0.4])
    result = fix(*data, priors=priors, **FREE)
    row = next(each for each in result.remedies if each.chosen)
    accuracies = [class_accuracy(each, test_labels, 4) for each in (before, result.fix.predict(test_logits))]
    assert row.change["overall"] == pytest.approx(priors @ (accuracies[1] - accuracies[0]))
    assert result.proof["overall"].change == pytest.approx(row.change["overall"])


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(("num_classes", "per_class"), [(2, 2), (2, 60), (3, 2), (3, 60), (150, 4)])
def test_sizes(num_classes, per_class, nested):
    data = [biased(num_classes, per_class, seed=seed) for seed in (0, 1)]
    result = fix(*data[: 1 if nested else 2], **FREE)
    for remedy in result.remedies:
        assert np.isfinite(list(remedy.change.values())).all()
        assert np.isfinite(list(remedy.estimate.values())).all()
    json.dumps(result.to_dict(), allow_nan=False)
    if per_class > 2:
        assert result.chosen is not None
        assert result.proof["hard"].change > 0


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_precisions_give_nearly_the_same_proof(dtype):
    arrays = [biased_logits(6, 60, seed=seed) for seed in (0, 1)]
    plain, other = (
        fix(*(Predictions.from_arrays(labels, logits=logits.astype(kind)) for labels, logits in arrays), **FREE)
        for kind in (np.float32, dtype)
    )
    assert other.chosen == plain.chosen
    assert other.proof["hard"].change == pytest.approx(plain.proof["hard"].change, abs=0.02)
    costs = 1 - np.eye(6)
    data = [Predictions.from_arrays(labels, logits=logits.astype(dtype)) for labels, logits in arrays]
    assert {each.name for each in fix(*data, goal="cost", costs=costs).remedies} >= {"expected-cost"}


def test_probabilities_with_zeros():
    parts = []
    for seed in (0, 1):
        labels, logits = biased_logits(5, 80, seed=seed)
        p = softmax(logits)
        p = np.where(p < 0.05, 0, p)
        parts.append(Predictions.from_arrays(labels, probabilities=p / p.sum(axis=1, keepdims=True)))
    assert any((part.logits_NK < -80).any() for part in parts)
    result = fix(*parts, **FREE)
    assert result.chosen is not None
    assert result.proof["hard"].change > 0.05


def test_classes_without_samples_are_left_out():
    labels, logits = biased_logits(6, 40)
    test_labels, test_logits = biased_logits(6, 40, seed=1)
    kept, test_kept = labels != 3, test_labels != 3
    result = fix(
        Predictions.from_arrays(labels[kept], logits=logits[kept]),
        Predictions.from_arrays(test_labels[test_kept], logits=test_logits[test_kept]),
        **FREE,
    )
    assert result.proof["hard"].change > 0
    assert np.isfinite(result.fix(test_logits)).all()


def test_exact_posteriors_cannot_be_improved():
    """With exact posteriors of balanced classes, nothing raises balanced accuracy: proofs show no gain."""
    changes, optimism, chosen = [], [], 0
    for seed in range(40):
        (labels, logits), (test_labels, test_logits) = (exact_posteriors(4, n, (seed, n)) for n in (120, 1200))
        data = [Predictions.from_arrays(labels, logits=logits)]
        data.append(Predictions.from_arrays(test_labels, logits=test_logits))
        result = fix(*data, goal="balanced")
        chosen += result.chosen is not None
        changes.append(0.0 if result.proof is None else result.proof["balanced"].change)
        optimism.append(max(each.estimate["balanced"] for each in result.remedies))
    assert np.mean(changes) < 3 * np.std(changes, ddof=1) / np.sqrt(40)
    assert np.mean(changes) > -0.002
    assert np.mean(optimism) > np.mean(changes)  # the best estimate is optimistic; it is never shown as the gain
    assert chosen <= 15
