"""Figures in the prose of README and documentation are those of stored results, or follow from the data itself."""

import gzip
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from classgap.audit import Audit
from classgap.cli import main
from classgap.cli.demo_command import ADVICE, DemoCommand
from classgap.methods import METHODS
from doc_pages import read_page
from scripts import load_script

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
DATA = ROOT.parent / "shared" / "data" / "real_predictions"
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def imagenet():
    return json.loads((RESULTS / "case_studies.json").read_text(encoding="utf-8"))["imagenet"]


@pytest.fixture(scope="module")
def demo():
    return load_script("benchmarks/demo.py")


def words(text: str) -> str:
    return " ".join(text.split())


def test_readme_shows_the_stored_demo(demo):
    results = demo.stored.read(demo.RESULTS)
    assert demo.SECTION.read() == demo.table(results).strip(), "run python benchmarks/demo.py docs"
    assert results["epochs"] == 200
    assert {len(runs) for runs in results["accuracy"].values()} == {3}
    for change in results["fix"]["proof"].values():
        assert change["interval"][0] <= change["after"] - change["before"] <= change["interval"][1]


def test_the_demo_trains_the_settings_of_the_readme():
    assert (DemoCommand().seeds, DemoCommand().epochs) == (3, 200)
    assert "--" not in re.search(r"classgap demo.*", (ROOT / "Makefile").read_text(encoding="utf-8"))[0]


def test_readme_states_the_accuracies_of_the_picture(imagenet):
    dino = imagenet["models"]["dino"]
    accuracy, hard = (100 * dino[name][0] for name in ("accuracy", "hard"))
    assert f"{accuracy:.1f} % accuracy, but {hard:.1f} % on the hard third of the classes" in README


def test_readme_states_the_changes_of_mr2_against_tuned_cross_entropy():
    """The table of docs/mr2.md is compared with the stored results in ``experiments/tests``."""
    rows = re.findall(
        r"^ *\| ([^|]+?) \| \d+ \| [^|]+ %[^|]* \| [\d.]+ \| ([+-]?[\d.]+) ± ([\d.]+) \|",
        read_page("mr2.md").replace("−", "-"),
        flags=re.MULTILINE,
    )
    changes = {problem: (float(change), float(half)) for problem, change, half in rows}
    assert len(changes) == 7
    (here,) = [problem for problem in changes if problem.startswith("MNIST-1D") and "200" in problem]
    others = [change for problem, change in changes.items() if not problem.startswith("MNIST-1D")]
    shown = [f"{change:+} ± {half}".replace("-", "−") for change, half in (changes[here], min(others), max(others))]
    assert f"by {shown[0]} points; on other small problems, by {shown[1]} to {shown[2]}" in words(README)


def test_table_of_valid_labels(imagenet):
    table = read_page("labels.md").partition("| | DINO, original labels |")[2].partition("\n\n")[0]
    shown = {
        row[0]: row[1:] for line in table.splitlines()[2:] for row in [[c.strip() for c in line.strip("|").split("|")]]
    }
    for i, name in enumerate(("dino", "simclr")):
        model = imagenet["models"][name]

        def percent(*keys: str, model: dict = model) -> str:
            return f"{100 * sum(model[key][0] for key in keys):.1f}"

        labeled, valid = 2 * i, 2 * i + 1
        assert [shown["accuracy, %"][k] for k in (labeled, valid)] == [percent("accuracy"), percent("valid_accuracy")]
        assert [shown["easy third, %"][k] for k in (labeled, valid)] == [
            percent("easy"),
            percent("valid_hard", "valid_gap"),
        ]
        assert [shown["hard third, %"][k] for k in (labeled, valid)] == [percent("hard"), percent("valid_hard")]
        assert shown["easy − hard, points"][labeled] == percent("gap")
        low, high = (f"{100 * value:.1f}".replace("-", "−") for value in model["gap_change"][1:])
        assert re.fullmatch(rf"{percent('valid_gap')} \(.*?{low} to {high}\)", shown["easy − hard, points"][valid])
        assert shown["easy − hard, thirds re-formed from valid-label accuracy, points"][valid] == percent("reranked")
        assert shown["own label valid, easy third, %"][valid] == percent("own_label_easy")
        assert shown["own label valid, hard third, %"][valid] == percent("own_label_hard")
    dino = imagenet["models"]["dino"]
    least, most = (100 * value for value in (dino["gap"][0] - dino["reranked"][0], -dino["gap_change"][0]))
    assert f"({least:.1f} to {most:.1f} of {100 * dino['gap'][0]:.1f} points)" in read_page("labels.md")


@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
def test_classes_of_valid_labels_counted_without_classgap():
    file = np.load(DATA / "imagenet_val_dino.npz")
    sets = json.loads((DATA / "imagenet_val_real_labels.json").read_text())
    page = words(read_page("labels.md"))
    assert f"{sum(not labels for labels in sets):,} images have no valid label" in page
    names = file["class_names"].tolist()
    accuracy = {}
    for name in ("space bar", "laptop"):
        rows = np.flatnonzero(file["targets"] == names.index(name))
        judged = [(int(file["predictions"][i]), sets[file["index"][i] - 1]) for i in rows]
        labeled = np.mean(file["predictions"][rows] == names.index(name))
        accuracy[name] = labeled, np.mean([guess in labels for guess, labels in judged if labels])
    first, second = (f"{100 * before:.0f} to {100 * after:.0f} %" for before, after in accuracy.values())
    assert f'"space bar" goes from {first}, and that of "laptop" from {second}' in page
    assert f"{100 * accuracy['space bar'][0]:.0f} % on the worst class" in README


def test_comparison_of_dino_and_simclr(imagenet):
    found, page = imagenet["compare"], words(read_page("audit.md"))
    counts = f"finds {found['holm_regressed']} classes that got worse, FDR {found['fdr_regressed']}"
    assert f"{counts}, and at least {found['changed_at_least']} classes are estimated to have changed" in page
    assert f"{found['hard_up']} classes rose and {found['hard_down']} fell" in page


@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
def test_overlap_in_predicted_labels():
    audit = Audit.from_file(DATA / "imagenet_val_cleanlab.npz")
    causes = [cause for entry in audit.classes for cause in entry.diagnosis if cause.name == "overlap"]
    several = sum(len(cause.details.get("others", ())) > 1 for cause in causes)
    page = words(read_page("diagnosis.md"))
    hard = len(audit.groups["hard"].members)
    assert f"{len(causes)} of {hard} classes in the hard third are diagnosed with overlap" in page
    assert f"{len(causes) - several} with one class and {several} with several" in page
    assert audit.pairs[1].first in page.partition("The most confused pairs")[2]


@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
def test_size_of_a_baseline(tmp_path: Path):
    Audit.from_file(DATA / "imagenet_val_dino.npz").save(tmp_path / "baseline.json")
    text = (tmp_path / "baseline.json").read_bytes()
    sizes = [f"{len(each) / 1e6:.1f} MB" for each in (text, gzip.compress(text))]
    assert re.search(rf"{sizes[0]} for ImageNet's .*? {sizes[1]} when compressed", words(read_page("gate.md")))


@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
def test_gate_from_dino_to_simclr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    page = words(read_page("gate.md"))
    command = shlex.split(re.search(r"`classgap (gate imagenet[^`]+)`", page)[1])
    monkeypatch.chdir(DATA)
    assert main([*command, "--json", str(tmp_path / "gate.json")]) == 1
    found = json.loads((tmp_path / "gate.json").read_text())
    (classes,) = [rule for rule in found["rules"] if rule["rule"] == "max_class_drop"]
    assert (classes["n_tested"], len(classes["violations"])) == (1000, 3)
    assert "three of 1,000 classes are shown to have dropped by more than 3 points" in page
    groups = found["groups"]
    assert f"accuracy fell by {groups['overall']['drop']:.1f} points" in page
    median, hard = found["power"]["median"], groups["hard"]["detectable"]
    assert f"fall by {median:.0f} points to be detected, and the hard third by {hard:.1f}." in page


def test_number_of_methods():
    texts = [README, read_page("index.md"), read_page("losses.md")]
    assert [re.search(r"(\d+) methods", text)[1] for text in texts] == [str(len(METHODS.names()))] * 3


def test_number_of_problems_with_measured_remedies():
    headings = re.findall(r"^### (.+), (?:predictions|one run|five runs)", read_page("remedies.md"), flags=re.MULTILINE)
    problems = {re.sub(r" \(.*?\)", "", heading) for heading in headings}
    number = {6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten"}[len(problems)]
    for text in (read_page("index.md"), read_page("fix.md"), ADVICE):
        assert f"on {number} problems" in words(text)
