"""Bad inputs of a fix give one clear line."""

import numpy as np
import pytest
import torch
from fix_cases import biased, biased_logits, softmax

from classgap.audit.io.predictions import Predictions
from classgap.remedies import fix
from classgap.remedies.checks import check_disjoint
from classgap.remedies.class_values import check_costs, check_priors
from classgap.remedies.duplicates import shared_samples
from classgap.remedies.rule import check_points

NAMES = ("a", "b", "c")


def test_scores_are_required():
    labels, logits = biased_logits(3, 10)
    bare = Predictions.from_arrays(labels, predictions=logits.argmax(axis=1), name="bare.csv")
    for arguments in ((bare,), (biased(3, 10), bare), ([biased(3, 10), bare],)):
        with pytest.raises(ValueError, match=r"bare\.csv has predicted labels"):
            fix(*arguments)


@pytest.mark.parametrize("given", [{"logits": [[0.0, 1.0]]}, None, [np.zeros((2, 2))]])
def test_arrays_need_predictions(given):
    with pytest.raises(ValueError, match=r"fit and test must be .* got an? .*Predictions\.from_arrays"):
        fix(given)
    with pytest.raises(ValueError, match="fit and test must be"):
        fix(biased(3, 10), [given])


def test_equal_files_name_their_first_rows():
    for other, pair in ((slice(None), (0, 0)), (slice(None, None, -1), (0, 29))):
        labels, logits = biased_logits(3, 10)
        same = Predictions.from_arrays(labels[other], logits=logits[other])
        assert shared_samples([biased(3, 10)], [same]).pair == pair


def test_one_class_is_not_enough():
    with pytest.raises(ValueError, match="1 class"):
        fix(Predictions.from_arrays([0, 0], logits=[[1.0], [2.0]]))
    with pytest.raises(ValueError, match="samples of 1 class"):
        fix(Predictions.from_arrays([1, 1], logits=[[1.0, 0.0], [2.0, 3.0]]))


def test_classes_must_agree():
    with pytest.raises(ValueError, match="3 and 4 classes"):
        fix(biased(3, 10), biased(4, 10))
    labels, logits = biased_logits(3, 10)
    first = Predictions.from_arrays(labels, logits=logits, class_names=["cat", "dog", "cow"], name="first")
    labels, logits = biased_logits(3, 10, seed=1)
    other = Predictions.from_arrays(labels, logits=logits, class_names=["cat", "cow", "dog"], name="other")
    with pytest.raises(ValueError, match="'dog' and 'cow' at index 1"):
        fix(first, other)


def linear_model(seed, columns=4, model=0):
    """Predictions of a linear classifier, with its features and head."""
    labels = np.random.default_rng(seed).permutation(np.arange(90) % 3)
    weight = np.random.default_rng([model, 9]).normal(size=(3, columns)).astype(np.float32)
    features = (weight[labels] + np.random.default_rng(seed).normal(size=(90, columns))).astype(np.float32)
    bias = np.arange(3, dtype=np.float32) + model
    named = f"model {model} of {seed}"
    return {"logits": features @ weight.T + bias, "features": features, "head": (weight, bias), "name": named}, labels


def test_test_files_of_another_model_are_refused():
    def read(seed, **changes):
        arrays, labels = linear_model(seed, changes.pop("columns", 4), changes.pop("model", 0))
        return Predictions.from_arrays(labels, **arrays | changes)

    mine = read(0)
    weight, bias = linear_model(1)[0]["head"]
    for given in (weight.astype(np.float16), torch.from_numpy(weight).bfloat16()):
        fix(mine, read(1, head=(given, bias)))
    fix(mine, read(1, model=1, features=None, head=None))
    cases = {
        "4 and 5 columns": read(1, columns=5),
        "4 and 6 columns": read(1, columns=6, head=None),
        "head weights differ by up to": read(1, model=1),
        "head biases differ by up to 1": read(1, head=(weight, bias + 1)),
    }
    for text, other in cases.items():
        with pytest.raises(ValueError, match=f"^model 0 of 0 and .* of different models: .*{text}"):
            fix(mine, other)
    with pytest.raises(ValueError, match="in the same order"):
        fix([mine, read(0, model=1)], [read(1, model=1), read(1)])


def test_a_model_is_passed_once():
    first, second = biased(3, 10), biased(3, 10, seed=1)
    with pytest.raises(ValueError, match="only once"):
        fix([first, first])
    with pytest.raises(ValueError, match="only once"):
        fix([first, first], [second, second])


@pytest.mark.parametrize(
    "stored",
    [lambda logits: {"logits": logits.astype(np.float16)}, lambda logits: {"probabilities": softmax(logits)}],
    ids=["half precision", "probabilities"],
)
def test_a_model_in_another_precision_is_the_same_model(stored):
    labels, logits = biased_logits(3, 10)
    other = biased(3, 10, seed=1)
    again = Predictions.from_arrays(labels, **stored(logits), name="again")
    with pytest.raises(ValueError, match="again have equal scores"):
        fix([Predictions.from_arrays(labels, logits=logits), again])
    with pytest.raises(ValueError, match="only once"):
        fix([biased(3, 10), biased(3, 10, bias=2.0)], [other, other])


def test_test_files_in_another_order_are_named():
    def models(seed):
        labels, good = biased_logits(3, 100, seed, bias=0.0)
        poor = good + np.random.default_rng(seed).normal(scale=3, size=good.shape)
        return [
            Predictions.from_arrays(labels, logits=each, name=name) for name, each in (("good", good), ("poor", poor))
        ]

    mine, theirs = models(0), models(1)
    (notice,) = fix(mine, theirs[::-1]).notices
    assert "good is more accurate than poor" in notice
    (notice,) = fix(mine[::-1], theirs).notices
    assert "good is more accurate than poor" in notice
    assert fix(mine, theirs).notices == fix(mine[::-1], theirs[::-1]).notices == ()


@pytest.mark.parametrize(
    "stored",
    [
        lambda logits: {"logits": logits + 3},
        lambda logits: {"probabilities": softmax(logits).astype(np.float16)},
        lambda logits: {"probabilities": softmax(logits).round(4)},
        lambda logits: {"logits": logits.astype(np.float16)},
    ],
    ids=["shifted logits", "half precision", "four decimals", "half logits"],
)
def test_the_same_samples_with_other_digits_are_no_test(stored):
    labels, logits = biased_logits(4, 100, separation=1.0)
    order = np.random.default_rng(0).permutation(len(labels))
    same = Predictions.from_arrays(labels[order], **stored(logits[order]))
    with pytest.raises(ValueError, match="proves nothing"):
        fix(Predictions.from_arrays(labels, probabilities=softmax(logits)), same)
    other_labels, other = biased_logits(4, 100, seed=1, separation=1.0)
    check_disjoint(
        [Predictions.from_arrays(labels, **stored(logits))], [Predictions.from_arrays(other_labels, **stored(other))]
    )


def test_models_must_have_the_same_samples():
    labels, logits = biased_logits(3, 10)
    first = Predictions.from_arrays(labels, logits=logits, name="first")
    with pytest.raises(ValueError, match="30 and 29 samples"):
        fix([first, Predictions.from_arrays(labels[1:], logits=logits[1:], name="second")])
    swapped = labels.copy()
    swapped[4] = (swapped[4] + 1) % 3
    with pytest.raises(ValueError, match="row 4"):
        fix([first, Predictions.from_arrays(swapped, logits=logits, name="second")])
    numbered = [
        Predictions.from_arrays(labels, logits=logits, index=np.arange(30) + shift, name=f"file {shift}")
        for shift in (0, 1)
    ]
    with pytest.raises(ValueError, match="index"):
        fix(numbered)
    with pytest.raises(ValueError, match="2 and 1 files"):
        fix([first, biased(3, 10)], biased(3, 10, seed=1))
    with pytest.raises(ValueError, match="at least one"):
        fix([])


def test_a_class_of_one_sample_is_named():
    labels, logits = biased_logits(4, 10)
    kept = (labels != 2) | (np.cumsum(labels == 2) == 1)
    with pytest.raises(ValueError, match="'2' has 1 sample"):
        fix(Predictions.from_arrays(labels[kept], logits=logits[kept]))
    kept &= (labels != 3) | (np.cumsum(labels == 3) == 1)
    with pytest.raises(ValueError, match="1 other class have 1 sample"):
        fix(Predictions.from_arrays(labels[kept], logits=logits[kept]))


def test_a_tested_class_needs_fitting_samples():
    labels, logits = biased_logits(4, 10)
    kept = labels != 2
    part = Predictions.from_arrays(labels[kept], logits=logits[kept], name="val")
    with pytest.raises(ValueError, match="'2' has samples in"):
        fix(part, biased(4, 10, seed=1))


def test_not_a_number_is_named_with_its_row():
    labels, logits = biased_logits(3, 10)
    for value in (np.nan, np.inf):
        logits[7, 1] = value
        with pytest.raises(ValueError, match="row 7"):
            Predictions.from_arrays(labels, logits=logits)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_shared_samples_are_found_in_any_order(dtype):
    labels, logits = biased_logits(5, 60)
    logits = logits.astype(dtype)
    fit, test = np.arange(200), np.arange(180, 300)[::-1]
    first, second = (Predictions.from_arrays(labels[rows], logits=logits[rows]) for rows in (fit, test))
    shared = shared_samples([first], [second])
    assert sorted(fit[shared.first_N]) == sorted(test[shared.second_M]) == list(range(180, 200))
    assert fit[shared.pair[0]] == test[shared.pair[1]]
    with pytest.raises(ValueError, match="20 samples"):
        fix(first, second)
    with pytest.raises(ValueError, match="200 samples"):
        fix(first, first)


@pytest.mark.parametrize("size", [50, 1000])
def test_one_shared_sample_is_found(size):
    labels, logits = biased_logits(5, 2 * size // 5)
    first, second = (
        Predictions.from_arrays(labels[rows], logits=logits[rows]) for rows in (slice(0, size + 1), slice(size, None))
    )
    shared = shared_samples([first], [second])
    assert (shared.first_N.tolist(), shared.second_M.tolist(), shared.pair) == ([size], [0], (size, 0))


def test_a_duplicate_in_the_data_is_left_out_of_the_fitting_samples():
    labels, logits = biased_logits(5, 400)
    first, second = (
        Predictions.from_arrays(labels[rows], logits=logits[rows]) for rows in (slice(0, 1001), slice(1000, None))
    )
    result = fix(first, second)
    assert result.n_fit == 1000
    assert any("1 fitting sample" in notice for notice in result.notices)
    shared = Predictions.from_arrays(labels[900:], logits=logits[900:])
    with pytest.raises(ValueError, match="101 samples"):
        fix(first, shared)


def test_equal_scores_with_other_labels_are_other_samples():
    labels, logits = biased_logits(5, 20)
    first = Predictions.from_arrays(labels, logits=logits)
    assert shared_samples([first], [Predictions.from_arrays((labels + 1) % 5, logits=logits)]).pair is None


@pytest.mark.parametrize("seed", range(5))
def test_equal_rows_is_explained_are_not_shared_samples(seed):
    """One-hot probabilities, two decimals, and half-precision logits of two classes."""
    parts = [biased_logits(5, 200, seed=2 * seed + i, separation=4.0) for i in (0, 1)]
    saturated = [(labels, softmax(np.float64(30 * logits)).astype(np.float32)) for labels, logits in parts]
    for pair in (
        [(labels, np.where(p < 1e-3, 0, p)) for labels, p in saturated],
        [(labels, softmax(logits).round(2)) for labels, logits in parts],
        [(labels, softmax(logits).round(3)) for labels, logits in parts],
    ):
        check_disjoint(*([Predictions.from_arrays(labels, logits=scores)] for labels, scores in pair))
    binary = [biased_logits(2, 1000, seed=100 + 2 * seed + i) for i in (0, 1)]
    check_disjoint(*([Predictions.from_arrays(y, logits=z.astype(np.float16))] for y, z in binary))


def test_shared_samples_are_found_among_saturated_rows():
    labels, logits = biased_logits(5, 200, separation=4.0)
    p = softmax(np.float64(8 * logits)).astype(np.float32)
    p = np.where(p < 1e-6, 0, p)
    assert 0.1 < np.mean(p.max(axis=1) == 1) < 0.9
    first, second = (Predictions.from_arrays(labels[rows], logits=p[rows]) for rows in (slice(600), slice(400, 1000)))
    shared = shared_samples([first], [second])
    undecided = 400 + np.flatnonzero(p[400:600].max(axis=1) < 0.9999)
    assert set(undecided) <= set(shared.first_N.tolist())
    assert shared.action == "refuse"
    with pytest.raises(ValueError, match="proves nothing"):
        fix(first, second)


def test_equal_files_of_many_samples_take_little_memory_and_time():
    labels, logits = biased_logits(3, 30_000)
    data = Predictions.from_arrays(labels, logits=logits)
    assert len(shared_samples([data], [data]).first_N) == 90_000


@pytest.mark.parametrize(
    ("settings", "fact"),
    [
        ({"goal": "best"}, "best"),
        ({"goal": "cost"}, "costs"),
        ({"max_easy_loss": -0.1}, "max_easy_loss"),
        ({"max_overall_loss": 100.5}, "100.5"),
        ({"max_overall_loss": float("nan")}, "max_overall_loss"),
        ({"confidence_level": 1.5}, "1.5"),
        ({"costs": np.ones((2, 3))}, r"\(3, 3\)"),
        ({"costs": np.full((3, 3), np.nan)}, "nan"),
        ({"priors": [1, 2]}, r"\(3,\)"),
        ({"priors": [1, 2, 0]}, "'2'"),
    ],
)
def test_bad_settings(settings, fact):
    with pytest.raises(ValueError, match=fact):
        fix(biased(3, 10), **settings)


def test_values_are_converted():
    assert check_points("x", 100) == 1
    assert check_costs(None, NAMES) is None
    assert check_priors(None, NAMES) is None
    np.testing.assert_allclose(check_priors([2, 1, 1], NAMES), [0.5, 0.25, 0.25])
    np.testing.assert_array_equal(check_costs(np.eye(3, dtype=int), NAMES), np.eye(3))
