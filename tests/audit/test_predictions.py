"""Inputs that an audit accepts, and the errors for all others."""

import numpy as np
import pytest
import torch
from torch import nn

from classgap.audit import Predictions
from classgap.audit.io.labels import encode, infer_class_names
from classgap.audit.results import Notice

LOGITS = np.array([[2.0, 0.0, 1.0], [0.0, 1.0, 3.0], [0.0, 2.0, 1.0], [5.0, 1.0, 0.0]])
TARGETS = [0, 2, 2, 0]


@pytest.mark.parametrize(
    "scores",
    [LOGITS, LOGITS.tolist(), torch.from_numpy(LOGITS), torch.from_numpy(LOGITS).bfloat16(), LOGITS.astype(np.int32)],
    ids=["array", "list", "tensor", "bfloat16", "integers"],
)
@pytest.mark.parametrize("targets", [TARGETS, np.array(TARGETS, dtype=np.uint8), torch.tensor(TARGETS), [0.0, 2, 2, 0]])
def test_arrays_tensors_and_lists_are_the_same(scores, targets):
    got = Predictions.from_arrays(targets, logits=scores)
    assert got.predictions_N.tolist() == [0, 2, 1, 0]
    assert got.targets_N.tolist() == TARGETS
    assert got.class_names == ("0", "1", "2")


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("to", [np.asarray, torch.from_numpy], ids=["array", "tensor"])
def test_unsigned_numbers_are_numbers(kind, to):
    labels, order, counts = (to(np.array(values, dtype=kind)) for values in ([0, 2, 1], [5, 3, 4], [7, 8, 9]))
    got = Predictions.from_arrays(labels, predictions=labels, index=order, train_counts=counts)
    assert got.class_names == ("0", "1", "2")
    assert got.targets_N.tolist() == got.predictions_N.tolist() == [2, 1, 0]
    assert got.index_N.tolist() == [3, 4, 5]
    assert got.train_counts_K.tolist() == [7, 8, 9]
    assert got.targets_N.dtype == got.index_N.dtype == np.int64
    assert Predictions.from_arrays(labels, predictions=labels).class_names == ("0", "1", "2")  # as only the labels tell


@pytest.mark.parametrize("decimals", [2, 3])
def test_rounded_probabilities_are_rescaled_alike_however_they_are_passed(decimals):
    exact = torch.from_numpy(np.random.default_rng(0).normal(size=(300, 100))).softmax(dim=1)
    rounded = exact.round(decimals=decimals)
    off = (rounded.sum(dim=1) - 1).abs().max()
    assert 0.01 < off < 100 * 0.5 * 10**-decimals  # or nothing is tested
    targets = exact.argmax(dim=1)
    for name in ("probabilities", "logits"):
        got = Predictions.from_arrays(targets, **{name: rounded})
        torch.testing.assert_close(got.logits_NK.exp(), rounded / rounded.sum(dim=1, keepdim=True))
    rounded[7, 0] += 0.9
    with pytest.raises(ValueError, match=r"row 7 sums to 1\.\d+: pass raw scores as logits"):
        Predictions.from_arrays(targets, probabilities=rounded)


def test_probabilities_become_logits_with_the_same_softmax():
    probabilities = torch.from_numpy(LOGITS).softmax(dim=1)
    got = Predictions.from_arrays(TARGETS, probabilities=probabilities)
    torch.testing.assert_close(got.logits_NK.softmax(dim=1), probabilities)
    significant = Predictions.from_arrays([0], probabilities=[[1.0, 0.0]])
    assert bool(significant.logits_NK.isfinite().all())


def test_labels_as_names_with_and_without_a_list_of_classes():
    got = Predictions.from_arrays(["dog", "cat"], predictions=["dog", "ant"])
    assert got.class_names == ("ant", "cat", "dog")
    assert got.predictions_N.tolist() == [2, 0]
    given = Predictions.from_arrays(["dog", "cat"], predictions=[1, 1], class_names=["cat", "dog", "cow"])
    assert given.targets_N.tolist() == [1, 0]
    assert given.num_classes == 3


def test_a_name_may_look_like_a_number():
    assert encode("targets", ["1", "2"], ["1", "2"]).tolist() == [0, 1]
    assert encode("targets", ["1", "0"], ["cat", "dog"]).tolist() == [1, 0]
    assert infer_class_names(["b", "10"], ["9"]) == ("10", "9", "b")


def test_head_as_layer_pair_or_matrix():
    layer, features = nn.Linear(2, 3), np.zeros((4, 2))
    for head in (layer, (layer.weight, layer.bias), layer.weight.detach().numpy()):
        got = Predictions.from_arrays(TARGETS, logits=LOGITS, features=features, head=head)
        torch.testing.assert_close(got.weight_KD, layer.weight.detach())


def test_repeated_samples_are_dropped_and_the_rest_put_in_order():
    index = [7, 3, 7, 5]
    got = Predictions.from_arrays([0, 2, 0, 1], logits=LOGITS, features=np.arange(8.0).reshape(4, 2), index=index)
    assert got.index_N.tolist() == [3, 5, 7]
    assert got.targets_N.tolist() == [2, 1, 0]
    assert got.predictions_N.tolist() == [2, 0, 0]
    assert got.features_ND[:, 0].tolist() == [2, 6, 0]
    assert got.logits_NK[2].tolist() == LOGITS[0].tolist()
    assert got.notices == (Notice("duplicate-index", {"dropped": 1, "samples": 4}),)
    assert Predictions.from_arrays([0, 2, 0, 1], logits=LOGITS, index=[7, 3, 6, 5]).notices == ()


def test_one_position_with_two_targets_is_rejected():
    targets = np.arange(640) % 5
    with pytest.raises(ValueError, match=r"^index must be .* 0 occurs with .*omit index"):
        Predictions.from_arrays(
            targets, logits=np.eye(5)[targets], index=np.arange(640) % 32, class_names=list("abcde")
        )
    with pytest.raises(ValueError, match="7 occurs with targets '0' and '1'"):
        Predictions.from_arrays([1, 0, 2, 0], logits=LOGITS, index=[7, 3, 5, 7])


def test_training_predictions_give_counts_too():
    got = Predictions.from_arrays(TARGETS, logits=LOGITS, train_predictions=LOGITS, train_targets=TARGETS)
    assert got.train_counts_K.tolist() == [2, 0, 2]
    assert got.train_predictions_M.tolist() == [0, 2, 1, 0]


NAN = LOGITS.copy()
NAN[2, 1] = np.nan
BAD = {
    "nothing given": ({"targets": TARGETS}, "exactly one of logits"),
    "two given": ({"targets": TARGETS, "logits": LOGITS, "predictions": TARGETS}, "exactly one of logits"),
    "no targets": ({"targets": None, "logits": LOGITS}, "targets is required"),
    "lengths": ({"targets": [0, 1], "logits": LOGITS}, "logits and targets .* got 4 and 2"),
    "feature length": ({"targets": TARGETS, "logits": LOGITS, "features": np.zeros((3, 2))}, "features and targets"),
    "NaN": ({"targets": TARGETS, "logits": NAN}, "row 2 contains NaN"),
    "infinity": (
        {"targets": TARGETS, "logits": np.where(LOGITS == 5, np.inf, LOGITS)},
        "row 3 contains NaN or infinity",
    ),
    "label too high": ({"targets": [0, 1, 2, 3], "logits": LOGITS}, "from 0 to 2, got 3"),
    "label negative": ({"targets": [0, 1, -1, 0], "logits": LOGITS}, "got -1"),
    "label ignored": (
        {"targets": [0, -100, -1, 0], "logits": LOGITS},
        "got -100: .*ignore_index",
    ),
    "one logit": ({"targets": [0, 1.0], "logits": [[-1.0], [3.0]]}, r"two columns of scores, logits \(0, z\)"),
    "one probability": ({"targets": [0, 1], "probabilities": [[0.2], [0.9]]}, r"probabilities \(1 - p, p\)"),
    "one column of two names": (
        {"targets": ["no", "yes"], "logits": [[-1.0], [3.0]]},
        r"one column per class, got 1 column for 2 classes: .*column_stack\(\[0 \* z, z\]\)",
    ),
    "one column of two class names": (
        {"targets": [0, 1], "probabilities": [[0.2], [0.9]], "class_names": ["no", "yes"]},
        "got 1 column for 2 classes: .*both columns of predict_proba",
    ),
    "one column": ({"targets": [0, 2], "logits": [[1.0], [3.0]]}, "from 0 to 0, got 2: check the labels"),
    "label fraction": ({"targets": [0.5, 1, 1, 0], "logits": LOGITS}, "names, got 0.5 at row 0: pass whole numbers"),
    "unknown name": (
        {"targets": ["a", "b", "x", "a"], "logits": LOGITS, "class_names": list("abc")},
        "unknown label 'x'",
    ),
    "one-dimensional logits": ({"targets": TARGETS, "logits": [1.0, 2, 3, 4]}, "pass predicted labels as predictions="),
    "one-dimensional probabilities": ({"targets": [0, 1], "probabilities": [0.2, 0.9]}, r"two columns .* \(1 - p, p\)"),
    "text logits": ({"targets": TARGETS, "logits": [["a"]] * 4}, "logits must be a numeric array"),
    "ragged logits": ({"targets": [0, 1], "logits": [[1.0, 2.0], [1.0]]}, "logits must be a numeric array"),
    "two-dimensional targets": ({"targets": [[0, 1]], "logits": LOGITS}, "one label per sample"),
    "negative probability": ({"targets": [0], "probabilities": [[1.5, -0.5]]}, "^probabilities must"),
    "not probabilities": ({"targets": TARGETS, "probabilities": LOGITS}, "^probabilities must .*as logits"),
    "names twice": (
        {"targets": TARGETS, "logits": LOGITS, "class_names": ["a", "b", "a"]},
        "'a' appears more than once",
    ),
    "names missing": (
        {"targets": TARGETS, "logits": LOGITS, "class_names": ["a", "b"]},
        "3 names, one per class, got 2",
    ),
    "empty": ({"targets": [], "logits": np.zeros((0, 3))}, "targets is empty"),
    "empty labels": ({"targets": [], "predictions": []}, "targets is empty|class indices"),
    "counts": (
        {"targets": TARGETS, "logits": LOGITS, "train_counts": [1, 2]},
        "train_counts must be 3 non-negative numbers",
    ),
    "negative counts": ({"targets": TARGETS, "logits": LOGITS, "train_counts": [1, 2, -3]}, "got -3 for class '2'"),
    "unknown counts": (
        {"targets": TARGETS, "logits": LOGITS, "train_counts": [1, np.nan, 3], "class_names": list("abc")},
        "got nan for class 'b'",
    ),
    "white space": (
        {"targets": TARGETS, "logits": LOGITS, "class_names": ["a", "b", " a"]},
        "' a' and 'a' differ only in white space",
    ),
    "empty name": ({"targets": TARGETS, "logits": LOGITS, "class_names": ["a", " ", "b"]}, "got ' ' for class 1"),
    "labels with white space": ({"targets": ["a", "b"], "predictions": ["a ", "b"]}, "differ only in white space"),
    "empty label": ({"targets": ["a", ""], "predictions": ["a", "a"]}, "must not be empty"),
    "names and numbers": ({"targets": ["cat", "dog"], "predictions": [0, 1]}, "got '0' in one and 'cat' in the other"),
    "head": (
        {"targets": TARGETS, "logits": LOGITS, "features": np.zeros((4, 2)), "head": nn.Linear(3, 3)},
        "head must map 2",
    ),
    "head without weight": ({"targets": TARGETS, "logits": LOGITS, "head": nn.ReLU()}, "layer with a weight"),
    "training without targets": (
        {"targets": TARGETS, "logits": LOGITS, "train_predictions": [0]},
        "requires train_targets",
    ),
    "training lengths": (
        {"targets": TARGETS, "logits": LOGITS, "train_predictions": [0], "train_targets": [0, 1]},
        "same length, got 1 and 2",
    ),
    "index": ({"targets": TARGETS, "logits": LOGITS, "index": [0.5, 1, 2, 3]}, "index must be non-negative integers"),
    "index beyond int64": (
        {"targets": TARGETS, "logits": LOGITS, "index": np.array([0, 1, 2, 2**63], dtype=np.uint64)},
        "index must be integers .*got 9223372036854775808",
    ),
    "labels beyond int64": (
        {"targets": np.array([2**64 - 1], dtype=np.uint64), "predictions": [0]},
        "targets must be .*got 18446744073709551615",
    ),
}


@pytest.mark.parametrize(("given", "message"), BAD.values(), ids=BAD)
def test_invalid_inputs_are_rejected_in_one_sentence(given, message):
    with pytest.raises(ValueError, match=message) as caught:
        Predictions.from_arrays(**given)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")


def test_one_logit_equals_the_two_columns_of_the_message():
    z = torch.tensor([[-1.5], [0.3], [2.0]])
    got = Predictions.from_arrays([0, 1, 1], logits=torch.cat([torch.zeros_like(z), z], dim=1))
    torch.testing.assert_close(got.logits_NK.softmax(dim=1)[:, 1:], z.sigmoid())
    assert got.predictions_N.tolist() == [0, 1, 1]


@pytest.mark.parametrize("samples", [1, 5])
def test_reversed_arrays(samples):
    logits, targets = 3 + np.arange(2.0 * samples).reshape(samples, 2), np.arange(samples) % 2
    data = Predictions.from_arrays(targets[::-1], logits=logits[::-1], features=logits[::-1, ::-1])
    assert data.logits_NK.tolist() == logits[::-1].tolist()
    assert data.features_ND.tolist() == logits[::-1, ::-1].tolist()
    assert data.targets_N.tolist() == targets[::-1].tolist()


@pytest.mark.parametrize("name", ["features", "train_features", "head"])
def test_features_whose_squares_overflow(name):
    given = {"features": np.ones((2, 3)), "train_features": np.ones((2, 3)), "head": np.ones((2, 3))}
    given[name] = np.float32(1e30) * given[name]
    with pytest.raises(ValueError, match=rf"{name}.*1e\+15.*1e\+30"):
        Predictions.from_arrays([0, 1], logits=np.eye(2), train_targets=[0, 1], **given)
