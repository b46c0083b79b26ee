"""``by_sample``: which losses of a batch are those of its parts."""

import pytest
import torch
from test_conformance import CASES

# Forms of losses that compare or remember in their other forms, or in other batches.
CAREFUL = {
    *("center-trained", "feature-norm", "feature-norm-auto"),
    *("group-dro-one-class", "mutual-information-one-class"),
}


def in_parts(name: str) -> tuple[list[float], list[float]]:
    """The values of three whole batches, and of the same batches in two parts."""
    case = CASES[name]
    whole, parts = case.build(), case.build()
    batches = [case.inputs(seed) for seed in range(3)]
    halves = [[case.call(parts, batch.part(rows)) for rows in (slice(0, 6), slice(6, 16))] for batch in batches]
    values = [(0.375 * first + 0.625 * second).item() for first, second in halves]
    return [float(case.call(whole, batch)) for batch in batches], values


@pytest.mark.parametrize("name", CASES)
def test_the_loss_of_a_batch_is_that_of_its_parts_where_it_says_so(name: str) -> None:
    loss = CASES[name].build()
    whole, parts = in_parts(name)
    same = whole == pytest.approx(parts, rel=1e-4, abs=1e-5)
    assert same == (loss.by_sample or name in CAREFUL)
    assert isinstance(loss.by_sample, bool)
    assert torch.isfinite(torch.tensor(whole)).all()
