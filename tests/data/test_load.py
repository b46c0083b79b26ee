from pathlib import Path

import numpy as np
import pytest
import torch
from image_files import write_tree

from classgap.data import DATASETS, load, names
from classgap.data.modifiers import Modifiers


def test_names_lists_every_data_set() -> None:
    wanted = """
        mnist1d digits two-moons features csv parquet text hf folder list cifar10 cifar100 mnist svhn flowers pets food
        cars aircraft imagenet inaturalist imagenet-lt inaturalist2018 rscd
    """
    assert set(wanted.split()) == set(names())


@pytest.mark.parametrize("name", DATASETS.names())
def test_own_options_do_not_shadow_general_ones(name: str) -> None:
    assert not DATASETS.entry(name).options().keys() & Modifiers.__dataclass_fields__.keys()


def test_modifiers_apply_in_order_to_the_training_split_only() -> None:
    plain, data = load("digits"), load("digits:label_noise=0.1:imbalance=10:fraction=0.5")
    # About 45 of each digit, N // 10 of them first, then int(N // 10 · 10^(−k/9)).
    half = load("digits:fraction=0.5")
    head = len(half.train) // 10
    tail = load("digits:fraction=0.5:imbalance=10")
    wanted = [min(int(half.train_counts[k]), int(head * 0.1 ** (k / 9))) for k in range(10)]
    assert tail.train_counts.tolist() == wanted
    assert torch.equal(data.train.index, tail.train.index)
    assert int((data.train.targets != tail.train.targets).sum()) == int(0.1 * sum(wanted) + 0.5)
    assert set(tail.train.index.tolist()) <= set(half.train.index.tolist()) <= set(plain.train.index.tolist())
    assert torch.equal(data.test.index, plain.test.index)
    assert torch.equal(data.test.targets, plain.test.targets)
    wrong = int(0.1 * sum(wanted) + 0.5)
    assert data.notes == (
        f"fraction=0.5: {len(half.train)} of {len(plain.train)} training samples.",
        f"imbalance=10: {max(wanted)} to {min(wanted)} training samples per class.",
        f"label_noise=0.1: {wrong} of {sum(wanted)} training labels are wrong.",
    )
    assert data.name == "digits:label_noise=0.1:imbalance=10:fraction=0.5"


def test_the_data_seed_is_an_option_and_an_argument() -> None:
    drawn = {
        text: load(text.removesuffix("!"), seed=3 if text.endswith("!") else 0).train.index.tolist()
        for text in ("two-moons:fraction=0.1", "two-moons:fraction=0.1!", "two-moons:fraction=0.1:data_seed=3")
    }
    first, argument, option = drawn.values()
    assert argument == option != first


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cifar1000", "did you mean 'cifar100'"),
        ("two-moons:fractoin=0.1", "did you mean 'fraction'"),
        ("digits:imbalance=0.5", "imbalance .* at least 1, got 0.5"),
        ("digits:imbalance=inf", "imbalance .* got inf"),
        ("digits:label_noise=1.5", "label_noise must be in"),
        ("digits:fraction=0", "fraction must be in"),
        ("digits:fraction=half", "fraction must be .*got 'half'"),
        ("folder", "folder:PATH"),
        ("digits:/tmp", "takes no argument"),
        ("n" * 300, "unknown dataset"),
        ("~nobody-here", "unknown dataset"),
        ("csv:~nobody-here/x.csv:target=a", "table not found: '~nobody-here/x.csv'"),
    ],
)
def test_invalid_texts_raise(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(text)


def test_paths_of_folders_and_feature_files_are_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_tree(tmp_path / "my photos" / "train", {"cat": 3, "dog": 3})
    write_tree(tmp_path / "my photos" / "test", {"cat": 1, "dog": 1}, seed=9)
    short, full = load("my photos:size=4:fraction=0.7"), load("folder:my photos:size=4:fraction=0.7")
    assert short.shape == full.shape == (3, 4, 4)
    assert torch.equal(short.train.inputs[torch.arange(4)], full.train.inputs[torch.arange(4)])
    assert short.name == "my photos:size=4:fraction=0.7"
    np.savez("x.npz", features=np.eye(10), targets=np.arange(10) % 2)
    assert torch.equal(load("x.npz").test.index, load("features:x.npz").test.index)
    write_tree(tmp_path / "digits" / "train", {"cat": 3})
    assert load("digits").num_classes == 10  # a name of a dataset comes first
    with pytest.raises(ValueError, match="my photo"):
        load("my photo")
