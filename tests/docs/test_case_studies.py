"""The case studies show the stored figures, and their blocks run, here on small stand-ins for the data."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from classgap.audit import Audit
from doc_pages import read_page, run_page
from scripts import load_script

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
GATES = {"classgap gate baseline.json accident.npz": 1}


@pytest.fixture(scope="module")
def studies():
    return load_script("benchmarks/case_studies.py")


@pytest.fixture(scope="module")
def results(studies):
    return json.loads(studies.RESULTS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("study", ["imagenet", "clinc150"])
def test_page_shows_the_stored_results(study, studies, results):
    page = read_page(f"case-studies/{study}.md")
    assert page == studies.render(study, results), "run python benchmarks/case_studies.py docs"
    for picture in re.findall(r"!\[.*?\]\((.+?)\)", page):
        assert 0 < (studies.PAGES / picture).stat().st_size < 200_000


def test_imagenet_blocks_run(tmp_path: Path, monkeypatch):
    rng = np.random.default_rng(0)
    targets, index = rng.permutation(np.repeat(np.arange(8), 20)), np.arange(1, 161)
    names = ["space bar", *(f"class {k}" for k in range(7))]

    def predict(accuracy):
        return np.where(rng.random(160) < accuracy, targets, (targets + 1) % 8)

    for name, accuracy in (("dino", 0.8), ("simclr", 0.6)):
        arrays = {"targets": targets, "predictions": predict(accuracy), "index": index}
        np.savez(tmp_path / f"imagenet_val_{name}.npz", class_names=names, **arrays)
    order = np.argsort(targets, kind="stable")
    arrays = {"targets": targets[order], "predictions": predict(0.7)[order]}
    np.savez(tmp_path / "imagenet_val_cleanlab.npz", class_names=names, **arrays)
    sets = [[] if i % 20 == 0 else [int(k), (int(k) + 1) % 8][: 1 + i % 2] for i, k in enumerate(targets)]
    (tmp_path / "imagenet_val_real_labels.json").write_text(json.dumps(sets))
    monkeypatch.chdir(tmp_path)
    printed = run_page("case-studies/imagenet.md")
    assert "the same mistake" in printed
    assert {"dino.html", "diff.json", "holm.json", "cleanlab.json"} <= {path.name for path in tmp_path.iterdir()}


def test_clinc150_blocks_run_and_the_gate_finds_the_accident(tmp_path: Path, monkeypatch):
    rng = np.random.default_rng(0)
    names = ["change_ai_name", "change_user_name", *(f"intent {k}" for k in range(4))]
    arrays = {"classes": names}
    for part, counts in (("train", [60, 60, 60, 40, 30, 15]), ("val", [40] * 6), ("test", [40] * 6)):
        targets = np.repeat(np.arange(6), counts)
        arrays[f"{part}_x"] = (1.6 * np.eye(6)[targets] + rng.normal(scale=0.8, size=(len(targets), 6))).astype(
            np.float16
        )
        arrays[f"{part}_y"] = targets
    np.savez(tmp_path / "clinc150_minilm.npz", **arrays)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("classgap.remedies.heads.MIN_STEPS", 10)  # what the heads learn does not matter here
    printed = run_page("case-studies/clinc150.md", GATES)
    assert "class-offsets" in printed or "prior-correction" in printed
    assert {"report.html", "fix.html", "baseline.json", "next.json"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
def test_stored_figures_of_imagenet_follow_from_the_files(results):
    """Accuracies, valid errors and confusions, counted here without classgap."""
    folder = DATA / "real_predictions"
    dino = np.load(folder / "imagenet_val_dino.npz")
    sets = json.loads((folder / "imagenet_val_real_labels.json").read_text())
    right = dino["targets"] == dino["predictions"]
    stored = results["imagenet"]["models"]["dino"]
    assert stored["accuracy"][0] == pytest.approx(right.mean(), abs=1e-9)
    judged = [(int(p), sets[i - 1]) for i, p in zip(dino["index"], dino["predictions"], strict=True) if sets[i - 1]]
    assert stored["valid_accuracy"][0] == pytest.approx(np.mean([p in labels for p, labels in judged]), abs=1e-9)
    accuracy = np.sort(np.bincount(dino["targets"], right) / np.bincount(dino["targets"]))
    assert stored["gap"][0] == pytest.approx(accuracy[-333:].mean() - accuracy[:333].mean(), abs=1e-9)
    pair = next(row for row in results["imagenet"]["pairs"] if row["first"] == "laptop")
    names = dino["class_names"].tolist()
    members = {names.index("laptop"), names.index("notebook")}
    shown = [
        set(sets[i - 1])
        for i, k in zip(dino["index"], dino["targets"], strict=True)
        if int(k) in members and sets[i - 1]
    ]
    assert pair["both"][0] == pytest.approx(np.mean([members <= labels for labels in shown]), abs=1e-9)


@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
def test_stored_causes_are_those_of_the_present_diagnosis(results):
    folder = DATA / "real_predictions"
    labels = folder / "imagenet_val_real_labels.json"
    audit = Audit.from_file(folder / "imagenet_val_dino.npz", valid_labels=labels)
    found = Counter(entry.diagnosis[0].name for entry in audit.classes if entry.diagnosis)
    stored = results["imagenet"]["models"]["dino"]["causes"]
    assert stored == {name: found[name] for name in stored}, "run python benchmarks/case_studies.py measure FOLDER"


def test_stored_changes_are_differences_within_their_intervals(results):
    for row in results["clinc150"]["fix"]["proof"]:
        change, low, high = row["change"]
        assert change == pytest.approx(row["after"] - row["before"], abs=1e-9)
        assert low <= change <= high
