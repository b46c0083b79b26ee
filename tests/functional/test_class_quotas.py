import numpy as np
import pytest
import torch

from classgap.functional import error_densities


def by_the_printed_algorithm(counts: list[int], errors: list[float], density: float) -> list[float]:
    """Algorithm 1 of the paper, class by class; the excess is spent in passes over the unsaturated classes."""
    open_classes, excess, found = set(range(len(counts))), density * sum(counts), [0.0] * len(counts)
    while excess > 1e-9:
        total = sum(counts[k] * errors[k] for k in open_classes)
        budget = excess
        for k in sorted(open_classes):
            added = budget * errors[k] / total
            found[k] += added
            excess -= counts[k] * added
            if found[k] > 1:
                open_classes.discard(k)
                excess += counts[k] * (found[k] - 1)
                found[k] = 1.0
    return found


@pytest.mark.parametrize("density", [0.05, 0.3, 0.6, 0.95])
def test_against_the_printed_algorithm(density: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        counts, errors = rng.integers(1, 500, 12).tolist(), rng.uniform(0.01, 1, 12).tolist()
        found = error_densities(torch.tensor(counts), torch.tensor(errors), density)
        assert found.tolist() == pytest.approx(by_the_printed_algorithm(counts, errors, density), rel=1e-6)
        assert float((found * torch.tensor(counts)).sum()) == pytest.approx(density * sum(counts))


def test_quotas_are_proportional_to_errors_until_a_class_is_full() -> None:
    found = error_densities(torch.tensor([1000, 10, 1000]), torch.tensor([0.1, 0.9, 0.3]), 0.3)
    assert found[1] == 1
    assert float(found[2] / found[0]) == pytest.approx(3)


def test_classes_without_errors_take_only_the_rest() -> None:
    counts = torch.tensor([100, 100, 200])
    assert error_densities(counts, torch.tensor([0.0, 0.5, 0.0]), 0.2).tolist() == pytest.approx([0, 0.8, 0])
    assert error_densities(counts, torch.tensor([0.0, 0.5, 0.0]), 0.5).tolist() == pytest.approx([1 / 3, 1, 1 / 3])
    assert error_densities(counts, torch.zeros(3), 0.3).tolist() == pytest.approx([0.3] * 3)


def test_all_samples_and_empty_classes() -> None:
    errors = torch.tensor([0.1, 0.2, 0.9])
    assert error_densities(torch.tensor([7, 3, 5]), errors, 1.0).tolist() == pytest.approx([1, 1, 1])
    assert error_densities(torch.tensor([7, 3, 0]), errors, 0.5)[:2].tolist() == pytest.approx([5 / 13, 10 / 13])
