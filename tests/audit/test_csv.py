"""Which CSV columns are classes, and whether their scores are logits or probabilities."""

import numpy as np
import pytest
import torch

from classgap.audit import Audit, compare, read_predictions
from classgap.audit.results import Notice

RNG = np.random.default_rng(0)
TARGETS = np.arange(30) % 5
LOGITS = RNG.normal(size=(30, 5)) + 2 * np.eye(5)[TARGETS]
PROBABILITIES = torch.from_numpy(LOGITS).softmax(dim=1).numpy()
NAMES = list("abcde")


def write(path, scores, *, extra=None, form="{:.7g}", targets=None):
    targets = [NAMES[t] for t in TARGETS] if targets is None else targets
    lines = [",".join([*(extra or {}), "target", *NAMES[: scores.shape[1]]])]
    for i, row in enumerate(scores):
        lines.append(",".join([*(str(c[i]) for c in (extra or {}).values()), targets[i], *map(form.format, row)]))
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("values", [range(30), range(29, -1, -1), [2**40 + i for i in range(30)]])
@pytest.mark.parametrize("scores", [LOGITS, PROBABILITIES])
def test_a_column_that_numbers_the_samples_is_rejected(tmp_path, values, scores):
    with pytest.raises(ValueError, match=r"column 'id' .*rename it to index"):
        read_predictions(write(tmp_path / "p.csv", scores, extra={"id": list(values)}))
    numbers = [str(t) for t in TARGETS]
    with pytest.raises(ValueError, match="column 'id'"):
        read_predictions(write(tmp_path / "p.csv", scores, extra={"id": list(values)}, targets=numbers))
    assert read_predictions(write(tmp_path / "p.csv", scores, extra={"index": list(values)})).num_classes == 5


def test_integers_may_be_scores(tmp_path):
    once = np.stack([RNG.permutation(30) for _ in range(5)], axis=1)  # every column has distinct integers
    assert read_predictions(write(tmp_path / "p.csv", once)).num_classes == 5
    repeated = RNG.integers(-3, 4, size=(30, 5))
    got = read_predictions(write(tmp_path / "p.csv", repeated, targets=["a"] * 30))
    assert got.predictions_N.tolist() == repeated.argmax(axis=1).tolist()
    mixed = LOGITS.copy()
    mixed[:, 2] = np.arange(30)  # unusual, but the class occurs
    assert read_predictions(write(tmp_path / "p.csv", mixed)).num_classes == 5


@pytest.mark.parametrize(("scores", "kind"), [(LOGITS, "logits"), (PROBABILITIES, "probabilities")])
def test_the_audit_reports_how_scores_were_read(tmp_path, scores, kind):
    notices = Audit.from_file(write(tmp_path / "p.csv", scores)).notices
    assert Notice("columns-are-classes", {"classes": 5, "kind": kind}) in notices
    assert Notice("no-features") in notices


def test_two_decimals_are_probabilities(tmp_path):
    rounded = PROBABILITIES.round(2)
    assert np.abs(rounded.sum(axis=1) - 1).max() > 0.009  # or nothing is tested
    got = read_predictions(write(tmp_path / "p.csv", rounded, form="{:.2f}"))
    assert got.predictions_N.tolist() == rounded.argmax(axis=1).tolist()
    expected = rounded / rounded.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(got.logits_NK.softmax(dim=1).numpy(), expected, atol=1e-6)


def test_the_tolerance_grows_with_the_classes_for_two_decimals_only(tmp_path):
    almost = np.tile([0.2, 0.2, 0.2, 0.2, 0.18], (30, 1))  # 0.98 with 5 classes: within 5 · 0.005
    assert Audit.from_file(write(tmp_path / "p.csv", almost)).notices[0].values["kind"] == "probabilities"
    almost[3] = [0.2, 0.2, 0.2, 0.2, 0.17]
    with pytest.raises(ValueError, match=r"sample 4 sum to 0\.97 instead of 1"):
        read_predictions(write(tmp_path / "p.csv", almost))
    almost[3] = [0.2, 0.2, 0.2, 0.2, 0.1812]  # more decimals than two: rounding does not explain 0.98
    with pytest.raises(ValueError, match="instead of 1"):
        read_predictions(write(tmp_path / "p.csv", almost))


def test_a_confidence_among_probabilities_is_rejected(tmp_path):
    confidence = PROBABILITIES.max(axis=1)
    with pytest.raises(ValueError, match="exactly one column per class"):
        read_predictions(write(tmp_path / "p.csv", PROBABILITIES, extra={"confidence": confidence.tolist()}))


def test_scores_from_0_to_1_far_from_sums_of_1_are_logits(tmp_path):
    got = Audit.from_file(write(tmp_path / "p.csv", 0.6 + 0.4 * PROBABILITIES))
    assert got.notices[0].values["kind"] == "logits"


def test_targets_that_count_from_0_do_not_fit_columns_that_count_from_1(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("target,1,2,3\n0,2.5,0.5,-0.5\n1,0.1,3.5,0.5\n2,0.5,1.5,4.5\n")
    with pytest.raises(ValueError, match="unknown label '0'"):
        Audit.from_file(path)
    path.write_text(path.read_text().replace("\n0,", "\n3,"))
    assert Audit.from_file(path).samples.targets.tolist() == [2, 0, 1]


@pytest.mark.parametrize("header", ["target,prediction", "target,0,1", "target,logits", "target,logit:0,logit:1"])
@pytest.mark.parametrize("key", [None, "index"])
def test_string_ids_match_those_of_other_files_and_are_kept(tmp_path, header, key):
    ids = [f"msg{i}" for i in (2, 0, 1)] + ["7"]
    cells = {"target,prediction": "1", "target,logits": "[1.5 2.5]"}.get(header, "1.5,2.5")
    rows = [f"{name},{target},{cells}" for name, target in zip(ids, "0101", strict=True)]
    (tmp_path / "p.csv").write_text("\n".join([f"index,{header}", *rows]))
    np.savez(tmp_path / "p.npz", index=ids, targets=list("0101"), predictions=list("1111"))
    first, second = (read_predictions(tmp_path / name, key=key) for name in ("p.csv", "p.npz"))
    assert first.index_N.tolist() == second.index_N.tolist()
    assert first.ids == second.ids
    assert sorted(first.ids.values()) == ["msg0", "msg1", "msg2"]
    diff = compare(tmp_path / "p.csv", tmp_path / "p.npz", key=key)
    assert (diff.n_samples, diff.overall.change) == (4, 0.0)
