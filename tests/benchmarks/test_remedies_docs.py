"""The tables of docs/remedies.md are those of the stored results, and the page states no other figures."""

import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from scripts import load_script

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def remedies():
    return load_script("benchmarks/remedies.py")


def test_page_shows_the_stored_results(remedies):
    assert remedies.SECTION.read() == remedies.tables().strip()


def test_advice_states_the_gains_of_the_tables(remedies):
    """Means of the hard and the medium third, read from the tables below the advice."""
    advice, _, below = (ROOT / "docs" / "remedies.md").read_text(encoding="utf-8").partition("\n## ")
    cell = r"([+−]?[\d.]+) \([^|]+\)"
    hard, medium = {}, {}
    for part in below.split("\n### ")[1:]:
        problem = part.splitlines()[0]
        for row in re.findall(rf"^\| (.+?) \| {cell} \| {cell} \|", part, flags=re.MULTILINE):
            key, (gain, cost) = (problem, row[0]), (float(each.replace("−", "-")) for each in row[1:])
            hard[key], medium[key] = gain, -cost
    balanced = [problem for problem, remedy in hard if remedy == "class-offsets" and "tail" not in problem]
    several = [each for each in balanced if "five runs" in each]
    (small,) = [each for each in balanced if each.startswith("10 %") and "one run" in each]
    single = [each for each in balanced if ("one run" in each or "only" in each) and each != small]
    gains, costs = ([values[each, "class-offsets"] for each in single] for values in (hard, medium))
    assert (len(single), len(several)) == (6, 3)
    assert f"gain {min(gains)} to {max(gains)} points and cost the medium third {min(costs)} to {max(costs)};" in advice
    shown = f"{hard[small, 'class-offsets']}".replace("-", "−")
    assert f"they change the hard third by {shown} |" in advice
    assert f"refitted with LDAM gains {hard[small, 'head:ldam']} and" in advice
    assert f"on all of CIFAR-100, it loses {-hard['CIFAR-100, one run with its images', 'head:ldam']} |" in advice
    averages, both = (max(hard[each, f"ensemble{more}"] for each in several) for more in ("", "+class-offsets"))
    assert f"gains up to {averages} and costs" in advice
    assert f"with offsets on top, up to {both} |" in advice
    images = [problem for problem, remedy in hard if remedy == "ten-views" and "one run" in problem]
    views, both = ([hard[each, f"ten-views{more}"] for each in images] for more in ("", "+class-offsets"))
    assert len(images) == 2
    assert f"gains {min(views)} to {max(views)} and" in advice
    assert f"with offsets on top, {min(both)} to {max(both)}, but the medium third" in advice
    (tail,) = [problem for problem, remedy in hard if remedy == "train: logit adjustment" and "tail" in problem]
    offsets, priors = ((hard[tail, name], medium[tail, name]) for name in ("class-offsets", "prior-correction"))
    assert f"offsets gain {offsets[0]:.0f} and prior correction gains {priors[0]:.0f};" in advice
    assert f"the medium third loses {offsets[1]:.0f} and {priors[1]:.0f}." in advice
    assert f"with logit adjustment gains {hard[tail, 'train: logit adjustment']:.0f} and" in advice
    assert f"ELM gains {hard[tail, 'train: ELM']:.0f}," in advice
    tuned = [-hard[f"{name}, one run", "train: default settings, no search"] for name in ("MNIST-1D", "digits")]
    assert f"worth {tuned[0]} on MNIST-1D and {tuned[1]} on digits" in advice


def test_table_is_the_mean_over_splits(remedies):
    own = [line for line in remedies.stored.read_lines(remedies.RESULTS) if line["problem"] == "20news"]
    hard = [100 * line.get("proof", {"hard": 0.0})["hard"] for line in own]
    first = remedies.markdown_table(own).splitlines()[2]
    assert first.startswith(f"| **classgap fix** | {remedies.stored.signed(float(np.mean(hard)))} (")


def test_no_split_is_stored_twice(remedies):
    keys = [(line["problem"], line["split"]) for line in remedies.stored.read_lines(remedies.RESULTS)]
    assert len(keys) == len(set(keys))
    assert {problem for problem, _ in keys} <= set(remedies.TITLES)


def test_splits_are_disjoint_and_stratified(remedies):
    targets = np.repeat(np.arange(5), 20)
    fit, test = remedies.random_split(targets, 0.3, seed=1)
    assert sorted([*fit, *test]) == list(range(100))
    assert np.bincount(targets[fit]).tolist() == [6] * 5


def test_trained_methods_are_measured_in_thirds_of_the_fitting_samples(remedies):
    targets = np.tile([0, 1, 2], 4)
    right = targets.copy()
    wrong = (targets + 1) % 3
    fit, test = np.arange(6), np.arange(6, 12)
    base = np.where(targets == 2, wrong, right)  # class 2 is hard
    method = np.where((targets == 2) & (np.arange(12) < 9), wrong, right)  # repairs its last test sample
    data = [remedies.Predictions.from_arrays(targets, predictions=each) for each in (base, method)]
    found = remedies.trained_changes(data[0], {"method": data[1]}, fit, test)
    assert found == {"train: method": {"overall": round(1 / 6, 5), "easy": 0.0, "medium": 0.0, "hard": 0.5}}


def write_run(run, right):
    """A run that gets some of twelve held-out and twelve test samples right."""
    targets = np.tile([0, 1, 2], 4)
    run.mkdir(parents=True)
    for name in ("val_predictions", "predictions"):
        logits = np.eye(3, dtype=np.float32)[np.where(right, targets, (targets + 1) % 3)]
        arrays = {"logits": logits, "targets": targets, "index": np.arange(12)}
        save_file(arrays, run / f"{name}.safetensors")


def test_image_methods_are_compared_with_the_baseline_of_their_seed(remedies, tmp_path, monkeypatch):
    plan = {"methods": {remedies.BASELINE: {}, "copy": {}, "other": {}}, "seeds": (0, 1)}
    monkeypatch.setitem(remedies.PROBLEMS, "cifar100-10", plan)
    first, second = np.arange(12) < 6, np.arange(12) < 9
    for method, seed, right in (
        (remedies.BASELINE, 0, first),
        (remedies.BASELINE, 1, second),
        ("copy", 0, first),
        ("copy", 1, second),
        ("other", 1, np.ones(12, dtype=bool)),
    ):
        write_run(remedies.run_path(tmp_path, "cifar100-10", method, seed), right)
    changes = remedies.trained_image_changes("cifar100-10", tmp_path)
    for split in range(4):
        found = changes(split)
        assert set(found["train: copy"].values()) == {0.0}
        _, test = remedies.random_split(np.tile([0, 1, 2], 8), remedies.FIT["cifar100-10"], split)
        assert found["train: other"]["overall"] == pytest.approx(np.mean(test % 12 >= 9), abs=1e-5)


def test_headroom_counts_the_errors_that_not_all_runs_make(remedies):
    targets = np.repeat(np.arange(3), 40)
    rng = np.random.default_rng(0)
    logits = 3 * np.eye(3)[targets] + rng.normal(size=(120, 3))
    wrong = logits.copy()
    rows = np.flatnonzero(targets == 2)
    wrong[rows[::2]] = 5 * np.eye(3)[0]  # half of class 2, which is hard
    both = [remedies.Predictions.from_arrays(targets, logits=each) for each in (wrong, logits)]
    same = remedies.remedies_headroom.headroom([both[0], both[0]], 0.5, 4)
    assert (same["repairable"], same["disagree"], same["n_fit_per_class"]) == (0, 0, 20)
    assert same["n_errors"] == same["n_shared"] > 0
    found = remedies.remedies_headroom.headroom([both[0], both[0], both[1]], 0.5, 4)
    errors = (found["n_errors"] - found["n_shared"]) / found["n_hard"]
    assert found["repairable"] == pytest.approx(errors, abs=1e-3)
    assert found["disagree"] == pytest.approx(np.mean(wrong.argmax(1) != logits.argmax(1)) * 2 / 3, abs=1e-4)
    assert f"gain {100 * found['repairable']:.1f} points" in remedies.remedies_headroom.describe(found)


def test_a_search_is_shown_with_its_interval_and_against_plain_training(remedies):
    line = {
        "problem": "digits",
        "seed": 0,
        "n_trials": 9,
        "chosen": "ensemble",
        "proof": {
            name: {"before": 0.5, "after": after, "interval": [-0.01, 0.05]}
            for name, after in (("overall", 0.51), ("easy", 0.5), ("medium", 0.5), ("hard", 0.52))
        },
    }
    held_out = {"budget": "5m", "search": "searched 9 trials in 5m00s", "plain": {"hard": 0.53, "overall": 0.5}}
    lines = [line, line | {"seed": 1, "chosen": None, "proof": None}, line | held_out | {"seed": 2}]
    rows = remedies.remedies_training.training_table(lines, remedies.SEARCHED).splitlines()[2:]
    shown = "ensemble | 50.0 → 52.0 | +2.0 (−1.0 to +5.0) | 0.0 | +1.0"
    assert rows == [
        f"| digits | 9 trials | five folds | {shown} | +2.0 | +1.0 |",
        "| digits | 9 trials | five folds | nothing | – | – | – | – | – | – |",
        f"| digits | 5m, 9 trials | held-out fifth | {shown} | −1.0 | +1.0 |",
    ]


def lines_of(problem, hard, easy=0.0, *, count=50, high=0.1):
    proof = {"hard": hard / 100, "easy": easy / 100}
    return [{"problem": problem, "split": i, "proof": proof, "interval": [-0.1, high]} for i in range(count)]


def test_targets_are_met_only_by_stored_results(remedies):
    check = remedies.remedies_targets
    good = [
        *(line for name, least in check.AVERAGED.items() for line in lines_of(name, least, -0.3)),
        *(line for name in check.SCORES_ONLY for line in lines_of(name, 0.3)),
        *(line for name in check.LONG_TAILED for line in lines_of(name, 10.0)),
    ]
    search = {"proof": {"hard": {"before": 0.5, "after": 0.525}}}
    searches = [search | {"problem": name} for name in "abcd"]

    def missed(lines, trained=searches):
        found = check.targets(lines, trained, remedies.TITLES)
        return [each.goal for each in found if not each.is_met]

    def without(problem):
        return [line for line in good if line["problem"] != problem]

    assert missed(good) == []
    assert len(missed(good, searches[1:])) == 1
    assert len(missed([*without("digits × 5"), *lines_of("digits × 5", 0.9)])) == 1
    assert len(missed([*without("cifar100"), *lines_of("cifar100", 2.0, -0.4)])) == 1
    assert len(missed([*without("20news"), *lines_of("20news", 0.2)])) == 1
    assert len(missed([*without("20news"), *lines_of("20news", -0.1)])) == 2  # the average, and a negative mean
    assert len(missed([*without("digits"), *lines_of("digits", 0.3, count=49)])) == 1
    assert len(missed([*without("digits"), *lines_of("digits", 0.3, high=-0.05)])) == 1
    assert len(missed(without("mnist1d-lt"))) == 1
