import os
import subprocess
import sys
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from classgap.data.corruption import label_noise, long_tail, long_tail_counts
from classgap.data.dataset import Split


def balanced(classes: int, each: int) -> Split:
    return Split.from_arrays(torch.zeros(classes * each, 1), torch.arange(classes).repeat_interleave(each))


@pytest.mark.parametrize(("classes", "each", "ratio"), [(100, 500, 100), (10, 5000, 100), (10, 5000, 10), (7, 30, 50)])
def test_counts_are_those_of_the_published_loop(classes: int, each: int, ratio: float) -> None:
    expected = []
    for k in range(classes):
        number = each * ((1 / ratio) ** (k / (classes - 1.0)))
        expected.append(max(int(number), 1))
    split = long_tail(balanced(classes, each), ratio, 0, classes)
    assert split.counts(classes).tolist() == expected


def test_known_sizes() -> None:
    # CIFAR-10-LT and CIFAR-100-LT with ratio 100 have 12,406 and 10,847 training images (Cao et al. 2019, and since).
    assert int(long_tail_counts(5000, 100, 10).sum()) == 12406
    assert int(long_tail_counts(500, 100, 100).sum()) == 10847


def test_imbalanced_data_keep_what_they_have() -> None:
    labels = torch.tensor([0] * 10 + [1] * 70 + [2] * 40)
    # A third of 120 samples is 40: wanted are 40, int(40 / 2) and 10.
    assert long_tail(Split.from_arrays(torch.zeros(120, 1), labels), 4, 0, 3).counts(3).tolist() == [10, 20, 10]


def test_one_class() -> None:
    assert long_tail(balanced(1, 9), 10, 0, 1).counts(1).tolist() == [9]


@settings(deadline=None)
@given(st.integers(2, 6), st.integers(1, 30), st.floats(0, 1), st.integers(0, 9))
def test_exactly_so_many_labels_change(classes: int, each: int, share: float, seed: int) -> None:
    clean = balanced(classes, each)
    noisy = label_noise(clean, share, seed, classes)
    assert int((noisy.targets != clean.targets).sum()) == int(share * len(clean) + 0.5)
    assert noisy.index.tolist() == clean.index.tolist()
    assert noisy.targets.min() >= 0
    assert noisy.targets.max() < classes


def test_wrong_classes_are_uniform() -> None:
    clean = Split.from_arrays(torch.zeros(9000, 1), torch.full((9000,), 2))
    often = Counter(label_noise(clean, 1.0, 0, 4).targets.tolist())
    assert often.keys() == {0, 1, 3}
    assert all(abs(count - 3000) < 200 for count in often.values())  # deviation 45


def test_the_clean_split_stays_clean() -> None:
    clean = balanced(3, 10)
    before = clean.targets.clone()
    label_noise(clean, 0.5, 0, 3)
    assert torch.equal(clean.targets, before)


def test_one_class_has_no_wrong_labels() -> None:
    with pytest.raises(ValueError, match="two classes"):
        label_noise(balanced(1, 4), 0.5, 0, 1)


def test_processes_agree() -> None:
    code = (
        "import torch; from classgap.data.dataset import Split;"
        "from classgap.data.corruption import label_noise, long_tail; from classgap.data.splits import hold_out;"
        "split = Split.from_arrays(torch.zeros(90, 1), torch.arange(90) % 3);"
        "part = label_noise(long_tail(hold_out(split, 0.25, 3, 3)[0], 5, 3, 3), 0.2, 3, 3)"
    )
    other = {**os.environ, "PYTHONHASHSEED": "77"}
    told = "; print((part.index.tolist(), part.targets.tolist()))"
    printed = subprocess.run([sys.executable, "-c", code + told], env=other, capture_output=True, text=True, check=True)
    here: dict[str, Split] = {}
    exec(code, here)
    assert printed.stdout.strip() == str((here["part"].index.tolist(), here["part"].targets.tolist()))
