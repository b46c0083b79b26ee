"""Falling losses of noisy gradient descent on a quadratic, whose expected loss is known exactly."""

import numpy as np
import pytest

from classgap.audit.diagnosis.loss_trend import LossTrend

STEPS = 20  # per epoch


def learning_rates(schedule, epochs, peak=0.05):
    progress = np.arange(epochs * STEPS) / (epochs * STEPS)
    factor = {
        "constant": np.ones_like(progress),
        "cosine": 0.5 * (1 + np.cos(np.pi * progress)),
        "step": np.where(progress < 0.8, 1.0, np.where(progress < 0.9, 0.1, 0.01)),
    }[schedule]
    return peak * factor


def expected_losses(rates, curvature, noise=1.0, floor=0.3):
    """Mean loss floor + h/2 E[x²] of each epoch; a step maps E[x²] to (1 - lr h)² E[x²] + lr² σ²."""
    square, losses = 4.0 / curvature, []
    for rate in rates:
        losses.append(floor + curvature / 2 * square)
        square = (1 - rate * curvature) ** 2 * square + rate**2 * noise**2
    return np.array(losses).reshape(-1, STEPS).mean(axis=1)


def trend_and_gain(schedule, epochs, curvature, **settings):
    """The trend, and the relative fall of the final loss when training three times as long."""
    once, thrice = (learning_rates(schedule, epochs * factor) for factor in (1, 3))
    losses = expected_losses(once, curvature, **settings)
    longer = expected_losses(thrice, curvature, **settings)[-1]
    rates = once.reshape(-1, STEPS)[:, -1]
    return LossTrend.from_epochs(losses, rates), 1 - longer / losses[-1]


@pytest.mark.parametrize("schedule", ["constant", "cosine", "step"])
@pytest.mark.parametrize("epochs", [10, 40])
def test_a_loss_that_falls_at_a_high_rate_would_fall_further(schedule, epochs):
    trend, gain = trend_and_gain(schedule, epochs, curvature=20 / (epochs * STEPS))
    assert trend.falling
    assert gain > 0.2


@pytest.mark.parametrize("schedule", ["constant", "cosine", "step"])
@pytest.mark.parametrize("epochs", [40, 80])
@pytest.mark.parametrize("noise", [0.5, 4.0])
def test_the_fall_of_a_schedule_is_no_room_for_improvement(schedule, epochs, noise):
    # At the peak rate, noise is up to two fifths of the loss; the schedule takes it away.
    trend, gain = trend_and_gain(schedule, epochs, curvature=6.0, noise=noise)
    assert not trend.falling
    assert gain < 0.05


def test_the_last_epochs_of_a_schedule_alone_would_mislead():
    losses = expected_losses(learning_rates("cosine", 40), 6.0, noise=4.0)
    assert losses[-16:-8].mean() > 1.1 * losses[-8:].mean()


@pytest.mark.parametrize(
    ("fall", "noise", "progress", "falling"),
    [
        *((0.051, 0.01, 2.0, True), (0.049, 0.01, 2.0, False), (0.051, 0.026, 2.0, False)),
        *((0.021, 0.01, 0.4, True), (0.019, 0.01, 0.4, False), (0.009, 0.001, 0.0, False)),
    ],
)
def test_a_fall_is_large_for_the_loss_or_for_the_progress_so_far(fall, noise, progress, falling):
    assert LossTrend(1.0, 1.0 - fall, fall, noise, progress, epoch=10, epochs=12).falling == falling


def test_noise_is_no_fall():
    rng = np.random.default_rng(0)
    found = [LossTrend.from_epochs(1 + 0.1 * rng.normal(size=20), np.ones(20)).falling for _ in range(500)]
    assert np.mean(found) < 0.06


def test_the_standard_error_is_that_of_independent_errors():
    rng = np.random.default_rng(0)
    trends = [
        LossTrend.from_epochs(np.linspace(3, 2, 50) + 0.1 * rng.normal(size=50), np.ones(50)) for _ in range(2000)
    ]
    assert np.mean([each.noise**2 for each in trends]) == pytest.approx(np.var([each.fall for each in trends]), rel=0.1)


def test_too_few_epochs_show_nothing():
    assert LossTrend.from_epochs(np.array([3.0, 2.0, 1.0]), np.ones(3)) is None
    assert LossTrend.from_epochs(np.linspace(3, 1, 6), np.array([1, 0.8, 0.6, 0.4, 0.2, 0])) is None
    assert LossTrend.from_epochs(np.linspace(3, -1, 6), np.ones(6)) is None
