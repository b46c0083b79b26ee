import math
import os
import subprocess
import sys
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from classgap.data import load
from classgap.data.dataset import Split
from classgap.data.modifiers import add_label_noise, long_tail_counts, make_long_tailed, subsample

LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=60)


def balanced(classes: int, each: int) -> Split:
    return Split.from_arrays(torch.zeros(classes * each, 1), torch.arange(classes).repeat_interleave(each))


def split_of(labels: list[int]) -> Split:
    return Split.from_arrays(torch.zeros(len(labels), 1), torch.tensor(labels))


@settings(deadline=None)
@given(LABELS, st.floats(0.01, 1.0), st.integers(0, 5))
def test_subsample_is_stratified(labels: list[int], fraction: float, seed: int) -> None:
    part = subsample(split_of(labels), fraction, seed, 5)
    wanted = {k: max(1, math.floor(fraction * total + 0.5)) for k, total in Counter(labels).items()}
    assert Counter(part.targets.tolist()) == wanted


def test_smaller_subsamples_are_nested_in_larger_ones() -> None:
    split = split_of([k for k in range(3) for _ in range(50)])
    small, large = (set(subsample(split, fraction, 0, 3).index.tolist()) for fraction in (0.1, 0.4))
    assert small < large


@pytest.mark.parametrize(
    ("classes", "each", "imbalance"), [(100, 500, 100), (10, 5000, 100), (10, 5000, 10), (7, 30, 50)]
)
def test_counts_match_the_published_loop(classes: int, each: int, imbalance: float) -> None:
    expected = []
    for k in range(classes):
        number = each * ((1 / imbalance) ** (k / (classes - 1.0)))
        expected.append(max(int(number), 1))
    split = make_long_tailed(balanced(classes, each), imbalance, 0, classes)
    assert split.class_counts(classes).tolist() == expected


def test_known_sizes() -> None:
    # Training images of CIFAR-10-LT and CIFAR-100-LT with imbalance factor 100 (Cao et al., 2019).
    assert int(long_tail_counts(5000, 100, 10).sum()) == 12406
    assert int(long_tail_counts(500, 100, 100).sum()) == 10847


def test_imbalanced_classes_keep_at_most_their_samples() -> None:
    labels = torch.tensor([0] * 10 + [1] * 70 + [2] * 40)
    # A third of 120 samples is 40: wanted are 40, int(40 / 2) and 10.
    assert make_long_tailed(Split.from_arrays(torch.zeros(120, 1), labels), 4, 0, 3).class_counts(3).tolist() == [
        10,
        20,
        10,
    ]


def test_one_class() -> None:
    assert make_long_tailed(balanced(1, 9), 10, 0, 1).class_counts(1).tolist() == [9]


@settings(deadline=None)
@given(st.integers(2, 6), st.integers(1, 30), st.floats(0, 1), st.integers(0, 9))
def test_an_exact_number_of_labels_changes(classes: int, each: int, fraction: float, seed: int) -> None:
    clean = balanced(classes, each)
    noisy = add_label_noise(clean, fraction, seed, classes)
    assert int((noisy.targets != clean.targets).sum()) == int(fraction * len(clean) + 0.5)
    assert noisy.index.tolist() == clean.index.tolist()
    assert noisy.targets.min() >= 0
    assert noisy.targets.max() < classes


def test_wrong_classes_are_uniform() -> None:
    clean = Split.from_arrays(torch.zeros(9000, 1), torch.full((9000,), 2))
    often = Counter(add_label_noise(clean, 1.0, 0, 4).targets.tolist())
    assert often.keys() == {0, 1, 3}
    assert all(abs(count - 3000) < 200 for count in often.values())  # deviation 45


def test_the_clean_split_is_not_modified() -> None:
    clean = balanced(3, 10)
    before = clean.targets.clone()
    add_label_noise(clean, 0.5, 0, 3)
    assert torch.equal(clean.targets, before)


def test_label_noise_needs_two_classes() -> None:
    with pytest.raises(ValueError, match="two classes"):
        add_label_noise(balanced(1, 4), 0.5, 0, 1)


def test_processes_agree() -> None:
    code = (
        "import torch; from classgap.data.dataset import Split;"
        "from classgap.data.modifiers import add_label_noise, make_long_tailed;"
        "from classgap.data.splits import hold_out;"
        "split = Split.from_arrays(torch.zeros(90, 1), torch.arange(90) % 3);"
        "part = add_label_noise(make_long_tailed(hold_out(split, 0.25, 3, 3)[0], 5, 3, 3), 0.2, 3, 3)"
    )
    other = {**os.environ, "PYTHONHASHSEED": "77"}
    show = "; print((part.index.tolist(), part.targets.tolist()))"
    printed = subprocess.run([sys.executable, "-c", code + show], env=other, capture_output=True, text=True, check=True)
    here: dict[str, Split] = {}
    exec(code, here)
    assert printed.stdout.strip() == str((here["part"].index.tolist(), here["part"].targets.tolist()))


def test_asymmetric_label_noise_takes_the_next_class() -> None:
    clean = balanced(4, 25)
    noisy = add_label_noise(clean, 0.4, 0, 4, symmetric=False)
    moved = noisy.targets != clean.targets
    assert int(moved.sum()) == 40
    assert (noisy.targets[moved] == (clean.targets[moved] + 1) % 4).all()
    assert (moved == (add_label_noise(clean, 0.4, 0, 4).targets != clean.targets)).all()  # the same samples


def test_unknown_label_noise_types_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"label_noise_type.*'pair'"):
        load("digits:label_noise=0.1:label_noise_type=pair")
    data = load("digits:label_noise=0.2:label_noise_type=asymmetric")
    assert data.notes[-1].startswith("label_noise=0.2:")
