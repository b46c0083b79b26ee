"""Calibration error against a loop over groups and bins."""

import numpy as np

from classgap.audit.metrics.calibration import calibration_errors


def test_errors_against_a_loop():
    rng = np.random.default_rng(0)
    confidence, group = rng.random(300), rng.integers(0, 4, 300)
    confidence[:3] = [0.0, 1.0, 0.2]  # both ends, and the edge of a bin
    correct = rng.random(300) < confidence**2
    expected = []
    for k in range(5):
        error = 0.0
        for b in range(10):
            inside = (group == k) & (confidence <= (b + 1) / 10) & ((confidence > b / 10) | (b == 0))
            if inside.any():
                error += inside.sum() / (group == k).sum() * abs(correct[inside].mean() - confidence[inside].mean())
        expected.append(error if (group == k).any() else np.nan)
    np.testing.assert_allclose(calibration_errors(confidence, correct, group, 5, bins=10), expected)


def test_calibrated_model_has_almost_none():
    rng = np.random.default_rng(1)
    confidence = rng.random(200_000)
    errors = calibration_errors(confidence, rng.random(200_000) < confidence, np.zeros(200_000, dtype=int), 1)
    assert errors[0] < 0.01


def test_an_edge_belongs_to_the_bin_below_it():
    # 0.2 is alone in (0.1, 0.2], 0.25 in (0.2, 0.3]; in one bin their errors would cancel in part.
    errors = calibration_errors(np.array([0.2, 0.25]), np.array([False, True]), np.array([0, 0]), 1, bins=10)
    np.testing.assert_allclose(errors, (0.2 + 0.75) / 2)
