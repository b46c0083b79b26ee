"""``--valid-labels``, ``--slices``, ``--superclasses`` and ``--hierarchy``."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from classgap.cli import main

NAMES = ["cat", "dog", "owl", "car", "bus", "oak"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """Predictions with ids from 1, and a JSON file of every kind."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    targets = np.arange(120) % 6
    predictions = np.where(rng.random(120) < 0.3, rng.integers(0, 6, 120), targets)
    sets = [
        sorted({int(t), int(p)}) if i % 3 else [int(t)]
        for i, (t, p) in enumerate(zip(targets, predictions, strict=True))
    ]
    sets[5] = []
    camera = rng.choice(["left", "right"], 120)
    arrays = {"targets": targets, "predictions": predictions, "class_names": NAMES, "camera": camera}
    np.savez("p.npz", **arrays, index=np.arange(1, 121))
    np.savez("far.npz", **arrays, index=np.arange(1, 121) + 900)
    np.savez("plain.npz", **arrays)
    files = {
        "sets": sets,
        "ids": {str(i + 1): entry for i, entry in enumerate(sets)},
        "short": sets[:100],
        "few_ids": {"1": [0]},
        "unknown": [["fox"], *sets[1:]],
        "number": [[17], *sets[1:]],
        "flat": [entry[0] if entry else 0 for entry in sets],
        "word": "cat",
        "super": {"animal": ["cat", "dog", "owl"], "vehicle": ["car", "bus"]},
        "shared": {"animal": ["cat"], "pet": ["cat"]},
        "strange": {"animal": ["cow"]},
        "tree": dict.fromkeys(["cat", "dog", "owl"], "animal") | {"car": ["vehicle", "thing"], "animal": "thing"},
        "loop": {"cat": "pet", "pet": "cat"},
        "others": {"cow": "animal"},
    }
    for name, content in files.items():
        Path(f"{name}.json").write_text(json.dumps(content))
    Path("cut.json").write_text("[[1], [2")
    Path("scores.csv").write_text("target,cat,dog,valid_labels,site\ncat,2,1,cat|dog,a\ndog,2,1,,b\ndog,0,1,dog,a\n")
    Path("bad.csv").write_text("target,prediction,valid_labels\ncat,cat,cat\ndog,cat,cat|cow\n")
    return tmp_path


def test_all_flags_together(folder: Path, capsys):
    words = ["--valid-labels", "sets.json", "--slices", "camera", "--superclasses", "super.json"]
    words += ["--hierarchy", "tree.json", "--json", "a.json", "--csv", "c.csv", "--html", "r.html"]
    assert main(["audit", "p.npz", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "as valid" in out
    saved = json.loads(Path("a.json").read_text())
    assert saved["valid"]["overall"]["left_out"] == 1
    assert saved["valid"]["overall"]["accuracy"] > saved["overall"]["accuracy"]
    assert saved["valid"]["groups"].keys() == saved["groups"].keys()
    assert saved["slices"]["columns"].keys() == {"camera"}
    assert saved["superclasses"]["errors"] == sum(saved["superclasses"]["levels"].values())
    with Path("c.csv").open(newline="") as file:
        assert {"valid_accuracy", "label_validity", "superclass"} <= set(next(csv.reader(file)))
    assert main(["audit", "a.json", "--html", "again.html"]) == 0
    pages = [re.sub(r"<code>.*?</code>", "", Path(name).read_text()) for name in ("again.html", "r.html")]
    assert pages[0] == pages[1]  # but for the command that made them


def test_a_list_and_an_object_match_the_same_samples(folder: Path, capsys):
    for labels, source in (("sets", "p"), ("ids", "p"), ("sets", "plain")):
        assert (
            main(
                ["audit", f"{source}.npz", "--valid-labels", f"{labels}.json", "--json", f"{labels}-{source}.out.json"]
            )
            == 0
        )
    found = [json.loads(path.read_text())["valid"] for path in sorted(folder.glob("*.out.json"))]
    assert len(found) == 3
    assert found[0] == found[1] == found[2]
    capsys.readouterr()


def test_csv_scores_with_sets_and_slices(folder: Path, capsys):
    assert main(["audit", "scores.csv", "--slices", "site", "--json", "a.json"]) == 0
    saved = json.loads(Path("a.json").read_text())
    assert (saved["overall"]["num_classes"], saved["overall"]["accuracy"]) == (2, pytest.approx(2 / 3))
    assert (saved["valid"]["overall"]["accuracy"], saved["valid"]["overall"]["left_out"]) == (1.0, 1)
    assert [entry["value"] for entry in saved["slices"]["columns"]["site"]] == ["a", "b"]
    capsys.readouterr()


CASES = {
    "plain.npz --valid-labels short.json": "100",
    "p.npz --valid-labels short.json": "100 entries",
    "far.npz --valid-labels sets.json": "1020",
    "p.npz --valid-labels few_ids.json": "index 2",
    "plain.npz --valid-labels ids.json": "index",
    "p.npz --valid-labels unknown.json": "'fox'",
    "p.npz --valid-labels number.json": "17",
    "p.npz --valid-labels flat.json": "valid_labels[0]",
    "p.npz --valid-labels word.json": "word.json",
    "p.npz --valid-labels cut.json": "cut.json",
    "p.npz --valid-labels nowhere.json": "nowhere.json",
    "bad.csv": "'cow'",
    "p.npz --slices cameras": "camera",
    "scores.csv --slices target": "'target'",
    "p.npz --superclasses shared.json": "'cat'",
    "p.npz --superclasses strange.json": "'cow'",
    "p.npz --superclasses sets.json": "sets.json",
    "p.npz --hierarchy loop.json": "cycles",
    "p.npz --hierarchy others.json": "hierarchy",
    "p.npz --hierarchy sets.json": "sets.json",
}


@pytest.mark.parametrize("case", CASES)
def test_invalid_input_is_one_line_and_writes_no_file(case: str, folder: Path, capfd):
    before = sorted(folder.iterdir())
    assert main(["audit", *case.split(), "--html", "r.html", "--json", "r.json", "--csv", "r.csv"]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert CASES[case] in err
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    "words",
    [
        ["--valid-labels", "sets.json"],
        ["--slices", "camera"],
        ["--superclasses", "super.json"],
        ["--hierarchy", "tree.json"],
    ],
)
def test_a_saved_audit_cannot_follow_the_flags(words: list[str], folder: Path, capsys):
    assert main(["audit", "p.npz", "--json", "a.json"]) == 0
    capsys.readouterr()
    assert main(["audit", "a.json", *words]) == 2
    assert words[0] in capsys.readouterr().err


def test_inputs_are_not_overwritten(folder: Path, capsys):
    content = Path("sets.json").read_text()
    assert main(["audit", "p.npz", "--valid-labels", "sets.json", "--json", "sets.json"]) == 2
    assert "overwrite" in capsys.readouterr().err
    assert Path("sets.json").read_text() == content
