"""Samples that are shared in another precision are found, and legal files are not refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from fix_cases import biased_logits, softmax

from classgap.audit.io.predictions import Predictions
from classgap.remedies import fix
from classgap.remedies.checks import check_disjoint, check_training_rows
from classgap.remedies.duplicates import count_near_copies, rows_in, shared_samples


def votes(samples: int, seed: int, voters: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Labels and log-fractions of votes for three classes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=samples)
    p = rng.dirichlet(np.ones(3), samples) * 0.5 + np.eye(3)[labels] * 0.5
    return labels, np.log(np.array([rng.multinomial(voters, each) for each in p]) / voters + 1e-6)


def drawn(samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and log-probabilities of three classes that are often undecided."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=samples)
    return labels, rng.normal(scale=0.7, size=(samples, 3)) + np.eye(3)[labels]


@pytest.mark.parametrize("source", [votes, drawn])
@pytest.mark.parametrize(("fit", "test"), [(300, 100_000), (20_000, 20_000), (100_000, 300)])
def test_independent_samples_are_no_near_copies(source, fit, test):
    first, second = source(fit, 0), source(test, 1)
    assert count_near_copies(torch.tensor(first[1]), first[0], torch.tensor(second[1]), second[0]) == 0


@pytest.mark.parametrize(("size", "others"), [(300, 0), (300, 3_000), (2_000, 2_000)])
def test_near_copies_among_other_samples_are_counted(size, others):
    labels, logits = drawn(size + others, 0)
    order = np.random.default_rng(2).permutation(len(labels))
    rounded = torch.tensor(softmax(logits[order])).half().float().log()
    found = count_near_copies(torch.tensor(logits[:size]), labels[:size], rounded, labels[order])
    undecided = int((np.sort(softmax(logits[:size]))[:, 0] > 0.02).sum())
    assert 0.98 * undecided <= found <= size


def test_one_exact_duplicate_does_not_hide_near_copies():
    labels, logits = biased_logits(4, 100, separation=1.0)
    p = softmax(logits)
    stored = p.astype(np.float16).astype(np.float64)
    stored[0] = p[0]
    with pytest.raises(ValueError, match="almost the same scores"):
        check_disjoint(
            [Predictions.from_arrays(labels, logits=np.log(p).astype(np.float32))],
            [Predictions.from_arrays(labels, logits=np.log(stored).astype(np.float32))],
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("repeats", [1, 3])
def test_training_rows_are_found_in_any_precision(dtype, repeats):
    generator = torch.Generator().manual_seed(0)
    train = torch.randn(400, 16, generator=generator).relu()
    rows = torch.randperm(400, generator=generator)[:50]
    features = torch.cat([torch.randn(50, 16, generator=generator).relu(), train[rows].to(dtype).float()])
    found, trained = rows_in(features, train.repeat(repeats, 1))
    assert found.tolist() == list(range(50, 100))
    assert sorted(set((trained % 400).tolist())) == sorted(rows.tolist())
    found, _ = rows_in(features, train.to(dtype).repeat(repeats, 1))
    assert found.tolist() == list(range(50, 100))


@pytest.mark.parametrize(
    "draw",
    [
        lambda n, seed: np.eye(32)[np.random.default_rng(seed).integers(32, size=n)],
        lambda n, seed: np.random.default_rng(seed).integers(2, size=(n, 12)),
        lambda n, seed: np.random.default_rng(seed).normal(size=(n, 1)).astype(np.float16),
        lambda n, seed: np.random.default_rng(seed).normal(size=(n, 8)) * (np.arange(n) % 20 > 0)[:, None],
    ],
    ids=["one-hot", "binary", "one column of half precision", "rows of zeros"],
)
def test_coarse_features_of_other_samples_are_no_training_rows(draw):
    features, train = (torch.tensor(np.asarray(draw(n, seed), dtype=np.float32)) for n, seed in ((300, 0), (5000, 1)))
    assert [len(each) for each in rows_in(features, train)] == [0, 0]


def with_duplicates(samples: int, share: float, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores of a dataset in which a share of the samples occurs twice."""
    rng = np.random.default_rng(seed)
    labels, scores = rng.integers(classes, size=samples), rng.normal(size=(samples, classes)).astype(np.float32)
    copied = rng.permutation(samples)[: 2 * int(share * samples / 2)].reshape(2, -1)
    labels[copied[1]], scores[copied[1]] = labels[copied[0]], scores[copied[0]]
    return labels, scores


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
@pytest.mark.parametrize(("samples", "fitted"), [(6_000, 300), (6_000, 1_000), (150, 50)])
def test_random_splits_of_data_with_duplicates_are_legal(share, samples, fitted):
    for seed in range(20):
        labels, scores = with_duplicates(samples, share, 4, seed)
        parts = np.split(np.random.default_rng(seed).permutation(samples), [fitted])
        check_disjoint(*([Predictions.from_arrays(labels[rows], logits=scores[rows])] for rows in parts))


def test_some_shared_samples_of_small_files_are_left_out():
    labels, scores = with_duplicates(195, 0.0, 9, seed=0)
    first, second = (Predictions.from_arrays(labels[rows], logits=scores[rows]) for rows in (slice(90), slice(85, 195)))
    rows, (notice,) = check_disjoint([first], [second])
    assert rows.tolist() == list(range(85, 90))
    assert notice.startswith("5 fitting samples that are also test samples")


@pytest.mark.parametrize("share", [0.0, 0.02, 0.05])
@pytest.mark.parametrize("classes", [2, 4])
def test_a_file_that_is_part_of_a_large_one_with_duplicates_is_refused(share, classes):
    labels, scores = with_duplicates(50_000, share, classes, seed=0)
    part, whole = (Predictions.from_arrays(labels[:size], logits=scores[:size]) for size in (1_000, 50_000))
    with pytest.raises(ValueError, match=r"\d+ samples of .* first row 0 and row 0"):
        check_disjoint([part], [whole])


def test_coarse_scores_of_one_model_do_not_hide_what_another_shows():
    labels, logits = biased_logits(4, 200)
    coarse = np.eye(4)[logits.argmax(axis=1)]
    halves = [
        [Predictions.from_arrays(labels[rows], probabilities=coarse[rows]),
         Predictions.from_arrays(labels[rows], logits=logits[rows])]
        for rows in (slice(600), slice(100, None))
    ]  # fmt: skip
    for models in (halves, [each[::-1] for each in halves]):
        with pytest.raises(ValueError, match="500 samples"):
            check_disjoint(*models)


def test_repeated_rows_do_not_hide_a_leak():
    """Clusters of equal rows have many pairs, within files and between them."""
    labels, scores = with_duplicates(4_000, 0.0, 6, seed=0)
    for size in (3, 6, 10, 40):
        start = 10 * size
        scores[start : start + 10 * size] = np.repeat(scores[start : start + 10], size, axis=0)
        labels[start : start + 10 * size] = np.repeat(labels[start : start + 10], size)
    order = np.random.default_rng(0).permutation(4_000)
    halves = order[:2_000], order[2_000:]
    check_disjoint(*([Predictions.from_arrays(labels[rows], logits=scores[rows])] for rows in halves))
    leaked = halves[0], np.concatenate([halves[1], halves[0][:100]])
    with pytest.raises(ValueError, match="proves nothing"):
        check_disjoint(*([Predictions.from_arrays(labels[rows], logits=scores[rows])] for rows in leaked))


def test_a_class_that_loses_its_samples_is_named_with_the_reason():
    labels, logits = biased_logits(3, 100)
    keep = np.r_[np.flatnonzero(labels < 2), np.flatnonzero(labels == 2)[:2]]
    fit = Predictions.from_arrays(labels[keep], logits=logits[keep], name="val")
    others, other = biased_logits(3, 100, seed=1)
    test = Predictions.from_arrays(np.r_[others, 2], logits=np.concatenate([other, logits[keep][-1:]]))
    with pytest.raises(ValueError, match=r"val without its 1 samples? .* class '2' has 1 sample"):
        fix(fit, test)


@pytest.mark.parametrize("classes", [2, 5])
def test_perfect_one_hot_files_are_no_copies(classes):
    labels = np.repeat(np.arange(classes), 20)
    first, second = (Predictions.from_arrays(labels, probabilities=np.eye(classes)[labels]) for _ in range(2))
    assert shared_samples([first], [second]).pair is None


def test_shared_training_rows_are_left_out_with_a_notice():
    generator = torch.Generator().manual_seed(0)
    train = torch.randn(400, 8, generator=generator)
    features = torch.cat([torch.randn(70, 8, generator=generator), train[:30]])
    labels, logits = biased_logits(4, 25)
    data = Predictions.from_arrays(
        labels, logits=logits, features=features, train_features=train, train_targets=np.arange(400) % 4
    )
    kept, (notice,) = check_training_rows(data)
    assert kept.tolist() == list(range(30, 400))
    assert notice.startswith("30 training samples")
    with pytest.raises(ValueError, match="all 100 rows of train_features"):
        check_training_rows(replace(data, train_features_MD=features, train_targets_M=np.arange(100) % 4))


@pytest.mark.parametrize("seed", range(5))
def test_training_rows_are_found_beside_rows_of_zeros(seed):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(1_000, 16, generator=generator).relu()
    features[:400] = 0
    found, _ = rows_in(features, torch.cat([features, torch.randn(4_000, 16, generator=generator).relu()]))
    assert found.tolist() == list(range(400, 1_000))


def test_features_of_another_width_are_refused():
    labels, logits = biased_logits(2, 10)
    train = {"train_features": np.ones((4, 3)), "train_targets": [0, 1, 0, 1]}
    fit = Predictions.from_arrays(labels, logits=logits, features=np.random.rand(20, 3), name="val.npz", **train)
    test = Predictions.from_arrays(labels, logits=logits, features=np.random.rand(20, 5), name="test.npz")
    with pytest.raises(ValueError, match=r"features of test\.npz have 5 columns, .* val\.npz have 3"):
        check_training_rows(fit, test)
