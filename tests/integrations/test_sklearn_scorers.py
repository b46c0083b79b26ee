"""Scores of hard classes against loops, and the bias of ranking by the scored predictions."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_val_predict, cross_val_score

from classgap.integrations.sklearn import (
    class_accuracies,
    gap_score,
    hard_third_score,
    neg_gap_scorer,
    worst_class_score,
    worst_class_scorer,
)


def predictions(seed, classes=7, n=400):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    return y, np.where(rng.random(n) < 0.4 + 0.08 * y, y, rng.integers(classes, size=n))


@pytest.mark.parametrize("seed", range(3))
def test_scores_equal_loops(seed):
    y, predicted = predictions(seed)
    other = class_accuracies(*predictions(seed + 10))
    own = {k: sum(p == k for t, p in zip(y, predicted, strict=True) if t == k) / list(y).count(k) for k in range(7)}
    assert class_accuracies(y, predicted) == pytest.approx(own)
    assert worst_class_score(y, predicted) == pytest.approx(min(own.values()))
    for rank_by, ranking in ((None, own), (other, other)):
        ranked = sorted(range(7), key=lambda k: ranking[k])
        hard, easy = (sum(own[k] for k in part) / 2 for part in (ranked[:2], ranked[-2:]))  # 7 classes: 2, 3, 2
        assert hard_third_score(y, predicted, rank_by=rank_by) == pytest.approx(hard)
        assert gap_score(y, predicted, rank_by=rank_by) == pytest.approx(easy - hard)


def test_own_rankings_regress_to_the_mean():
    """All classes have an accuracy of 0.8; only a ranking by other samples shows it."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(30), 20)
    own, other = [], []
    for _ in range(50):
        first, second = (np.where(rng.random(len(y)) < 0.8, y, (y + 1) % 30) for _ in range(2))
        own.append(hard_third_score(y, second))
        other.append(hard_third_score(y, second, rank_by=class_accuracies(y, first)))
    assert np.mean(own) < 0.73
    assert np.mean(other) == pytest.approx(0.8, abs=0.01)


def test_scorers_have_the_right_sign():
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=500)
    gaps = cross_val_score(model, X, y, scoring=neg_gap_scorer, cv=3)
    assert (gaps <= 0).all()
    assert (gaps < 0).any()
    worst = cross_val_score(model, X, y, scoring=worst_class_scorer, cv=3)
    assert ((worst > 0.7) & (worst <= 1)).all()


def test_a_ranking_by_a_baseline_in_cross_validation():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    baseline = class_accuracies(names, cross_val_predict(LogisticRegression(C=0.01), X, names))
    assert min(baseline, key=baseline.get) != "setosa"
    scorer = make_scorer(hard_third_score, rank_by=baseline)
    scores = cross_val_score(LogisticRegression(max_iter=500), X, names, scoring=scorer, cv=3)
    assert ((scores > 0.7) & (scores <= 1)).all()


def test_invalid_inputs():
    with pytest.raises(ValueError, match="'dog'"):
        hard_third_score(["cat", "dog"], ["cat", "dog"], rank_by={"cat": 1.0})
    with pytest.raises(ValueError, match="2 classes"):
        gap_score([1, 1], [1, 0])
    with pytest.raises(ValueError, match="inconsistent"):
        worst_class_score([1, 1], [1])
    with pytest.raises(ValueError, match="y_true"):
        worst_class_score([], [])
