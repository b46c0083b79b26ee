import pytest
import torch

from classgap.engine.optim import Schedule, milestone_updates


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


def test_schedule_of_the_elm_paper() -> None:
    # ELM App. A, CIFAR: warmup over 15 epochs, a tenth at epochs 96, 192 and 224 of 256.
    steps = 391
    schedule = Schedule("step", 256 * steps, 15 * steps, milestone_updates((96, 192, 224), 256 * steps, steps))
    at = {epoch: schedule.factor(epoch * steps) for epoch in (15, 95, 96, 192, 224, 255)}
    assert list(at.values()) == pytest.approx([1, 1, 0.1, 0.01, 0.001, 0.001])
