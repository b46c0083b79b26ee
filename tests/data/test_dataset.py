from pathlib import Path

import pytest
import torch
from image_files import write_tree
from torch.utils.data import DataLoader

from classgap.data import ClassBalancedSampler, load
from classgap.data.dataset import Split


def test_a_data_loader_yields_inputs_classes_and_rows() -> None:
    data = load("digits:imbalance=10")  # a subset of its source, so rows differ from the index
    inputs, targets, rows = (torch.cat(parts) for parts in zip(*DataLoader(data.train, batch_size=50), strict=True))
    assert torch.equal(inputs, data.train.inputs[torch.arange(len(data.train))])
    assert inputs.dtype == torch.uint8
    assert torch.equal(targets, data.train.targets)
    assert torch.equal(rows, torch.arange(len(data.train)))
    assert not torch.equal(rows, data.train.index)


def test_a_data_loader_follows_its_sampler() -> None:
    train = load("digits:imbalance=10").train
    sampler = ClassBalancedSampler(train.targets)
    inputs, targets, rows = next(iter(DataLoader(train, batch_size=16, sampler=sampler)))
    assert rows.tolist() == list(sampler)[:16]
    assert torch.equal(targets, train.targets[rows])
    assert torch.equal(inputs, train.inputs[rows])


def test_images_on_disk_are_read(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a": 4, "b": 4})
    eager, lazy = (load(f"folder:{tmp_path}:cache_gb={cache_gb}").train for cache_gb in (1, 0))
    for one, other in zip(DataLoader(eager, batch_size=3), DataLoader(lazy, batch_size=3), strict=True):
        assert all(torch.equal(*pair) for pair in zip(one, other, strict=True))


def test_indexing_works_like_a_list() -> None:
    split = Split.from_arrays(torch.arange(3.0)[:, None], torch.tensor([2, 0, 1]))
    assert [(float(value), target, row) for value, target, row in split] == [(0.0, 2, 0), (1.0, 0, 1), (2.0, 1, 2)]
    assert split[-1][1:] == (1, 2)
    assert split[torch.tensor(1)][1:] == (0, 1)
    with pytest.raises(IndexError):
        split[3]
    with pytest.raises(TypeError):
        split[0:2]


def test_repr_is_short() -> None:
    data = load("digits")
    assert str(data.train) == "Split(896 samples of 10 classes)"
    assert len(str(data)) < 400
