"""The problems of benchmarks/diagnosis.py have the cause that they claim, and the benchmark counts correctly."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2_contingency
from sklearn.linear_model import LogisticRegression

from scripts import load_script

diagnosis = load_script("benchmarks/diagnosis.py")
problems = load_script("benchmarks/diagnosis_problems.py")
CONFIGURATIONS = load_script("benchmarks/diagnosis_grid.py").CONFIGURATIONS
SLOW_MODELS = ("forest", "mlp", "mlp-long")


def quick(chosen):
    """Configurations that build in milliseconds, and one network for each cause that is special to networks."""
    special = ("none", "prior", "representation", "under", "over")
    networks = {c.cause: c for c in reversed(chosen) if c.model == "mlp" and c.cause in special}
    picked = [c for c in chosen if c.model not in SLOW_MODELS and c.classes < 50] + list(networks.values())
    slow = [pytest.param(c, marks=pytest.mark.slow, id=str(c)) for c in chosen if c not in picked]
    return [pytest.param(c, id=str(c)) for c in picked] + slow


WITHOUT_CAUSE = [c for c in CONFIGURATIONS if c.cause == "none"]
WITH_CAUSE = [c for c in CONFIGURATIONS if c.cause not in ("none", "natural")]


def test_the_grid_is_large_and_mixed() -> None:
    names = Counter(map(str, CONFIGURATIONS))
    assert len(names) == len(CONFIGURATIONS) >= 60
    assert {c.cause for c in CONFIGURATIONS} == set(problems.CAUSES)
    assert len({c.cause for c in WITH_CAUSE}) >= 10
    assert len(WITHOUT_CAUSE) >= len(CONFIGURATIONS) / 3
    assert sum(c.classes for c in WITHOUT_CAUSE) >= 300
    assert {c.model for c in WITHOUT_CAUSE} >= {"nb", "logreg", "forest", "mlp", "knn"}
    assert {c.classes for c in WITHOUT_CAUSE} >= {5, 10, 20, 50}
    assert {c.inputs for c in WITHOUT_CAUSE} >= {"labels", "scores", "features", "all"}
    assert sum(c.held_out for c in CONFIGURATIONS) >= 10
    assert {c.inputs for c in CONFIGURATIONS} == set(problems.INPUTS)


@pytest.mark.parametrize("configuration", quick(WITH_CAUSE))
def test_an_affected_class_fails_and_no_other_gaussian_class_does(configuration) -> None:
    problem = problems.build(configuration, 0)
    failing = set(diagnosis.failing_classes(problem))
    assert problem.accepted
    assert failing & set(problem.affected)
    if configuration.data != "digits":  # digits differ in difficulty by themselves
        assert failing <= set(problem.affected)


@pytest.mark.parametrize("configuration", quick(WITHOUT_CAUSE))
def test_classes_without_a_cause_are_equally_accurate_up_to_noise(configuration) -> None:
    problem = problems.build(configuration, 0)
    correct_K, support_K = problem.correct_K, problem.support_K
    assert problem.clean
    assert not problem.affected
    assert chi2_contingency([correct_K, support_K - correct_K]).pvalue > 1e-3


@pytest.mark.parametrize("inputs", problems.INPUTS)
def test_an_audit_sees_only_the_inputs_of_the_configuration(inputs: str) -> None:
    configuration = problems.Configuration("none", "logreg", inputs, classes=3, test_each=5, train_each=10)
    given = set(problems.build(configuration, 0).audit_inputs(inputs)) - {"targets", "class_names"}
    scores, features = {"logits"}, {"logits", "features", "head"}
    training = {"train_counts", "train_predictions", "train_targets", "train_features"}
    expected = {
        "labels": {"predictions"},
        "labels+counts": {"predictions", "train_counts"},
        "scores": scores,
        "scores+counts": scores | {"train_counts"},
        "features": features,
        "all": features | training,
        "labels+valid": {"predictions", "valid_labels"},
        "scores+valid": scores | {"valid_labels"},
        "all+valid": features | training | {"valid_labels"},
    }
    assert given == expected[inputs]


def test_equal_seeds_give_equal_problems() -> None:
    configuration = problems.Configuration("head", "mlp", "features", classes=4, train_each=30, test_each=20)
    first, again, other = (problems.build(configuration, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.outputs.test_logits, again.outputs.test_logits)
    assert not np.array_equal(first.outputs.test_logits, other.outputs.test_logits)


@pytest.mark.parametrize("cause", ["none", "labels-test", "labels-several"])
def test_people_name_the_classes_that_a_sample_shows(cause: str) -> None:
    configuration = problems.Configuration(cause, "logreg", "labels+valid", classes=5, test_each=200)
    problem = problems.build(configuration, 0)
    targets, sets = problem.samples.test_targets, problem.valid_labels
    # Test samples are drawn in the order of the classes, so their own class is known without the labels.
    shown = np.repeat(np.arange(5), 200)
    wrong = targets != shown
    judged = np.array([len(labels) > 0 for labels in sets])
    assert 0.9 < judged.mean() < 0.98
    assert wrong.sum() == (0 if cause == "none" else 70)
    assert all(own in labels for labels, own in zip(sets, shown.tolist(), strict=True) if labels)
    own_label = np.array([target in labels for labels, target in zip(sets, targets.tolist(), strict=True)])
    two = np.array([len(labels) == 2 for labels in sets])
    assert 0.06 < two[~wrong].mean() < 0.14
    assert own_label[~wrong & judged].all()
    if cause != "none":
        assert own_label[wrong & judged].mean() == (1 if cause == "labels-several" else pytest.approx(0, abs=0.1))
    assert problems.build(problems.Configuration(cause, "logreg", "labels", classes=5), 0).valid_labels is None


def test_a_part_of_the_test_set_is_examined() -> None:
    size = {"classes": 4, "test_each": 30, "train_each": 30, "examined": 40}
    result = diagnosis.run(problems.Configuration("none", "logreg", "scores", **size), 0)
    assert result["configuration"] == "none/logreg/scores/gaussian-K4-n30-of40"
    assert result["examined"] == 40
    assert (
        diagnosis.run(problems.Configuration("none", "logreg", "scores", **size | {"examined": None}), 0)["examined"]
        == 120
    )


@pytest.mark.parametrize("model", ["logreg", "mlp"])
def test_a_turned_row_costs_its_class_and_hardly_the_others(model: str) -> None:
    configuration = problems.Configuration("head", model, "features")
    problem = problems.build(configuration, 0)
    draw = problems.Draw(configuration, 0)
    samples = draw.samples(easier=0.2)  # equal to those of the problem
    before_K = problems.Problem(samples, draw.fit(samples)).correct_K / problem.support_K
    lost_K = before_K - problem.correct_K / problem.support_K
    (affected,) = problem.affected
    assert 0.15 < lost_K[affected] < 0.45
    assert np.delete(lost_K, affected).mean() < 0.06


def test_a_lost_representation_is_neither_learned_by_heart_nor_lost_in_the_head() -> None:
    problem = problems.build(problems.Configuration("representation", "mlp", "all"), 0)
    (affected,) = problem.affected
    own = problem.samples.train_targets == affected
    train = (problem.outputs.train_logits.argmax(axis=1) == affected)[own].mean()
    test = problem.correct_K[affected] / problem.support_K[affected]
    head = LogisticRegression(max_iter=300).fit(problem.outputs.train_features, problem.samples.train_targets)
    own = problem.samples.test_targets == affected
    assert abs(train - test) < 0.12
    assert (head.predict(problem.outputs.test_features[own]) == affected).mean() < test + 0.08


def test_rates_count_what_they_say() -> None:
    common = {"held_out": False, "seed": 2, "mislabeled": [], "labels_checked": True}
    constructed = common | {
        "configuration": "bias/x", "cause": "bias", "clean": False, "accepted": ["decision-bias"],
        "affected": [0, 1, 2], "failing": [0, 1],
        "diagnosis": [["decision-bias", "wrong-labels"], [], ["overlap"], ["not-enough-evidence"]],
    }  # fmt: skip
    clean = common | {
        "configuration": "none/x", "cause": "none", "clean": True, "accepted": [], "affected": [], "failing": [],
        "diagnosis": [["too-few-test-samples"], ["not-enough-evidence"], [], []],
    }  # fmt: skip
    results = [constructed, clean]
    assert diagnosis.right_causes(results) == diagnosis.Rate(1, 2)
    assert diagnosis.false_label_claims(results) == diagnosis.Rate(1, 8)
    assert diagnosis.false_label_claims(results, failing_only=True) == diagnosis.Rate(1, 2)
    unchecked = clean | {"labels_checked": False}
    assert diagnosis.false_label_claims([unchecked]) == diagnosis.Rate(0, 0)
    assert diagnosis.quiet_problems(results) == diagnosis.Rate(1, 1)
    assert diagnosis.claims_elsewhere(results) == diagnosis.Rate(0, 1)
    assert diagnosis.causes_table(results)[1:] == [["bias", "1", "1", "1 of 2"]]
    assert len(list(diagnosis.mistakes(results))) == 2
    assert diagnosis.Rate(8, 10).interval() == pytest.approx((0.4902, 0.9433), abs=1e-4)


def test_development_and_report_problems_are_disjoint() -> None:
    assert diagnosis.is_development({"held_out": False, "seed": 1})
    assert not diagnosis.is_development({"held_out": False, "seed": 2})
    assert not diagnosis.is_development({"held_out": True, "seed": 0})
    assert diagnosis.parse_seeds("0-2,5") == [0, 1, 2, 5]


def test_the_benchmark_runs_stores_and_resumes(tmp_path: Path, monkeypatch, capsys) -> None:
    size = {"classes": 5, "test_each": 40, "train_each": 60}
    few = [problems.Configuration(cause, "logreg", "all", **size) for cause in ("none", "twins", "bias")]
    monkeypatch.setattr(diagnosis, "CONFIGURATIONS", few)
    monkeypatch.setattr(diagnosis, "use_one_thread", lambda: None)  # would outlast this test
    store = tmp_path / "results.jsonl"
    arguments = ["--seeds", "0,2", "--store", str(store), "--markdown"]
    diagnosis.main([*arguments, "--only", "none,twins"])
    assert len(store.read_text().splitlines()) == 4
    with store.open("a") as file:
        file.write('{"configuration": "interrup')
    diagnosis.main(arguments)
    results = [json.loads(line) for line in store.read_text().splitlines()]
    assert Counter(result["cause"] for result in results) == {"none": 2, "twins": 2, "bias": 2}
    assert all(len(result["diagnosis"]) == 5 for result in results)
    printed = capsys.readouterr().out
    assert "3 configurations, 6 problems" in printed
    assert "| first-named cause is right | ≥ 90 % |" in printed


def test_the_page_shows_the_stored_results() -> None:
    root = Path(__file__).parents[2]
    stored = root / "benchmarks" / "results" / "diagnosis.jsonl"
    results = [json.loads(line) for line in stored.read_text().splitlines()]
    report = [result for result in results if not diagnosis.is_development(result)]
    page = (root / "docs" / "diagnosis.md").read_text().splitlines()
    for table in (diagnosis.rates_table(results), diagnosis.causes_table(report), diagnosis.constructions_table()):
        assert set(diagnosis.format_table(table, True).splitlines()) <= set(page)
    assert len(results) >= 300
    right, labels, quiet = (
        rate(report) for rate in (diagnosis.right_causes, diagnosis.false_label_claims, diagnosis.quiet_problems)
    )
    assert right.hits >= 0.9 * right.total
    assert labels.hits <= 0.01 * labels.total
    assert quiet.hits >= 0.95 * quiet.total
