import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from valid_cases import labeled

from classgap.audit import Audit, AuditSettings
from classgap.audit.io.label_sets import LabelSets, ListedLabels, RaggedLabels, check_label_sets
from classgap.audit.io.readers import read_predictions

QUICK = AuditSettings(map="none", n_resamples=20)
NAMES = ["cat", "dog", "owl"]


def as_lists(sets: LabelSets) -> list[list[int]]:
    return [sets.classes[a:b].tolist() for a, b in zip(sets.offsets[:-1], sets.offsets[1:], strict=True)]


def check(values, targets=(0, 1, 2), index=None, names=NAMES, by_name=False):
    numbers = None if index is None else np.array(index)
    return check_label_sets(values, names, np.array(targets), numbers, by_name=by_name)


@pytest.mark.parametrize(
    "values",
    [
        [[0, 1], [], [2]],
        [["cat", "dog"], [], ["owl"]],
        [["cat", 1], (), {2}],
        [np.array([0, 1]), torch.empty(0, dtype=torch.long), torch.tensor([2])],
        RaggedLabels(np.array([0, 1, 2]), np.array([0, 2, 2, 3])),
        RaggedLabels(torch.tensor([0, 1, 2]), torch.tensor([0, 2, 2, 3])),
        RaggedLabels(np.array(["cat", "dog", "owl"]), np.array([0, 2, 2, 3])),
        ListedLabels([[0, 1], [], [2]]),
    ],
)
def test_all_forms_hold_the_same_sets(values):
    assert as_lists(check(values)[0]) == [[0, 1], [], [2]]


def test_integers_are_names_where_targets_are_names():
    names = ["3", "7", "9"]
    assert as_lists(check([[7], [9], [3]], names=names, by_name=True)[0]) == [[1], [2], [0]]
    assert as_lists(check([[1], [2], [0]], names=names)[0]) == [[1], [2], [0]]


@pytest.mark.parametrize(
    ("values", "facts"),
    [
        ([[0], [1]], ("2", "3 samples")),
        ([[0], [1], [3]], ("0 to 2", "3")),
        ([[0], [1], ["fox"]], ("'fox'",)),
        ([[0], [1], 2], ("valid_labels[2]", "brackets")),
        ([[0], "dog", [2]], ("valid_labels[1]", "'dog'")),
        ([[0], [1], [2.0]], ("valid_labels[2]", "2.0")),
        ([[0], [1], [True]], ("valid_labels[2]", "True")),
        ([[0], [1], [[2]]], ("valid_labels[2]", "[2]")),
        ([[], [], []], ("empty",)),
        ("cat", ("'cat'",)),
        ({1: [0]}, ("index",)),
        (RaggedLabels(np.array([0, 1]), np.array([0, 1, 3, 2])), ("valid_labels_offsets",)),
        (RaggedLabels(np.array([0, 1]), np.array([0, 1, 1, 1])), ("0 to 2",)),
        (RaggedLabels(np.array([0, 1]), np.array([0.0, 1, 1, 2])), ("float64",)),
        (RaggedLabels(np.array([[0, 1]]), np.array([0, 1, 1, 2])), ("(1, 2)",)),
        (RaggedLabels(np.array([0, 1]), np.array([0, 2])), ("1", "3 samples")),
    ],
)
def test_invalid_sets_are_named(values, facts):
    with pytest.raises(ValueError, match="valid_labels") as error:
        check(values)
    assert all(fact in str(error.value) for fact in facts), error.value


def test_a_mapping_is_matched_by_id():
    values = {"20": ["owl"], 10: ["cat", "dog"], 5: [], 99: ["cat"]}
    sets, _ = check(values, targets=[0, 0, 2], index=[10, 5, 20])
    assert as_lists(sets) == [[0, 1], [], [2]]
    with pytest.raises(ValueError, match="index 7"):
        check(values, targets=[0, 0, 2], index=[10, 7, 20])
    with pytest.raises(ValueError, match="'first'"):
        check({"first": [0]}, index=[0, 1, 2])


@pytest.mark.parametrize(
    ("index", "start"),
    [([0, 1, 2], 0), ([4, 5, 6], 1), ([2, 4, 6], 1), ([0, 3, 5], 0)],
)
def test_ids_at_an_end_fix_the_numbering(index, start):
    entries = [[0], [1], [2], [0], [1], [2]]
    targets = [entries[number - start][0] for number in index]
    sets, notices = check(ListedLabels(entries), targets=targets, index=index)
    assert as_lists(sets) == [[target] for target in targets]
    assert [notice.code for notice in notices] == ["valid-labels-from-one"] * start


@pytest.mark.parametrize("start", [0, 1])
def test_own_labels_decide_if_both_numberings_fit(start):
    rng = np.random.default_rng(0)
    entries = [[int(label)] for label in rng.integers(0, 3, 200)]
    index = np.arange(20, 120)
    targets = [entries[number - start][0] for number in index]
    sets, _ = check(ListedLabels(entries), targets=targets, index=index)
    assert as_lists(sets) == [[target] for target in targets]


def test_ids_beyond_the_list_are_an_error():
    with pytest.raises(ValueError, match="2 entries") as error:
        check(ListedLabels([[0], [1]]), index=[0, 1, 3])
    assert "up to 3" in str(error.value)


def test_labels_that_are_mostly_invalid_raise_a_notice():
    assert [notice.code for notice in check([[1], [2], [2]])[1]] == ["labels-mostly-invalid"]
    assert check([[0], [2], [2]])[1] == ()


def test_take_equals_a_loop():
    _, _, sets = labeled()
    flat = [label for entry in sets for label in entry]
    offsets = np.concatenate([[0], np.cumsum([len(entry) for entry in sets])])
    rows = np.random.default_rng(0).permutation(len(sets))[:50]
    taken = LabelSets(np.array(flat), offsets).take(rows)
    assert as_lists(taken) == [sets[row] for row in rows]


def test_duplicates_and_order_follow_the_index():
    audit = Audit.from_predictions(
        targets=[0, 1, 0, 1],
        predictions=[1, 1, 0, 0],
        index=[3, 1, 2, 1],
        valid_labels=[[0, 1], [1], [], [1]],
        settings=QUICK,
    )
    assert audit.overall.n_samples == 3
    assert (audit.valid.overall.n_samples, audit.valid.overall.left_out) == (2, 1)
    assert audit.valid.overall.accuracy == 1.0


def test_every_file_holds_the_same_sets(tmp_path: Path):
    targets, predictions, sets = labeled()
    flat = np.array([label for entry in sets for label in entry])
    offsets = np.concatenate([[0], np.cumsum([len(entry) for entry in sets])])
    arrays = {"targets": targets, "predictions": predictions}
    np.savez(tmp_path / "a.npz", **arrays, valid_labels=flat, valid_labels_offsets=offsets)
    save_file(arrays | {"valid_labels": flat, "valid_labels_offsets": offsets}, tmp_path / "b.safetensors")
    lines = ["target,prediction,valid_labels"]
    for target, prediction, entry in zip(targets, predictions, sets, strict=True):
        lines.append(f"{target},{prediction},{'|'.join(map(str, entry))}")
    (tmp_path / "c.csv").write_text("\n".join(lines))
    scores = ["target,0,1,2,3,4,5,valid_labels"]
    for target, prediction, entry in zip(targets, predictions, sets, strict=True):
        scores.append(
            f"{target},{','.join('2.5' if k == prediction else '-1' for k in range(6))},{'|'.join(map(str, entry))}"
        )
    (tmp_path / "d.csv").write_text("\n".join(scores))
    np.savez(tmp_path / "e.npz", **arrays)
    (tmp_path / "e.json").write_text(json.dumps(sets))
    order = np.random.default_rng(0).permutation(len(targets))
    np.savez(tmp_path / "f.npz", targets=targets[order], predictions=predictions[order], index=order + 1)
    np.savez(tmp_path / "g.npz", targets=targets[order], predictions=predictions[order], index=order + 500)
    (tmp_path / "g.json").write_text(json.dumps({str(i + 500): entry for i, entry in enumerate(sets)}))
    files = {"a.npz": None, "b.safetensors": None, "c.csv": None, "d.csv": None}
    files |= {"e.npz": "e.json", "f.npz": "e.json", "g.npz": "g.json"}
    expected = [sorted(entry) for entry in sets]
    for file, labels in files.items():
        data = read_predictions(tmp_path / file, valid_labels=labels and tmp_path / labels)
        assert [sorted(entry) for entry in as_lists(data.valid_labels)] == expected, file
        assert not any("valid_labels" in str(notice.values) for notice in data.notices), file


def test_half_a_ragged_array_is_an_error(tmp_path: Path):
    np.savez(tmp_path / "a.npz", targets=[0, 1], predictions=[0, 1], valid_labels=[0, 1])
    with pytest.raises(ValueError, match="valid_labels_offsets is missing"):
        read_predictions(tmp_path / "a.npz")
