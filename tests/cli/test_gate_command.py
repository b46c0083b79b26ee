"""``classgap gate`` and ``classgap history``: exit codes, files and invalid input."""

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from classgap.audit import Audit, GateResult
from classgap.cli import main
from forked import run_command

TARGETS = np.repeat(np.arange(4), 60)
NAMES = ["cat", "dog", "a|b`<i>", "yak"]


def save(path: Path, wrong: list[int], **changes: object) -> str:
    """Save predictions that are wrong for the given samples only."""
    labels = np.where(np.isin(np.arange(240), wrong), (TARGETS + 1) % 4, TARGETS)
    np.savez(path, **({"targets": TARGETS, "predictions": labels, "class_names": NAMES} | changes))
    return str(path)


@pytest.fixture
def before(tmp_path: Path) -> str:
    path = tmp_path / "v1.json"
    Audit.from_file(save(tmp_path / "v1.npz", list(range(0, 240, 10)))).save(path)
    return str(path)


@pytest.fixture
def bad(tmp_path: Path) -> str:
    """Half of the third class is wrong, whose name Markdown and XML would interpret."""
    return save(tmp_path / "v2.npz", [*range(0, 240, 10), *range(120, 150)])


def test_exit_codes(before: str, bad: str, tmp_path: Path, capsys):
    good = save(tmp_path / "good.npz", list(range(5, 240, 10)))
    assert main(["gate", before, good, "--max-class-drop", "3", "--max-group-drop", "hard=0.5"]) == 0
    assert "Passed: 2 of 2 rules hold." in capsys.readouterr().out
    assert main(["gate", before, bad, "--max-class-drop", "3"]) == 1
    out = capsys.readouterr().out
    assert "Failed: 1 of 1 rule is broken." in out
    assert "1 of 4 classes is shown to have dropped by more than 3 points" in " ".join(out.split())


def test_other_samples_need_unpaired(before: str, tmp_path: Path, capsys):
    index, out = np.arange(1_000, 1_240), tmp_path / "gate.json"
    old = save(tmp_path / "old.npz", list(range(0, 240, 10)), index=np.arange(240))
    new = save(tmp_path / "new.npz", list(range(120, 170)), index=index)
    assert main(["gate", old, new, "--max-class-drop", "3", "--json", str(out)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "--unpaired" in line
    assert not out.exists()
    assert main(["gate", old, new, "--max-class-drop", "3", "--json", str(out), "--unpaired"]) == 1
    assert "Samples are not paired: 240 of old and 240 of new." in " ".join(capsys.readouterr().out.split())
    result = GateResult.load(out)
    assert [violation.name for violation in result.rules[0].violations] == [NAMES[2]]


def test_files(before: str, bad: str, tmp_path: Path):
    saved, junit, markdown = tmp_path / "gate.json", tmp_path / "gate.xml", tmp_path / "gate.md"
    words = ["--max-class-drop", "3", "--max-group-drop", "easy=90", "--min-class-accuracy", "80", "--max-gap", "99"]
    files = ["--json", str(saved), "--junit", str(junit), "--markdown", str(markdown)]
    assert main(["gate", before, bad, *words, *files]) == 1
    result = GateResult.load(saved)
    assert [rule.passed for rule in result.rules] == [False, True, False, True]
    root = ElementTree.parse(junit).getroot()
    (suite,) = root
    cases = suite.findall("testcase")
    for element in (root, suite):
        assert {name: element.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
            "tests": "4",
            "failures": "2",
            "errors": "0",
            "skipped": "0",
        }
    assert [case.get("name") for case in cases] == [
        "max_class_drop 3",
        "max_group_drop easy=90",
        "min_class_accuracy 80",
        "max_gap 99",
    ]
    assert all(case.get("classname") and case.get("time") for case in cases)
    assert [case.find("failure") is not None for case in cases] == [True, False, True, False]
    assert NAMES[2] in cases[0].find("failure").text
    assert cases[0].find("failure").get("type") == "max_class_drop"
    text = markdown.read_text(encoding="utf-8")
    assert text.startswith("## classgap gate: v1 → v2\n")
    assert "a\\|b\\`\\<i\\>" in text
    for table in text.split("\n\n"):
        rows = [line.replace("\\|", "") for line in table.splitlines() if line.startswith("|")]
        assert len({row.count("|") for row in rows}) <= 1


def test_markdown_is_appended(before: str, bad: str, tmp_path: Path):
    summary = tmp_path / "summary.md"
    summary.write_text("# Earlier step\n")
    for _ in range(2):
        assert main(["gate", before, bad, "--max-class-drop", "3", "--markdown", str(summary)]) == 1
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("# Earlier step\n\n## classgap gate")
    assert text.count("## classgap gate") == 2


def test_rules_file_and_flags(before: str, bad: str, tmp_path: Path):
    rules = tmp_path / "gate.yaml"
    rules.write_text("max_class_drop: 3\nmax_group_drop:\n  overall: 50\n")
    assert main(["gate", before, bad, "--rules", str(rules)]) == 1
    assert main(["gate", before, bad, "--rules", str(rules), "--max-class-drop", "60"]) == 0


def test_keys_and_renames(tmp_path: Path):
    def write(name: str, rows: range, cat: str) -> str:
        lines = [f"{i}.png,{(cat, 'dog')[i % 2]},{(cat, 'dog')[i % 2]}" for i in rows]
        (tmp_path / name).write_text("file,target,prediction\n" + "\n".join(lines) + "\n")
        return str(tmp_path / name)

    first, second = write("v1.csv", range(60), "cat"), write("v2.csv", range(10, 90), "kitty")
    saved = tmp_path / "gate.json"
    words = ["--key", "file", "--rename", "cat=kitty", "--max-class-drop", "3", "--json", str(saved)]
    assert main(["gate", first, second, *words]) == 0
    result = GateResult.load(saved)
    assert (result.n_samples, result.only_before, result.only_after) == (50, 10, 30)


INVALID = {
    "no rule": ([], "at least one rule"),
    "nan": (["--max-class-drop", "nan"], "nan"),
    "negative": (["--max-gap", "-3"], "-3"),
    "negative group": (["--max-group-drop", "hard=-1"], "-1"),
    "text": (["--max-gap", "much"], "'much'"),
    "group text": (["--max-group-drop", "hard"], "GROUP=POINTS"),
    "group limit": (["--max-group-drop", "hard=x"], "GROUP=POINTS"),
    "group twice": (["--max-group-drop", "hard=1", "--max-group-drop", "hard=2"], "'hard' twice"),
    "unknown group": (["--max-group-drop", "wild=1"], "'wild'"),
    "level": (["--max-gap", "3", "--confidence-level", "1"], "confidence_level"),
    "rules": (["--rules", "none.yaml"], "none.yaml"),
    "seed": (["--max-gap", "3", "--seed", "-1"], "seed"),
    "key": (["--max-gap", "3", "--key", "file"], "--key file"),
    "rename": (["--max-gap", "3", "--rename", "cow=dog"], "'cow'"),
}


@pytest.mark.parametrize(("words", "reason"), INVALID.values(), ids=INVALID)
def test_wrong_use_is_one_line_and_exit_code_2(words, reason, before: str, bad: str, tmp_path: Path, capfd):
    files = [tmp_path / name for name in ("g.json", "g.xml", "g.md")]
    outputs = [
        word
        for flag, file in zip(("--json", "--junit", "--markdown"), files, strict=True)
        for word in (flag, str(file))
    ]
    assert main(["gate", before, bad, *words, *outputs]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert reason in err
    assert not any(file.exists() for file in files)


def test_samples_that_do_not_match_are_wrong_use(before: str, tmp_path: Path, capfd):
    markdown = tmp_path / "g.md"
    fewer = save(tmp_path / "few.npz", [], targets=TARGETS[:200], predictions=TARGETS[:200])
    other = save(tmp_path / "other.npz", [], targets=TARGETS[::-1].copy())
    for source, reason in ((fewer, "240 and 200 samples"), (other, "different labels"), ("none.npz", "does not exist")):
        assert main(["gate", before, source, "--max-class-drop", "3", "--markdown", str(markdown)]) == 2
        err = capfd.readouterr().err
        assert err.count("\n") == 1
        assert reason in err
    assert not markdown.exists()


@pytest.mark.skipif(os.name == "nt", reason="pipes")
def test_a_closed_pipe_does_not_hide_a_failure(before: str, bad: str):
    read, write = os.pipe()
    os.close(read)
    assert run_command(["gate", before, bad, "--max-class-drop", "3"], stdout=write, stderr=2) == 1
    os.close(write)


def test_history(before: str, bad: str, tmp_path: Path, capsys):
    page, saved = tmp_path / "h.html", tmp_path / "h.json"
    assert main(["history", before, bad, "--html", str(page), "--json", str(saved)]) == 0
    out = capsys.readouterr().out
    assert "v1 → v2" in out
    releases = json.loads(saved.read_text())["releases"]
    audits = [Audit.load(before), Audit.from_file(bad)]
    assert [release["name"] for release in releases] == ["v1", "v2"]
    assert [release["overall"] for release in releases] == [audit.overall.accuracy for audit in audits]
    assert [release["hard"] for release in releases] == [audit.groups["hard"].accuracy for audit in audits]
    assert [release["worst_name"] for release in releases] == [audit.gap.worst_name for audit in audits]
    first, last = (f"{100 * audit.gap.easy_hard:.1f}" for audit in audits)
    assert f"gap {first} → {last} points" in " ".join(out.split())
    source = page.read_text(encoding="utf-8")
    assert "a|b`&lt;i&gt;" in source
    assert f"gap {last} points" in source  # in the chart
    assert f"classgap history {before}" in source
    assert source.count("<time ") == 2
    assert main(["history", str(tmp_path / "none.json"), "--html", str(tmp_path / "x.html")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "x.html").exists()


def test_history_names_the_first_hard_third_and_fits_80_columns(before: str, bad: str, capsys):
    assert main(["history", before, bad]) == 0
    out = capsys.readouterr().out
    assert "hard third" in out
    assert all(name in out for name in ("of the first", "release", "worst class", "gap", "samples"))


def test_the_hint_for_an_unknown_option_is_a_full_sentence(capsys):
    assert main(["gate", "old.json", "new.json", "--max-drop", "3"]) == 2
    assert "did you mean --max-class-drop? Its value is in percentage points. Run" in capsys.readouterr().err
