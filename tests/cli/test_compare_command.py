import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from classgap.audit import Audit, AuditDiff
from classgap.cli import main

TARGETS = np.arange(120) % 3


def save(path: Path, wrong: list[int], **changes: object) -> str:
    """Save predictions that are wrong for the given samples only."""
    labels = np.where(np.isin(np.arange(120), wrong), (TARGETS + 1) % 3, TARGETS)
    path.parent.mkdir(exist_ok=True)
    np.savez(path, **({"targets": TARGETS, "predictions": labels, "class_names": ["a", "b", "c"]} | changes))
    return str(path)


@pytest.fixture
def before(tmp_path: Path) -> str:
    return save(tmp_path / "before.npz", list(range(0, 90, 3)))  # 30 of the 40 samples of a


def test_gained_and_regressed_classes(before: str, tmp_path: Path, capsys):
    after = save(tmp_path / "after.npz", list(range(1, 90, 3)))  # all of a is right, 30 samples of b are wrong
    html, saved = tmp_path / "d.html", tmp_path / "d.json"
    assert main(["compare", before, after, "--html", str(html), "--json", str(saved)]) == 0
    diff = AuditDiff.load(saved)
    assert (diff.gained, diff.regressed) == (("a",), ("b",))
    assert diff.classes[0].p_value == pytest.approx(binomtest(30, 30).pvalue)
    out = capsys.readouterr().out
    assert "Gained: 1" in out
    assert "Regressed: 1" in out
    assert "+75.0" in out
    assert "before → after" in html.read_text(encoding="utf-8")


def test_saved_audits_and_runs_compare_like_their_predictions(before: str, tmp_path: Path):
    after = save(tmp_path / "run" / "predictions.npz", [0, 1])
    Audit.from_file(before).save(tmp_path / "before.json")
    sources = [[before, after], [str(tmp_path / "before.json"), str(tmp_path / "run")]]
    results = []
    for pair in sources:
        assert main(["compare", *pair, "--json", str(tmp_path / "d.json")]) == 0
        results.append(json.loads((tmp_path / "d.json").read_text()))
    assert results[0] == results[1]
    assert results[0]["after_name"] == "run"


def test_every_other_source_is_compared_with_the_first(before: str, tmp_path: Path, capsys):
    others = [save(tmp_path / f"{name}.npz", wrong) for name, wrong in (("one", [1]), ("two", [2, 5]))]
    html, saved = tmp_path / "d.html", tmp_path / "d.json"
    assert main(["compare", before, *others, "--html", str(html), "--json", str(saved)]) == 0
    comparisons = json.loads(saved.read_text())["comparisons"]
    assert [(c["before_name"], c["after_name"]) for c in comparisons] == [("before", "one"), ("before", "two")]
    assert capsys.readouterr().out.count("classgap compare:") == 2
    assert "before against 2 others" in html.read_text(encoding="utf-8")


def test_n_runs_splits_the_sources_into_blocks(tmp_path: Path):
    wrong = ([0, 3, 6], [0, 3, 9], [0], [3])
    sources = [save(tmp_path / f"{i}.npz", list(some)) for i, some in enumerate(wrong)]
    assert main(["compare", "--n-runs", "2", *sources, "--json", str(tmp_path / "d.json")]) == 0
    diff = AuditDiff.load(tmp_path / "d.json")
    assert diff.n_runs == 2
    assert diff.over_runs["accuracy"].change_mean == pytest.approx(2 / 120)


def test_csv_has_one_row_per_class_and_comparison(before: str, tmp_path: Path):
    others = [save(tmp_path / "one.npz", list(range(1, 90, 3))), save(tmp_path / "two.npz", [2, 5])]
    table, saved = tmp_path / "d.csv", tmp_path / "d.json"
    assert main(["compare", before, *others, "--csv", str(table), "--json", str(saved)]) == 0
    with table.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [(line["after_name"], line["name"]) for line in lines] == [(f, c) for f in ("one", "two") for c in "abc"]
    first = lines[0]  # 30 of the 40 samples of a were wrong before, none after
    assert [float(first[key]) for key in ("before", "after", "change")] == pytest.approx([0.25, 1.0, 0.75])
    assert (first["fixed"], first["broken"], first["verdict"]) == ("30", "0", "gained")
    assert float(first["p_value"]) == pytest.approx(binomtest(30, 30).pvalue)
    entry = json.loads(saved.read_text())["comparisons"][0]["classes"][0]
    assert [float(first["interval_low"]), float(first["interval_high"])] == entry["interval"]


def test_confidence_level_and_seed_apply_to_predictions_and_saved_audits(before: str, tmp_path: Path, capfd):
    after = save(tmp_path / "after.npz", list(range(1, 60, 3)))
    Audit.from_file(before).save(tmp_path / "before.json")
    found = {}
    for flags in ((), ("--confidence-level", "0.5"), ("--seed", "1")):
        for source in (before, str(tmp_path / "before.json")):
            assert main(["compare", source, after, *flags, "--json", str(tmp_path / "d.json")]) == 0
            diff = AuditDiff.load(tmp_path / "d.json")
            found.setdefault(flags, set()).add((diff.confidence_level, diff.gap["std"].interval))
    assert all(len(results) == 1 for results in found.values())
    (plain,), (half,), (other,) = found.values()
    assert (plain[0], half[0], other[0]) == (0.95, 0.5, 0.95)
    assert plain[1].low < half[1].low < half[1].high < plain[1].high
    assert other[1] != plain[1]
    capfd.readouterr()
    for flags in (("--confidence-level", "1.5"), ("--seed", "-1")):
        assert main(["compare", before, after, *flags]) == 2
        assert capfd.readouterr().err.count("\n") == 1


def test_runs_with_the_same_name_are_named_by_their_path(tmp_path: Path):
    sources = [save(tmp_path / side / "run.npz", [0]) for side in ("x", "y")]
    assert main(["compare", *sources, "--json", str(tmp_path / "d.json")]) == 0
    diff = AuditDiff.load(tmp_path / "d.json")
    assert [diff.before_name, diff.after_name] == sources


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("one source", "at least 2 sources; got 1"),
        ("odd blocks", "multiple of --n-runs 2; got 3"),
        ("no runs", "--n-runs"),
        ("other samples", "other"),
        ("other names", "class"),
        ("missing", "does not exist"),
    ],
)
def test_invalid_sources_are_rejected(case: str, reason: str, before: str, tmp_path: Path, capfd):
    other = {
        "one source": [],
        "odd blocks": [before, before, "--n-runs", "2"],
        "no runs": [before, "--n-runs", "0"],
        "missing": [str(tmp_path / "nowhere")],
    }
    if case == "other samples":
        words = [save(tmp_path / "other.npz", [], targets=TARGETS[::-1].copy())]
    elif case == "other names":
        words = [save(tmp_path / "other.npz", [], class_names=["x", "y", "z"])]
    else:
        words = other[case]
    html = tmp_path / "d.html"
    assert main(["compare", before, *words, "--html", str(html)]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert reason in err
    assert not html.exists()


def save_csv(path: Path, rows: list[int], wrong: list[int], names: str = "abc") -> str:
    """Save rows of a test set with file names as ids."""
    lines = ["file,target,prediction"]
    for i in rows:
        target = names[i % 3]
        lines.append(f"img{i}.png,{target},{names[(i + 1) % 3] if i in wrong else target}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_key_matches_samples_of_changed_test_sets(tmp_path: Path, capsys):
    before = save_csv(tmp_path / "v1.csv", list(range(90)), [0, 3, 6])
    after = save_csv(tmp_path / "v2.csv", list(range(119, 29, -1)), [31, 34])
    saved, html = tmp_path / "d.json", tmp_path / "d.html"
    words = ["compare", before, after, "--key", "file"]
    assert main([*words, "--json", str(saved), "--html", str(html)]) == 0
    diff = AuditDiff.load(saved)
    assert (diff.n_samples, diff.only_before, diff.only_after) == (60, 30, 30)
    assert diff.classes[1].broken == 2
    assert "30 samples of v1" in " ".join(capsys.readouterr().out.split())
    assert "Left out" in html.read_text(encoding="utf-8")
    assert main(["audit", before, "--key", "file", "--json", str(tmp_path / "v1.json")]) == 0
    assert main(["compare", str(tmp_path / "v1.json"), after, "--key", "file", "--json", str(saved)]) == 0
    assert AuditDiff.load(saved).classes == diff.classes


def test_key_is_no_class_of_a_file_with_scores(tmp_path: Path):
    path = tmp_path / "p.csv"
    path.write_text("name,target,cat,dog\nx1,cat,0.9,0.1\nx2,dog,0.3,0.7\n")
    assert main(["compare", str(path), str(path), "--key", "name", "--json", str(tmp_path / "d.json")]) == 0
    assert [entry.name for entry in AuditDiff.load(tmp_path / "d.json").classes] == ["cat", "dog"]


def test_renamed_added_and_removed_classes(tmp_path: Path, capsys):
    before, after = (
        save_csv(tmp_path / "v1.csv", list(range(60)), []),
        save_csv(tmp_path / "v2.csv", list(range(60)), [], "xbz"),
    )
    saved = tmp_path / "d.json"
    assert main(["compare", "--rename", "a=x", before, after, "--key", "file", "--json", str(saved)]) == 0
    found = json.loads(saved.read_text())
    assert (found["added"], found["removed"], found["renamed"]) == (["z"], ["c"], {"a": "x"})
    assert "Added: 1 class (z)" in capsys.readouterr().out
    assert main(["compare", before, after, "--rename", "a=x", "--rename", "c=z", "--json", str(saved)]) == 0
    assert AuditDiff.load(saved).n_samples == 60


def test_unpaired_and_correction(before: str, tmp_path: Path):
    other = tmp_path / "other.npz"
    np.savez(other, targets=TARGETS[:90], predictions=TARGETS[:90], class_names=["a", "b", "c"])
    saved = tmp_path / "d.json"
    assert main(["compare", before, str(other), "--unpaired", "--correction", "fdr", "--json", str(saved)]) == 0
    diff = AuditDiff.load(saved)
    assert (diff.paired, diff.n_samples, diff.n_samples_after, diff.correction) == (False, 120, 90, "fdr_bh")
    assert diff.gained == ("a",)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--rename", "a"], "OLD=NEW"),
        (["--rename", "a=b", "--rename", "a=c"], "'a' twice"),
        (["--rename", "q=a"], "'q'"),
        (["--key", "file"], "'file'"),
        (["--key", "targets"], "'targets'"),
        (["--correction", "bonferroni"], "bonferroni"),
        (["--unpaired", "--n-runs", "2"], "one run per side"),
    ],
)
def test_invalid_matching_is_rejected(words: list[str], reason: str, before: str, tmp_path: Path, capfd):
    after, html = save(tmp_path / "after.npz", [1]), tmp_path / "d.html"
    sources = [before, after] * (2 if "2" in words else 1)
    assert main(["compare", *sources, *words, "--html", str(html)]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert reason in err
    assert not html.exists()


@pytest.mark.parametrize(
    "command", ["compare {} {}", "gate {} {} --max-gap 5", "history {}", "audit {saved} --rank-by {}"]
)
def test_files_without_targets_are_audited_first_and_the_message_says_how(command, before, tmp_path, capsys):
    """No command but audit has --targets."""
    path, labels, saved = (str(tmp_path / name) for name in ("timm.csv", "labels.txt", "audit.json"))
    Path(path).write_text("filename,index,prob\n" + "".join(f"{i}.png,{i % 3},0.9\n" for i in range(120)))
    words = command.format(path, path, saved=before).split()
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "with classgap audit --targets FILE" in error
    assert "pass the audit that its --json saves to compare, gate, history and --rank-by" in error
    Path(labels).write_text("\n".join(map(str, TARGETS)))
    assert main(["audit", path, "--targets", labels, "--json", saved]) == 0
    if "--rank-by" not in words:  # the baseline has other class names
        assert main([saved if word == path else word for word in words]) == 0
