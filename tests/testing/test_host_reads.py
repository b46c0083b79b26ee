import pytest
import torch

from classgap.testing.host_reads import count_host_reads

X = torch.tensor([1, 0, 2])

READS = {
    "item": lambda: X.sum().item(),
    "int": lambda: int(X[0]),
    "float": lambda: float(X[0]),
    "bool": lambda: bool((X > 0).any()),
    "tolist": lambda: X.tolist(),
    "numpy": lambda: X.numpy(),
    "cpu": lambda: X.cpu(),
    "nonzero": lambda: X.nonzero(),
    "where": lambda: torch.where(X > 0),
    "mask": lambda: X[X > 0],
    "masked write": lambda: X.clone().__setitem__(X > 1, X[:1]),
    "masked_select": lambda: X.masked_select(X > 0),
    "unique": lambda: torch.unique(X),
    "bincount": lambda: torch.bincount(X),
    "equal": lambda: torch.equal(X, X),
    "repeat_interleave": lambda: torch.repeat_interleave(X),
}
NO_READS = {
    "arithmetic": lambda: (X + 1).sum().clamp(min=0),
    "gather": lambda: X[X],
    "where": lambda: torch.where(X > 0, X, 0),
    "masked_fill": lambda: X.masked_fill(X > 0, 1),
    "known size": lambda: torch.repeat_interleave(X, output_size=3),
}


@pytest.mark.parametrize("name", READS)
def test_counts_one_read(name: str) -> None:
    with count_host_reads() as reads:
        READS[name]()
    assert reads.total() == 1, reads


@pytest.mark.parametrize("name", NO_READS)
def test_ignores_work_that_stays_on_the_device(name: str) -> None:
    with count_host_reads() as reads:
        NO_READS[name]()
    assert not reads
