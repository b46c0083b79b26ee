"""Measures by loops over classes, standard errors by a bootstrap, and averages over folds."""

import numpy as np
import pytest

from classgap.remedies.evaluation import Measured, Ranking, average, class_accuracies, group_weights, measure


def predictions(seed, n=600, num_classes=7, accuracies=(0.6, 0.7)):
    """Labels and two paired sets of predictions; class k is hit with a probability that rises with k."""
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.integers(num_classes, size=n))
    luck = rng.random(n)
    hits = [luck < accuracy * (0.6 + 0.4 * labels / num_classes) for accuracy in accuracies]
    hits[1] ^= rng.random(n) < 0.05
    wrong = (labels + rng.integers(1, num_classes, size=n)) % num_classes
    return labels, *(np.where(hit, labels, wrong) for hit in hits)


def groups_by_hand(before, labels, num_classes):
    accuracy = {k: np.mean(before[labels == k] == k) for k in range(num_classes) if (labels == k).any()}
    ranked = sorted(accuracy, key=lambda k: (-accuracy[k], k))
    third, rest = divmod(len(ranked), 3)
    outer = third + (rest == 2)
    return {
        "easy": ranked[:outer],
        "medium": ranked[outer : len(ranked) - outer],
        "hard": ranked[len(ranked) - outer :],
    }


@pytest.mark.parametrize("num_classes", [2, 3, 7, 20])
def test_ranking_by_hand(num_classes):
    labels, before, _ = predictions(1, num_classes=num_classes)
    ranking = Ranking.from_predictions(before, labels, num_classes + 1)  # the last class has no samples
    for name, members in groups_by_hand(before, labels, num_classes + 1).items():
        assert ranking.members[name].tolist() == members
    accuracy = class_accuracies(before == labels, labels, num_classes + 1)
    assert np.isnan(accuracy[-1])
    assert len(ranking.members["worst"]) == max(1, num_classes // 10)
    assert set(ranking.members["worst"]) == set(np.argsort(accuracy[:-1], kind="stable")[: max(1, num_classes // 10)])


@pytest.mark.parametrize("priors", [None, np.arange(1, 8) / 28])
def test_measures_by_loops_over_classes(priors):
    labels, before, after = predictions(2)
    other_labels, other_before, _ = predictions(3)
    ranking = Ranking.from_predictions(other_before, other_labels, 7)
    weights = group_weights(labels, ranking, 7, priors)
    costs = np.random.default_rng(0).exponential(size=(7, 7))
    found = measure(before, after, labels, weights, costs)

    def value(predicted, name):
        accuracy = np.array([np.mean(predicted[labels == k] == k) for k in range(7)])
        cost = np.array([np.mean([-costs[k, p] for p in predicted[labels == k]]) for k in range(7)])
        share = np.array([np.mean(labels == k) for k in range(7)]) if priors is None else priors
        if name in ("overall", "cost"):
            return share @ (accuracy if name == "overall" else cost)
        return accuracy.mean() if name == "balanced" else accuracy[ranking.members[name]].mean()

    assert found.keys() == {"overall", "balanced", "easy", "medium", "hard", "worst", "cost"}
    for name, each in found.items():
        assert each.before == pytest.approx(value(before, name))
        assert each.after == pytest.approx(value(after, name))
        assert each.change == pytest.approx(value(after, name) - value(before, name))


@pytest.mark.parametrize("seed", [4, 5])
def test_standard_errors_match_a_stratified_bootstrap(seed):
    labels, before, after = predictions(seed, n=700)
    ranking = Ranking.from_predictions(before, labels, 7)
    found = measure(before, after, labels, group_weights(labels, ranking, 7))
    rng = np.random.default_rng(0)
    rows = [np.flatnonzero(labels == k) for k in range(7)]
    change = (after == labels).astype(float) - (before == labels)
    drawn = np.stack([rng.choice(change[part], size=(3000, len(part))).mean(axis=1) for part in rows])
    for name in ("easy", "medium", "hard", "worst"):
        spread = drawn[ranking.members[name]].mean(axis=0).std()
        assert found[name].error == pytest.approx(spread, rel=0.1)
    assert found["balanced"].error == pytest.approx(drawn.mean(axis=0).std(), rel=0.1)
    counts = np.bincount(labels)
    assert found["overall"].error == pytest.approx((counts @ drawn / counts.sum()).std(), rel=0.1)


def test_intervals_cover_the_true_change():
    """Over repeated draws, 95 % intervals contain the expected change about 95 times in 100."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(6), 60)
    before_p, after_p = np.linspace(0.4, 0.9, 6), np.linspace(0.5, 0.9, 6)
    ranking = Ranking({"hard": np.array([0, 1])})
    weights = group_weights(labels, ranking, 6)
    truth = (after_p - before_p)[:2].mean()
    covered = []
    for _ in range(400):
        luck = rng.random(len(labels))
        before, after = (np.where(luck < p[labels], labels, -1) for p in (before_p, after_p))
        interval = measure(before, after, labels, weights)["hard"].interval(0.95)
        covered.append(interval.low <= truth <= interval.high)
    assert 0.91 < np.mean(covered) < 0.985


def test_a_class_of_one_sample_has_a_variance():
    labels = np.array([0, 0, 0, 1])
    before, after = np.array([0, 0, 1, 0]), np.array([0, 0, 0, 1])
    weights = group_weights(labels, Ranking({"hard": np.array([1])}), 2)
    assert measure(before, after, labels, weights)["hard"].error > 0


def test_groups_without_samples_have_no_weight():
    labels = np.array([0, 0, 1])
    weights = group_weights(labels, Ranking({"hard": np.array([2, 3]), "easy": np.array([0, 3])}), 4)
    assert weights["hard"].tolist() == [0, 0, 0]
    assert weights["easy"].tolist() == [0.5, 0.5, 0]
    found = measure(labels, labels, labels, weights)
    assert (found["hard"].present, found["easy"].present) == (False, True)
    priors = np.array([0.1, 0.3, 0.3, 0.3])
    found = group_weights(labels, Ranking({}), 4, priors)["overall"]
    np.testing.assert_allclose(found, [0.125, 0.125, 0.75])


def test_averages_leave_out_folds_without_samples_of_a_group():
    here = {"hard": Measured(0.5, 0.75, 0.2)}
    absent = {"hard": Measured(0.0, 0.0, 0.0, present=False)}
    assert average([here, absent, absent])["hard"] == here["hard"]
    assert average([here, here], n_repeats=2)["hard"] == here["hard"]  # repeats do not reduce the error
    assert average([here, here])["hard"].error == pytest.approx(0.2 / np.sqrt(2))
    assert not average([absent])["hard"].present
