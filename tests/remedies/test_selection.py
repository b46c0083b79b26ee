"""Cross-fitting: no sample measures a part that it fitted, and estimates are unbiased."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from fix_cases import biased_logits, exact_posteriors
from torch import nn

from classgap.remedies.adjustments import Adjustment, Candidate, Context, adjustments
from classgap.remedies.evaluation import Measured, Ranking, group_weights, measure
from classgap.remedies.selection import Limits, Option, best_strengths, choose, cross_fit, predict
from classgap.remedies.sources import Source


def source(logits, name="model", is_baseline=True):
    return Source(name, torch.from_numpy(logits), is_baseline=is_baseline)


class Recorder(nn.Module):
    """Remembers the samples that fitted it and the samples that it is applied to, by their largest logit gap."""

    applied: list[tuple[frozenset, frozenset]] = []  # noqa: RUF012

    def __init__(self, fitted):
        super().__init__()
        self.fitted = fitted

    def forward(self, logits):
        Recorder.applied.append((self.fitted, frozenset(keys(logits))))
        return logits


def keys(logits):
    top = logits.topk(2, dim=1).values
    return [round(float(gap), 6) for gap in top[:, 0] - top[:, 1]]


RECORDING = Adjustment(
    "recording",
    lambda data, ranking: [
        Candidate({}, Recorder(frozenset(round(float(-each) / data.scale, 6) for each in data.scores.logits_Nm[:, 1])))
    ],
    "records",
)


def test_no_sample_measures_a_part_that_it_fitted():
    labels, logits = biased_logits(4, 15)
    logits = logits.astype(float)
    assert len(set(keys(torch.from_numpy(logits)))) == len(labels)
    Recorder.applied.clear()
    cross_fit([source(logits)], labels, [RECORDING], Context(4), n_repeats=2)
    assert len(Recorder.applied) == 10
    for fitted, applied in Recorder.applied:
        assert applied
        assert not fitted & applied
        assert len(fitted | applied) == len(labels)
    assert sum(len(applied) for _, applied in Recorder.applied) == 2 * len(labels)


def test_classes_are_ranked_by_the_fitting_samples_only():
    labels, logits = biased_logits(7, 12)
    logits = logits.astype(float)
    row_of = {key: row for row, key in enumerate(keys(torch.from_numpy(logits)))}
    seen = []

    def remember(data, ranking):
        rows = [row_of[round(float(-each) / data.scale, 6)] for each in data.scores.logits_Nm[:, 1]]
        seen.append((np.array(rows), ranking.members))
        return [Candidate({}, nn.Identity())]

    cross_fit([source(logits)], labels, [Adjustment("remember", remember, "remembers")], Context(7))
    rankings = set()
    for rows, members in seen:
        accuracy = [np.mean(logits[rows][labels[rows] == k].argmax(axis=1) == k) for k in range(7)]
        ranked = sorted(range(7), key=lambda k: (-accuracy[k], k))
        assert members["easy"].tolist() == ranked[:2]
        assert members["hard"].tolist() == ranked[-2:]
        rankings.add(tuple(ranked))
    assert len(rankings) > 1


def test_estimates_by_hand():
    """The cross-fitted estimate of a fixed change is the mean over folds of the change on the fold."""
    labels, logits = biased_logits(4, 25)
    shift = torch.tensor([-1.0, 0, 0, 0])
    other = source(logits + shift.numpy(), "other", is_baseline=False)
    (option,) = cross_fit([source(logits), other], labels, [], Context(4), n_repeats=1)
    before, after = (each.argmax(axis=1) == labels for each in (logits, logits + shift.numpy()))
    # Folds are stratified and equally large, so means over folds are means over samples.
    assert option.estimate["overall"].before == pytest.approx(before.mean())
    assert option.estimate["overall"].after == pytest.approx(after.mean())
    assert option.estimate["balanced"].change == pytest.approx(after.mean() - before.mean())
    assert option.name == "other"


def test_estimates_of_few_samples_are_not_pulled_to_zero():
    """With 2 samples per class most folds have none of the hard class."""
    labels, logits = np.arange(6) % 3, np.eye(3)[np.arange(6) % 3]
    (option,) = cross_fit([source(logits), source(logits, "same", False)], labels, [], Context(3))
    for name in ("overall", "balanced", "easy", "hard"):
        assert option.estimate[name].before == option.estimate[name].after == 1


def test_an_equal_model_gains_nothing_on_hard_classes():
    """Ranking on the samples that measure would let any equal model gain where the baseline had bad luck."""
    honest, naive, chosen = [], [], 0
    for seed in range(40):
        labels, logits = exact_posteriors(9, 450, (seed, 0), separation=1.5)
        rng = np.random.default_rng((seed, 1))
        points = rng.normal(size=logits.shape) + 1.5 * np.eye(9)[labels]
        models = [source(logits), source(1.5 * points, "equal", False)]
        options = cross_fit(models, labels, [], Context(9), seed=seed)
        honest.append(options[0].estimate["hard"].change)
        chosen += choose(options, "hard", Limits(1, 1)) is not None
        ranking = Ranking.from_predictions(models[0].predictions_N, labels, 9)
        weights = group_weights(labels, ranking, 9)
        naive.append(measure(*(each.predictions_N for each in models), labels, weights)["hard"].change)
    assert abs(np.mean(honest)) < 3 * np.std(honest, ddof=1) / np.sqrt(40)
    assert np.mean(naive) > 6 * np.std(naive, ddof=1) / np.sqrt(40)
    assert chosen <= 12  # gains of one standard error happen by chance 6 times in 40
    assert options[0].estimate["hard"].error == pytest.approx(np.std(honest), rel=0.3)


def test_limits_and_one_standard_error():
    def option(name, hard, easy, overall, error=0.01, medium=0.0):
        estimate = {
            "hard": Measured(0.5, 0.5 + hard, error),
            "easy": Measured(0.9, 0.9 + easy, 0.01),
            "medium": Measured(0.7, 0.7 + medium, 0.01),
            "overall": Measured(0.8, 0.8 + overall, 0.01),
            "cost": Measured(-1.0, -0.5, 0.01),
        }
        return Option(source(np.eye(2)), Adjustment(name, lambda *_: [], ""), 0, {}, estimate)

    good, better, greedy = option("a", 0.03, 0, 0), option("a", 0.04, -0.002, 0), option("b", 0.2, -0.05, 0)
    noisy, costly = option("c", 0.1, 0, 0, error=0.2), option("d", 0.1, 0, -0.01)
    transfer = option("e", 0.1, 0, 0, medium=-0.02)
    options = [good, better, greedy, noisy, costly, transfer]
    assert choose(options, "hard", Limits()) is better
    assert choose([good, greedy, noisy, costly], "hard", Limits()) is good
    assert choose([greedy, noisy, costly], "hard", Limits()) is None
    assert choose(options, "hard", Limits(easy=0.1)) is greedy
    assert choose([greedy], "cost", Limits()) is greedy  # limits are about accuracy
    assert choose([], "hard", Limits()) is None
    assert best_strengths(options, "hard", Limits()) == [better, greedy, noisy, costly, transfer]
    assert choose(options, "hard", Limits(medium=0.05)) is transfer


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_predictions_of_adjusted_scores(dtype):
    labels, logits = biased_logits(4, 30)
    given = torch.from_numpy(logits.astype(dtype))
    assert predict(nn.Identity(), given).tolist() == logits.astype(dtype).argmax(axis=1).tolist()
    options = cross_fit([Source("half", given, is_baseline=True)], labels, adjustments(Context(4)), Context(4))
    assert all(np.isfinite(option.estimate["hard"].change) for option in options)


def test_averages_are_excluded_only_by_losses_beyond_a_standard_error():
    def option(easy, *, is_average, adjusted=False):
        estimate = {
            "hard": Measured(0.5, 0.55, 0.01),
            "easy": Measured(0.9, 0.9 + easy, 0.01),
            "medium": Measured(0.7, 0.7, 0.01),
            "overall": Measured(0.8, 0.8, 0.01),
        }
        scores = replace(source(np.eye(2)), is_average=is_average, is_baseline=False)
        return Option(scores, Adjustment("a", lambda *_: [], "") if adjusted else None, 0, {}, estimate)

    small, large = -0.01, -0.02
    assert choose([option(small, is_average=True)], "hard", Limits()) is not None
    assert choose([option(large, is_average=True)], "hard", Limits()) is None
    assert choose([option(small, is_average=False)], "hard", Limits()) is None
    assert choose([option(small, is_average=True, adjusted=True)], "hard", Limits()) is None


def test_without_a_limit_on_easy_classes_equal_gains_are_decided_by_balanced_accuracy():
    def option(hard, balanced):
        names = ("easy", "medium", "overall")
        estimate = {name: Measured(0.8, 0.7, 0.01) for name in names}
        estimate |= {"hard": Measured(0.2, 0.2 + hard, 0.03), "balanced": Measured(0.6, 0.6 + balanced, 0.01)}
        return Option(source(np.eye(2)), Adjustment("a", lambda *_: [], ""), 0, {}, estimate)

    greedy, fair, weak = option(0.30, 0.02), option(0.28, 0.06), option(0.10, 0.09)
    free = Limits(easy=1.0, overall=1.0, medium=1.0)
    assert choose([greedy, fair, weak], "hard", free) is fair
    assert choose([greedy, weak], "hard", free) is greedy
