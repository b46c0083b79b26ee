import math

import pytest
import torch

from classgap.engine import TrainConfig
from classgap.engine.optim import Schedule, make_schedule, milestone_updates


def rates_of_torch(make, updates: int) -> list[float]:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = make(optimizer)
    rates = []
    for _ in range(updates):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


def test_cosine_matches_torch() -> None:
    expected = rates_of_torch(lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50), 50)
    assert [Schedule("cosine", 50).factor(t) for t in range(50)] == pytest.approx(expected)


def test_step_matches_torch() -> None:
    expected = rates_of_torch(lambda optimizer: torch.optim.lr_scheduler.MultiStepLR(optimizer, [20, 30], 0.2), 50)
    assert [Schedule("step", 50, 0, (20, 30), 0.2).factor(t) for t in range(50)] == pytest.approx(expected)


def test_warmup_is_linear_and_shortens_the_schedule() -> None:
    schedule = Schedule("cosine", total=30, warmup=10)
    assert [schedule.factor(t) for t in range(10)] == pytest.approx([(t + 1) / 10 for t in range(10)])
    assert [schedule.factor(10 + t) for t in range(20)] == [Schedule("cosine", 20).factor(t) for t in range(20)]
    assert Schedule("constant", 30, warmup=1).factor(29) == 1.0


@pytest.mark.parametrize(("start", "minimum"), [(1 / 3, 0.0), (1 / 3, 1e-5), (1.0, 0.5)])
def test_warmup_from_a_fraction_and_a_minimum_match_torch(start: float, minimum: float) -> None:
    def make(optimizer: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LRScheduler:
        warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=start, total_iters=10)
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40, eta_min=minimum)
        return torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, cosine], [10])

    schedule = Schedule("cosine", total=50, warmup=10, warmup_start=start, minimum=minimum)
    assert [schedule.factor(t) for t in range(50)] == pytest.approx(rates_of_torch(make, 50), rel=1e-9)
    assert schedule.factor(50) == pytest.approx(minimum)


def test_settings_reach_the_schedule() -> None:
    # The published MR² code: 20 warmup epochs from a third of 0.1, cosine to 1e-6.
    config = TrainConfig(data="digits", lr=0.1, warmup_epochs=20, warmup_start_factor=1 / 3, min_lr=1e-6)
    schedule = make_schedule(config, updates=3000, steps_per_epoch=10, epochs=300)
    rates = [0.1 * schedule.factor(t) for t in (0, 100, 200, 3000)]
    assert rates == pytest.approx([0.1 / 3, (0.1 / 3 + 0.1) / 2, 0.1, 1e-6])


def test_defaults_do_not_change_the_schedule_by_a_bit() -> None:
    schedule = make_schedule(
        TrainConfig(data="digits", lr=0.1, warmup_steps=7), updates=50, steps_per_epoch=10, epochs=5
    )
    before = [(t + 1) / 7 for t in range(7)] + [0.5 * (1 + math.cos(math.pi * (t / 43))) for t in range(43)]
    assert [schedule.factor(t) for t in range(50)] == before


def test_schedule_of_the_elm_paper() -> None:
    # ELM App. A, CIFAR: warmup over 15 epochs, a tenth at epochs 96, 192 and 224 of 256.
    steps = 391
    schedule = Schedule("step", 256 * steps, 15 * steps, milestone_updates((96, 192, 224), 256 * steps, steps))
    at = {epoch: schedule.factor(epoch * steps) for epoch in (15, 95, 96, 192, 224, 255)}
    assert list(at.values()) == pytest.approx([1, 1, 0.1, 0.01, 0.001, 0.001])
