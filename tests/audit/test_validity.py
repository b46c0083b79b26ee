import json
from pathlib import Path

import numpy as np
import pytest
from valid_cases import labeled, slow_accuracies

from classgap.audit import Audit, AuditSettings
from classgap.audit.metrics.validity import Validity

QUICK = AuditSettings(map="none", n_resamples=200)
REAL = Path(__file__).parents[3] / "shared" / "data" / "real_predictions"


def audit_of(targets, predictions, sets, **given):
    return Audit.from_predictions(targets=targets, predictions=predictions, valid_labels=sets, settings=QUICK, **given)


def test_every_figure_equals_a_slow_count():
    targets, predictions, sets = labeled()
    audit = audit_of(targets, predictions, sets)
    valid = audit.valid
    accuracy, support = slow_accuracies(targets, predictions, sets, 6)
    own, _ = slow_accuracies(targets, targets, sets, 6)
    known = [bool(entry) for entry in sets]
    assert [entry.accuracy for entry in valid.classes] == pytest.approx(accuracy.tolist())
    assert [entry.support for entry in valid.classes] == support.tolist()
    assert [entry.label_validity for entry in valid.classes] == pytest.approx(own.tolist())
    assert valid.overall.left_out == known.count(False) == sum(entry.left_out for entry in valid.classes) > 0
    assert valid.overall.accuracy == pytest.approx((accuracy * support).sum() / support.sum())
    assert valid.overall.balanced_accuracy == pytest.approx(accuracy.mean())
    assert valid.overall.label_validity == pytest.approx((own * support).sum() / support.sum())
    errors = [p != t and p in s for t, p, s in zip(targets.tolist(), predictions.tolist(), sets, strict=True)]
    assert valid.overall.valid_errors == sum(errors) == sum(entry.valid_errors for entry in valid.classes)
    for name, group in audit.groups.items():
        members = [audit.class_names.index(member) for member in group.members]
        assert valid.groups[name].accuracy == pytest.approx(accuracy[members].mean())
        assert valid.groups[name].label_validity == pytest.approx(own[members].mean())
    easy, hard = (valid.groups[name].accuracy for name in ("easy", "hard"))
    assert valid.gap.easy_hard == pytest.approx(easy - hard)
    assert valid.gap_change == pytest.approx(valid.gap.easy_hard - audit.gap.easy_hard)
    ordered = np.sort(accuracy)
    assert valid.reranked_easy_hard == pytest.approx(ordered[-2:].mean() - ordered[:2].mean())
    assert valid.gap.worst_class == pytest.approx(accuracy.min())


def test_labeled_figures_do_not_change():
    targets, predictions, sets = labeled()
    plain = Audit.from_predictions(targets=targets, predictions=predictions, settings=QUICK)
    audit = audit_of(targets, predictions, sets)
    assert plain.valid is None
    assert (plain.gap, plain.groups, plain.overall) == (audit.gap, audit.groups, audit.overall)


def test_sets_of_the_label_alone_repeat_the_labeled_figures():
    targets, predictions, _ = labeled()
    audit = audit_of(targets, predictions, [[target] for target in targets.tolist()])
    valid = audit.valid
    assert [entry.accuracy for entry in valid.classes] == [entry.accuracy for entry in audit.classes]
    assert valid.gap.easy_hard == audit.gap.easy_hard == valid.reranked_easy_hard
    assert (valid.gap_change, valid.overall.label_validity, valid.overall.valid_errors) == (0.0, 1.0, 0)
    assert -0.1 < valid.gap_change_interval.low < 0 < valid.gap_change_interval.high < 0.1


def test_a_class_without_valid_samples_has_no_accuracy():
    targets, predictions, sets = labeled()
    hardest = int(np.argmin([(predictions[targets == k] == k).mean() for k in range(6)]))
    sets = [[] if target == hardest else entry for target, entry in zip(targets.tolist(), sets, strict=True)]
    audit = audit_of(targets, predictions, sets)
    entry = audit.valid.classes[hardest]
    assert (entry.accuracy, entry.interval, entry.label_validity, entry.support) == (None, None, None, 0)
    kept = [audit.class_names.index(name) for name in audit.groups["hard"].members if name != str(hardest)]
    accuracy, _ = slow_accuracies(targets, predictions, sets, 6)
    assert audit.valid.groups["hard"].accuracy == pytest.approx(accuracy[kept].mean())
    easy = [audit.class_names.index(name) for name in audit.groups["easy"].members]
    assert audit.valid.gap.easy_hard == pytest.approx(accuracy[easy].mean() - accuracy[kept].mean())
    assert Audit.from_dict(audit.to_dict()) == audit


def test_the_interval_of_the_change_matches_the_spread_of_repeated_draws():
    """The oracle repeats the experiment: new samples of the same classes, thirds fixed."""
    classes, each, rng = 6, 60, np.random.default_rng(1)
    right, valid_wrong, invalid, empty = np.linspace(0.95, 0.5, classes), 0.4, 0.1, 0.1

    def draw():
        targets = np.repeat(np.arange(classes), each)
        u = rng.random((4, len(targets)))
        predictions = np.where(u[0] < right[targets], targets, (targets + 1) % classes)
        sets = []
        for i, (target, prediction) in enumerate(zip(targets.tolist(), predictions.tolist(), strict=True)):
            entry = set() if u[1, i] < invalid else {target}
            entry |= {prediction} if prediction != target and u[2, i] < valid_wrong else set()
            sets.append(sorted(entry) if u[3, i] >= empty else [])
        return targets, predictions, sets

    ranking = right.tolist()
    found = [audit_of(*draw(), rank_by=ranking).valid for _ in range(120)]
    spread = np.std([valid.gap_change for valid in found], ddof=1)
    widths = [valid.gap_change_interval.high - valid.gap_change_interval.low for valid in found]
    assert np.mean(widths) / (2 * 1.96) == pytest.approx(spread, rel=0.25)
    truth = np.mean([valid.gap_change for valid in found])
    inside = [valid.gap_change_interval.low <= truth <= valid.gap_change_interval.high for valid in found]
    assert np.mean(inside) >= 0.88


def test_valid_errors_come_first_in_the_budget_and_name_the_cause():
    targets, predictions, _ = labeled(classes=8, each=60)
    hardest = int(np.argmin([(predictions[targets == k] == k).mean() for k in range(8)]))
    sets = [
        [target, prediction] if target == hardest else [target]
        for target, prediction in zip(targets.tolist(), predictions.tolist(), strict=True)
    ]
    audit = audit_of(targets, predictions, sets)
    entry = audit.classes[hardest]
    errors = int(((targets == hardest) & (predictions != hardest)).sum())
    assert entry.error_budget.labels.removed == errors == entry.error_budget.errors
    assert entry.diagnosis[0].name == "wrong-labels"
    assert entry.diagnosis[0].details["valid"] == errors
    assert audit.error_budget.labels.removed == errors
    assert all(other.error_budget.labels.removed == 0 for other in audit.classes if other.index != hardest)
    assert set(entry.doubted_samples) <= set(np.flatnonzero((targets == hardest) & (predictions != hardest)).tolist())


def test_judgments_replace_the_doubts_of_the_model():
    """An error that the model doubts confidently is no label error if people confirmed the label."""
    rng = np.random.default_rng(0)
    targets = np.repeat(np.arange(4), 50)
    meant = targets.copy()
    meant[:15] = 1  # samples of class 0 that are ordinary samples of class 1
    logits = rng.normal(size=(200, 4)) + 8 * np.eye(4)[meant]
    plain = Audit.from_predictions(logits, targets, settings=QUICK)
    assert plain.classes[0].error_budget.labels.removed >= 10
    judged = Audit.from_predictions(logits, targets, valid_labels=[[t] for t in targets.tolist()], settings=QUICK)
    assert judged.classes[0].error_budget.labels.removed == 0
    empty = Audit.from_predictions(
        logits, targets, valid_labels=[[] if i < 15 else [t] for i, t in enumerate(targets.tolist())], settings=QUICK
    )
    assert empty.classes[0].error_budget.labels.removed == plain.classes[0].error_budget.labels.removed


def test_scores_are_still_missing_when_only_valid_labels_are_given():
    targets, predictions, _ = labeled(classes=9, each=100)
    audit = audit_of(targets, predictions, [[target] for target in targets.tolist()])
    causes = [cause for entry in audit.classes for cause in entry.diagnosis if cause.name == "not-enough-evidence"]
    assert causes
    assert all("scores" in cause.details["missing"] for cause in causes)


@pytest.mark.skipif(not REAL.is_dir(), reason="the real predictions are not on this machine")
@pytest.mark.parametrize(
    ("model", "gap", "valid", "reranked"), [("dino", 36.2, 23.8, 26.9), ("simclr", 41.4, 29.9, 32.7)]
)
def test_real_labels_explain_a_third_of_the_gap(model, gap, valid, reranked):
    labels = REAL / "imagenet_val_real_labels.json"
    audit = Audit.from_file(REAL / f"imagenet_val_{model}.npz", valid_labels=labels, settings=QUICK)
    assert 100 * audit.gap.easy_hard == pytest.approx(gap, abs=0.2)
    assert 100 * audit.valid.gap.easy_hard == pytest.approx(valid, abs=0.2)
    assert 100 * audit.valid.reranked_easy_hard == pytest.approx(reranked, abs=0.2)
    validity = {name: 100 * group.label_validity for name, group in audit.valid.groups.items()}
    assert validity["hard"] == pytest.approx(82, abs=0.6)
    assert validity["easy"] == pytest.approx(96, abs=0.6)
    assert audit.valid.overall.left_out == sum(not entry for entry in json.loads(labels.read_text()))


def test_validity_counts_by_hand():
    from classgap.audit.io.label_sets import LabelSets

    sets = LabelSets(np.array([1, 0, 2]), np.array([0, 2, 2, 3]))
    validity = Validity.from_sets(np.array([0, 1, 1]), np.array([1, 1, 1]), sets)
    assert validity.known_N.tolist() == [True, False, True]
    assert validity.right_N.tolist() == [True, False, False]
    assert validity.own_N.tolist() == [True, False, False]
    assert validity.valid_errors_N.tolist() == [True, False, False]


def test_few_samples_have_wide_intervals():
    audit = audit_of(np.array([0, 1]), np.array([1, 1]), [[0, 1], [1]])
    interval = audit.valid.gap_change_interval
    assert interval.low <= audit.valid.gap_change == -1.0 < interval.high - 0.3


def test_audits_without_these_parts_still_load():
    targets, predictions, sets = labeled()
    plain = Audit.from_predictions(targets=targets, predictions=predictions, settings=QUICK)
    saved = plain.to_dict()
    for name in ("valid", "slices", "superclasses"):
        del saved[name]
    assert Audit.from_dict(saved) == plain
    damaged = audit_of(targets, predictions, sets).to_dict()
    damaged["valid"]["classes"][0]["name"] = "another"
    with pytest.raises(ValueError, match=r"valid\.classes"):
        Audit.from_dict(damaged)


@pytest.mark.parametrize(
    ("targets", "predictions", "sets"),
    [([0, 0, 0], [0, 0, 0], [[0], [], [0]]), ([0, 0, 1], [0, 0, 0], [[0], [0], []]), ([0], [0], [[0]])],
)
def test_one_class_has_no_gap(targets, predictions, sets):
    audit = audit_of(targets, predictions, sets)
    assert (audit.valid.gap.easy_hard, audit.valid.gap_change, audit.valid.reranked_easy_hard) == (None, None, None)
    assert audit.valid.overall.accuracy == 1.0
    assert Audit.from_dict(audit.to_dict()) == audit
    assert "as valid" in str(audit)


def test_top_k_and_calibration_equal_a_loop():
    targets, _, sets = labeled(classes=7)
    rng = np.random.default_rng(0)
    logits = (rng.integers(-2, 3, size=(len(targets), 7)) + 2 * np.eye(7)[targets]).astype(np.float32)  # with ties
    settings = AuditSettings(map="none", n_resamples=20, top_k=(1, 3))
    audit = Audit.from_predictions(logits, targets, valid_labels=sets, settings=settings)
    found = {1: [], 3: []}
    bins: dict[int, list[tuple[float, bool]]] = {}
    for row, entry in zip(logits, sets, strict=True):
        if not entry:
            continue
        order = sorted(range(7), key=lambda k: (-row[k], k))
        for k, hits in found.items():
            hits.append(any(label in entry for label in order[:k]))
        confidence = float(np.exp(row.max()) / np.exp(row.astype(np.float64)).sum())
        bins.setdefault(int(np.ceil(confidence * 15)), []).append((confidence, order[0] in entry))
    overall = audit.valid.overall
    assert overall.top_k == {k: pytest.approx(np.mean(hits)) for k, hits in found.items()}
    assert overall.top_k[1] == pytest.approx(overall.accuracy)
    error = sum(abs(sum(right - confidence for confidence, right in members)) for members in bins.values())
    assert overall.calibration_error == pytest.approx(error / overall.n_samples, abs=1e-6)


def test_causes_of_classes_with_valid_labels_are_saved_and_read():
    targets = np.repeat(np.arange(6), 60)
    predictions = np.where((targets == 0) & (np.arange(360) % 5 < 3), 1, targets)
    audit = Audit.from_predictions(
        targets=targets, predictions=predictions, valid_labels=[[label] for label in targets]
    )
    (cause,) = (cause for cause in audit.classes[0].diagnosis if cause.name == "overlap")
    assert cause.details["valid_labels"] == "given"
    assert Audit.from_dict(json.loads(json.dumps(audit.to_dict()))) == audit
