"""What ``Audit.from_predictions`` accepts."""

import numpy as np
import pandas
import pytest
import torch
from audit_cases import QUICK

from classgap.audit import Audit
from classgap.audit.results import Notice

RNG = np.random.default_rng(0)
NAMES = ["cat", "dog", "cow"]
TARGETS = RNG.integers(0, 3, 40)
LOGITS = RNG.normal(size=(40, 3)) + np.eye(3)[TARGETS]
PROBABILITIES = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)


def audit(*args, **given):
    return Audit.from_predictions(*args, settings=QUICK, **given)


EXPECTED = audit(LOGITS, TARGETS, class_names=NAMES)


@pytest.mark.parametrize(
    ("logits", "targets"),
    [
        (LOGITS.tolist(), TARGETS.tolist()),
        (torch.from_numpy(LOGITS), torch.from_numpy(TARGETS)),
        ([torch.from_numpy(row) for row in LOGITS], TARGETS),
        (pandas.DataFrame(LOGITS), pandas.Series(TARGETS, index=range(100, 140))),
        (LOGITS, [NAMES[k] for k in TARGETS]),
        (LOGITS, pandas.Series([NAMES[k] for k in TARGETS], dtype="category")),
        (LOGITS, pandas.Series([NAMES[k] for k in TARGETS], dtype="string")),
    ],
    ids=["lists", "tensors", "list of tensors", "pandas", "names", "categories", "strings"],
)
def test_arrays_tensors_lists_and_frames(logits, targets):
    assert audit(logits, targets, class_names=NAMES) == EXPECTED
    assert audit(logits=logits, targets=targets, class_names=NAMES) == EXPECTED


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_columns_of_a_frame_name_the_classes(kind):
    values = LOGITS if kind == "logits" else PROBABILITIES
    targets = [NAMES[k] for k in TARGETS]
    got = audit(targets=targets, **{kind: pandas.DataFrame(values, columns=NAMES)})
    assert got.class_names == tuple(NAMES)
    assert got.samples == EXPECTED.samples
    named = audit(targets=TARGETS, class_names=list("abc"), **{kind: pandas.DataFrame(values, columns=NAMES)})
    assert named.class_names == ("a", "b", "c")


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
@pytest.mark.parametrize("columns", [[1, 2, 3], [2, 0, 1], ["7", "5", "3"]])
@pytest.mark.parametrize("convert", [list, torch.tensor, pandas.Series, lambda labels: np.array(labels, dtype=float)])
def test_integer_labels_are_matched_with_integer_columns(kind, columns, convert):
    frame = pandas.DataFrame(LOGITS if kind == "logits" else PROBABILITIES, columns=columns)
    labels = convert([int(columns[k]) for k in TARGETS])
    got = audit(targets=labels, train_targets=labels, train_predictions=labels, **{kind: frame})
    assert got.samples == EXPECTED.samples
    assert got.class_names == tuple(map(str, columns))
    assert [entry.train_count for entry in got.classes] == np.bincount(TARGETS).tolist()


def test_an_integer_label_without_a_column_is_rejected():
    with pytest.raises(ValueError, match="targets has the unknown label '0'"):
        audit(pandas.DataFrame(LOGITS, columns=[1, 2, 3]), TARGETS)


def test_a_frame_that_contains_the_targets_is_rejected():
    frame = pandas.DataFrame(LOGITS, columns=NAMES).assign(target=TARGETS)
    with pytest.raises(ValueError, match=r"column of targets, 'target': drop it"):
        audit(frame, frame["target"])
    assert audit(frame.drop(columns="target"), frame["target"]).samples == EXPECTED.samples


def test_class_names_by_index():
    assert audit(LOGITS, TARGETS, class_names={2: "cow", 0: "cat", 1: "dog"}) == EXPECTED
    counts = pandas.Series([9, 5, 2], index=["dog", "cow", "cat"])
    got = audit(LOGITS, TARGETS, class_names=dict(enumerate(NAMES)), train_counts=counts)
    assert [entry.train_count for entry in got.classes] == [2, 9, 5]


@pytest.mark.parametrize(
    ("names", "message"), [("abc", "string 'abc'"), ({1: "a", 2: "b", 3: "c"}, "0 to 2, got 1, 2, 3")]
)
def test_class_names_that_are_no_list_of_names_are_rejected(names, message):
    with pytest.raises(ValueError, match=f"class_names .*{message}"):
        audit(LOGITS, TARGETS, class_names=names)


@pytest.mark.parametrize(
    "labels",
    [TARGETS, TARGETS.tolist(), torch.from_numpy(TARGETS), [NAMES[k] for k in TARGETS], pandas.Series(TARGETS)],
)
def test_labels_in_the_place_of_logits_are_rejected(labels):
    with pytest.raises(ValueError, match="logits must be scores") as caught:
        audit(labels, TARGETS)
    assert "targets=..., predictions=..." in str(caught.value)
    assert audit(targets=TARGETS, predictions=labels, class_names=NAMES).overall.n_samples == 40


def test_probabilities_passed_as_logits_are_recognized():
    got = audit(PROBABILITIES, TARGETS, class_names=NAMES)
    expected = audit(probabilities=PROBABILITIES, targets=TARGETS, class_names=NAMES)
    assert Notice("logits-are-probabilities") in got.notices
    assert got.overall.calibration_error == pytest.approx(expected.overall.calibration_error)
    assert got.classes[0].margin == pytest.approx(expected.classes[0].margin)
    rounded = audit(PROBABILITIES.round(2), TARGETS)
    assert Notice("logits-are-probabilities") in rounded.notices
    assert rounded.classes[0].margin == pytest.approx(expected.classes[0].margin, abs=0.01)


@pytest.mark.parametrize(
    "logits", [LOGITS, 2 * PROBABILITIES, PROBABILITIES - 0.5, np.clip(LOGITS, 0, 1), np.ones((40, 1))]
)
def test_other_scores_are_logits(logits):
    notices = audit(logits, np.zeros(40, dtype=int)).notices
    assert Notice("logits-are-probabilities") not in notices


def test_one_sample_whose_row_does_not_sum_to_1_makes_logits():
    scores = PROBABILITIES.copy()
    scores[7, 0] += 0.02
    assert Notice("logits-are-probabilities") not in audit(scores / scores.max(), TARGETS).notices


def test_a_series_of_counts_is_sorted_by_class():
    labels = pandas.Series(["dog"] * 9 + ["cow"] * 5 + ["cat"] * 2)
    got = audit(LOGITS, TARGETS, class_names=NAMES, train_counts=labels.value_counts())
    assert [entry.train_count for entry in got.classes] == [2, 9, 5]
    by_index = audit(LOGITS, TARGETS, train_counts=pandas.Series([9, 5, 2], index=[1, 2, 0]))
    assert [entry.train_count for entry in by_index.classes] == [2, 9, 5]
    with pytest.raises(ValueError, match=r"train_counts .* index .*'ox'"):
        audit(LOGITS, TARGETS, class_names=NAMES, train_counts=pandas.Series([1, 2, 3], index=["ox", "dog", "cat"]))


def test_unknown_numbers_are_nan_in_pandas():
    frame = audit(LOGITS, TARGETS).to_pandas()
    assert frame["spread"].dtype == float
    assert frame["spread"].isna().all()
    assert frame["support"].dtype == int
