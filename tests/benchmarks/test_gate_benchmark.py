"""The tables of docs/gate.md are those of the stored results, and false alarms stay within the level."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from scripts import load_script


@pytest.fixture(scope="module")
def benchmark():
    return load_script("benchmarks/gate.py")


def test_page_shows_the_stored_results(benchmark):
    assert benchmark.SECTION.read() == benchmark.tables().strip()


def test_every_setting_is_stored_once(benchmark):
    keys = [benchmark.key(line) for line in benchmark.stored.read_lines(benchmark.RESULTS)]
    assert Counter(keys) == Counter(benchmark.settings())


def test_false_alarms_are_within_the_level(benchmark):
    for scenario in benchmark.FALSE_ALARMS:
        lines = [line for line in benchmark.stored.read_lines(benchmark.RESULTS) if line["scenario"] == scenario]
        total = sum(line["trials"] for line in lines)
        assert sum(line["failed"] for line in lines) <= 0.05 * total
        for line in lines:  # 45 cells: the largest of them may be lucky
            assert line["failed"] <= stats.binom.ppf(1 - 0.01 / 45, line["trials"], 0.05)


def test_simulated_models_have_the_accuracies_and_the_correlation(benchmark):
    rng = np.random.default_rng(0)
    rates = np.array([0.9, 0.6])
    before, after = benchmark.draw(rates, rates - 0.1, 20_000, 0.8, rng)
    assert [entry.accuracy for entry in before.classes] == pytest.approx(rates, abs=0.01)
    assert [entry.accuracy for entry in after.classes] == pytest.approx(rates - 0.1, abs=0.01)
    both = (before.samples.correct & after.samples.correct)[:20_000].mean()
    expected = stats.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]]).cdf(stats.norm.ppf([0.9, 0.8]))
    assert both == pytest.approx(expected, abs=0.01)
    before, after = benchmark.draw(rates, rates - 0.1, 20_000, None, rng)
    assert (before.samples.correct & after.samples.correct)[:20_000].mean() == pytest.approx(0.9 * 0.8, abs=0.01)
    assert not len(np.intersect1d(before.samples.index, after.samples.index))
