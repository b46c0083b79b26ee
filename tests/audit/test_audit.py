"""Whole audits: what they hold, and that they survive being saved."""

import json

import numpy as np
import pytest
import torch
from audit_cases import QUICK, audit_of, blobs
from sklearn import metrics

from classgap.audit import Audit, AuditSettings
from classgap.audit.results import Notice
from classgap.report.summary import gap_is_significant


@pytest.fixture(scope="module")
def full():
    targets, features, weight, bias = blobs([1.5, 2, 2.5, 3, 3.5, 4, 4.5], each=60)
    train = np.repeat(np.arange(7), 30)
    return audit_of(
        targets,
        features,
        weight,
        bias,
        settings=AuditSettings(n_resamples=200, map_points=60),
        train_counts=[500, 400, 90, 80, 70, 10, 5],
        train_targets=train,
        train_predictions=train,
        groups={"odd ones": [1, 3, 5]},
    )


def test_json_has_the_documented_names(full, tmp_path):
    full.save(tmp_path / "audit.json")
    data = json.loads((tmp_path / "audit.json").read_text())
    assert data["schema"] == 3
    assert len({name.lower() for name in data}) == len(data)
    assert data["overall"]["accuracy"] == full.overall.accuracy
    assert data["overall"]["balanced_accuracy"] == full.overall.balanced_accuracy
    for name in ("easy", "medium", "hard", "head", "torso", "tail", "odd ones"):
        assert 0 <= data["groups"][name]["accuracy"] <= 1
    assert data["gap"]["easy_hard"] == full.gap.easy_hard
    assert data["gap"]["worst_class"] == full.gap.worst_class
    first = data["classes"][0]
    assert (first["name"], first["status"], first["support"]) == ("class 0", "ok", 60)
    assert first["interval"] == list(full.classes[0].interval)


def test_round_trip_and_nothing_left_behind(full, tmp_path):
    full.save(tmp_path / "audit.json")
    assert Audit.load(tmp_path / "audit.json") == full
    assert [file.name for file in tmp_path.iterdir()] == ["audit.json"]


def test_it_is_shown_in_one_line(full):
    hits = [(entry.accuracy, entry.support) for entry in full.classes]
    accuracy = sum(rate * size for rate, size in hits) / 420
    hard = sum(sorted(rate for rate, _ in hits)[:2]) / 2  # of seven classes: 2, 3 and 2
    assert repr(full) == f"<Audit 'audit': 7 classes, 420 samples, accuracy {accuracy:.3f}, hard third {hard:.3f}>"
    single = Audit.from_predictions(predictions=[0, 0], targets=[0, 0], name="a\nb", settings=QUICK)
    assert repr(single).startswith("<Audit 'a\\nb': 1 classes, 2 samples, accuracy 1.000")


def test_unknown_keys_are_rejected(full):
    for where in ((), ("overall",), ("classes", 3), ("groups", "hard"), ("settings",), ("samples",)):
        data = full.to_dict()
        place = data
        for step in where:
            place = place[step]
        place["extra"] = 1
        with pytest.raises(ValueError, match=r"extra|exactly the keys"):
            Audit.from_dict(data)


def test_failed_save_keeps_the_old_file(full, tmp_path, monkeypatch):
    full.save(tmp_path / "audit.json")
    content = (tmp_path / "audit.json").read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        full.save(tmp_path / "audit.json")
    assert (tmp_path / "audit.json").read_bytes() == content
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: "{", "not a valid JSON file"),
        (lambda data: "", "not a valid JSON file"),
        (lambda data: "[]", "schema is missing"),
        (lambda data: json.dumps(data | {"schema": 99}), "got 99"),
        (lambda data: json.dumps({key: value for key, value in data.items() if key != "gap"}), "gap is missing"),
        (lambda data: json.dumps(data | {"rank_by": 3}), "rank_by must be a valid string, got 3"),
        (lambda data: json.dumps(data | {"settings": {"seed": -1}}), "seed must be at least 0"),
        (lambda data: json.dumps(data | {"samples": {}}), "samples must have exactly the keys"),
    ],
)
def test_damaged_files_are_rejected(full, tmp_path, change, message):
    file = tmp_path / "audit.json"
    file.write_text(change(full.to_dict()))
    with pytest.raises(ValueError, match=message) as caught:
        Audit.load(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file_is_rejected(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        Audit.load(tmp_path / "none.json")


def test_figures_fit_together(full):
    labels = full.samples
    assert full.overall.accuracy == pytest.approx(metrics.accuracy_score(labels.targets, labels.predictions))
    assert full.overall.top_k[1] == full.overall.accuracy
    hard = full.groups["hard"]
    members = [entry for entry in full.classes if entry.name in hard.members]
    assert hard.accuracy == pytest.approx(np.mean([entry.accuracy for entry in members]))
    assert hard.min == full.gap.worst_class
    assert hard.margin == pytest.approx(np.mean([entry.margin for entry in members]))
    assert hard.spread == pytest.approx(np.mean([entry.spread for entry in members]))
    assert {entry.group for entry in members} == {"hard"}
    assert full.classes[5].groups == ("hard", "tail", "odd ones")
    assert full.classes[0].train_accuracy == 1
    assert full.features.spread_accuracy.rho < -0.8  # wider classes do worse, as they were made to
    assert full.gap.easy_hard == pytest.approx(full.groups["easy"].accuracy - hard.accuracy)
    assert set(full.map.classes) <= set(full.class_names)


def test_features_summary_against_formulas():
    targets, features, weight, bias = blobs([1.0, 2.0, 3.0], each=50)
    audit = audit_of(targets, features, weight, bias)
    means = np.stack([features[targets == k].mean(axis=0) for k in range(3)])
    spreads = np.array([features[targets == k].var(axis=0, ddof=1).sum() for k in range(3)])
    between = ((means - means.mean(axis=0)) ** 2).sum(axis=1)
    lengths = np.sqrt(between)
    assert audit.features.within_between == pytest.approx(spreads.mean() / between.mean())
    assert audit.features.mean_spread_to_norm == pytest.approx(
        (np.sqrt(spreads) / np.linalg.norm(means, axis=1)).mean()
    )
    assert audit.features.mean_norm_variation == pytest.approx(lengths.std() / lengths.mean())
    assert audit.features.angle == pytest.approx(90)
    assert audit.features.weight_norm_variation == pytest.approx(0, abs=1e-7)


def test_unseen_class_is_nowhere_but_in_the_list():
    audit = Audit.from_predictions([[1.0, 0, 0], [0, 1, 0], [0, 0, 1.0]], [0, 1, 1], settings=QUICK)
    unseen = audit.classes[2]
    assert (unseen.status, unseen.accuracy, unseen.interval, unseen.group) == ("unseen", None, None, None)
    assert unseen.predicted == 1
    assert audit.overall.balanced_accuracy == 0.75
    assert "2" not in [name for group in audit.groups.values() for name in group.members]
    assert audit.gap.worst_name == "1"
    assert Notice("unseen-classes", {"unseen": 1, "classes": 3}) in audit.notices


def test_baseline_ranking_makes_the_thirds():
    targets = np.repeat(np.arange(3), 10)
    right = np.tile(np.arange(10), 3) < np.repeat([5, 9, 1], 10)
    base = Audit.from_predictions(predictions=np.where(right, targets, (targets + 1) % 3), targets=targets)
    assert base.groups["easy"].members == ("1",)
    other = Audit.from_predictions(predictions=targets, targets=targets, rank_by=base)
    assert other.rank_by == "baseline"
    assert [other.groups[name].members for name in ("easy", "medium", "hard")] == [
        base.groups[name].members for name in ("easy", "medium", "hard")
    ]
    numbers = Audit.from_predictions(predictions=targets, targets=targets, rank_by=[0.1, 0.2, 0.3])
    assert numbers.groups["easy"].members == ("2",)
    with pytest.raises(ValueError, match="3 numbers"):
        Audit.from_predictions(predictions=targets, targets=targets, rank_by=[0.1])
    with pytest.raises(ValueError, match="class names differ"):
        Audit.from_predictions(predictions=targets, targets=targets, rank_by=base, class_names=list("abc"))


def test_the_gap_by_a_baseline_on_the_same_samples_is_partly_shared_luck():
    """All classes are equally good, and both models fail on much the same samples."""
    rng = np.random.default_rng(0)
    targets, plain = np.repeat(np.arange(30), 50), AuditSettings(n_resamples=200, map="none")

    def audited(right, order=slice(None), **given):
        predictions = np.where(right, targets, (targets + 1) % 30)
        return Audit.from_predictions(predictions=predictions[order], targets=targets[order], settings=plain, **given)

    clear = 0
    for _ in range(15):
        right = rng.random(1500) < 0.7
        again = np.where(rng.random(1500) < 0.2, rng.random(1500) < 0.7, right)
        baseline = audited(right)
        found = audited(again, rank_by=baseline)
        clear += gap_is_significant(found)
        assert found.gap.easy_hard > 0.05
        assert found.gap.expected_by_chance["easy_hard"] > 0.05
    assert clear <= 2
    assert Notice("unpaired-ranking") not in found.notices
    by_numbers = audited(again, rank_by=[entry.accuracy for entry in baseline.classes])
    backwards = audited(again, order=slice(None, None, -1), rank_by=baseline)
    for unknown in (by_numbers, backwards):
        assert "easy_hard" not in unknown.gap.expected_by_chance
        assert Notice("unpaired-ranking") in unknown.notices


def test_same_seed_same_audit():
    targets, features, weight, bias = blobs([2.0, 3.0, 4.0], each=30)
    settings = AuditSettings(n_resamples=100, map_points=40, seed=3)
    first, second = (audit_of(targets, features, weight, bias, settings=settings) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("classes", [1, 2])
def test_one_and_two_classes(classes):
    logits = torch.randn(12, classes)
    audit = Audit.from_predictions(logits, torch.arange(12) % classes, features=torch.randn(12, 3), settings=QUICK)
    assert audit.overall.num_classes == classes
    assert (audit.gap.easy_hard is None) == (classes == 1)
    assert (audit.overall.margin is None) == (classes == 1)


def test_zero_features_and_head_give_no_nan(tmp_path):
    audit = Audit.from_predictions(
        torch.randn(20, 3), torch.arange(20) % 3, features=torch.zeros(20, 4), head=torch.zeros(3, 4), settings=QUICK
    )
    audit.save(tmp_path / "audit.json")  # JSON without NaN
    assert audit.classes[0].spread_to_norm is None
    assert audit.classes[0].class_margin is None


def test_settings_are_checked():
    for bad in ({"confidence_level": 1.0}, {"n_resamples": 1}, {"map": "some"}, {"top_k": ()}, {"confusions": 0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            AuditSettings(**bad)


def test_calibration_of_a_class_is_that_of_its_predictions():
    # Predicted as class 0 with certainty three times, right once; class 1 is never predicted.
    audit = Audit.from_predictions([[50.0, 0.0]] * 3, [0, 1, 1], settings=QUICK)
    assert audit.classes[0].calibration_error == pytest.approx(2 / 3)
    assert audit.classes[1].calibration_error is None
    assert audit.overall.calibration_error == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("probabilities", "hard"),
    [
        (
            [[0.7, 0.2, 0.1], [0.2, 0.8, 0.0], [0.1, 0.3, 0.6]],
            0,
        ),  # a 0 that is neither the true class nor the best other
        ([[0.7, 0.2, 0.1], [1.0, 0.0, 0.0], [0.1, 0.3, 0.6]], 1),  # the true class has 0
        ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]], 3),
    ],
)
def test_logit_margins_are_left_out_if_a_probability_of_0_is_in_one(probabilities, hard):
    audit = Audit.from_predictions(probabilities=probabilities, targets=[0, 1, 2])
    notices = [notice for notice in audit.notices if notice.code == "zero-probabilities"]
    if hard:
        assert notices == [Notice("zero-probabilities", {"zeros": hard, "samples": 3})]
        assert all(entry.logit_margin is None for entry in audit.classes)
    else:
        assert not notices
        assert audit.classes[1].logit_margin.mean == pytest.approx(np.log(0.8 / 0.2), rel=1e-5)
    assert audit.classes[1].margin == pytest.approx(probabilities[1][1] - probabilities[1][0], abs=1e-6)


def test_a_model_that_predicts_one_class_is_told():
    audit = Audit.from_predictions(predictions=["b"] * 4, targets=["a", "b", "a", "c"])
    assert Notice("constant-prediction", {"name": "b"}) in audit.notices
    other = Audit.from_predictions(predictions=["b"] * 4, targets=["b"] * 4, class_names=["a", "b"])
    assert all(notice.code != "constant-prediction" for notice in other.notices)


def test_binary_scores_of_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    points, targets = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
    points[:, 0] += targets
    model = LogisticRegression().fit(points, targets)
    margins, positive = model.decision_function(points), model.predict_proba(points)[:, 1]
    for given in ({"logits": margins}, {"probabilities": positive}, {"probabilities": positive[:, None]}):
        with pytest.raises(ValueError, match=r"two columns .*column_stack\(\[0 \* z, z\]\).* predict_proba"):
            Audit.from_predictions(**given, targets=targets)
    audits = [
        Audit.from_predictions(np.column_stack([0 * margins, margins]), targets),
        Audit.from_predictions(probabilities=model.predict_proba(points), targets=targets),
    ]
    for audit in audits:
        assert audit.overall.accuracy == model.score(points, targets)
    assert audits[0].overall.calibration_error == pytest.approx(audits[1].overall.calibration_error)


def test_arguments_of_the_wrong_kind_are_named():
    logits, targets = np.eye(3)[[0, 1, 2, 0]], [0, 1, 2, 2]
    with pytest.raises(ValueError, match="got a vector of 4: logits and targets are swapped"):
        Audit.from_predictions(targets, logits)
    with pytest.raises(ValueError, match=r"settings must be an AuditSettings, got a dict: pass cg\.AuditSettings"):
        Audit.from_predictions(logits, targets, settings={"seed": 1})
    with pytest.raises(ValueError, match="path must be the path of a file or directory, got a dict"):
        Audit.from_file({"logits": logits})
