import torch

from classgap.functional import effective_number_weights


def test_worked_example() -> None:
    weights = effective_number_weights(torch.tensor([100.0, 10.0], dtype=torch.float64), 0.9999)
    torch.testing.assert_close(weights, torch.tensor([0.182563, 1.817437], dtype=torch.float64), rtol=0, atol=1e-6)


def test_against_the_printed_formula() -> None:
    counts, beta = [5000, 700, 30, 1], 0.999
    raw = [(1 - beta) / (1 - beta**n) for n in counts]
    expected = torch.tensor([w * 4 / sum(raw) for w in raw])
    torch.testing.assert_close(effective_number_weights(torch.tensor(counts).float(), beta), expected)


def test_weights_are_equal_for_beta_0_and_inverse_counts_near_1() -> None:
    counts = torch.tensor([8.0, 2.0])
    assert effective_number_weights(counts, 0.0).tolist() == [1.0, 1.0]
    nearly = effective_number_weights(counts.double(), 1 - 1e-12)
    torch.testing.assert_close(nearly, torch.tensor([0.4, 1.6], dtype=torch.float64), rtol=1e-4, atol=0)
