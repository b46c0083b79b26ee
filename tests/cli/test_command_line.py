"""The surface is frozen here: a new command or flag needs an edit of this file."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest

from classgap import __version__
from classgap.cli import main
from classgap.cli.main import COMMANDS

SURFACE = {
    "demo": ["--out", "--seeds", "--epochs", "--overwrite"],
    "train": [
        *(
            "--data",
            "--model",
            "--method",
            "--out",
            "--epochs",
            "--steps",
            "--batch-size",
            "--optimizer",
            "--lr",
            "--loss-lr",
        ),
        *(
            "--momentum",
            "--nesterov",
            "--weight-decay",
            "--schedule",
            "--warmup-epochs",
            "--warmup-steps",
            "--milestones",
        ),
        *(
            "--gamma",
            "--clip-grad",
            "--micro-batches",
            "--precision",
            "--channels-last",
            "--compile",
            "--augment",
            "--mix",
        ),
        *(
            "--sampler",
            "--val-fraction",
            "--monitor",
            "--wise-ft-alpha",
            "--seed",
            "--save-every",
            "--save-features",
            "--report",
        ),
        *("--tensorboard", "--device", "--config", "--dry-run", "--overwrite"),
    ],
    "methods": ["NAME"],
    "datasets": [],
    "models": [],
    "audit": ["SOURCE", "--html", "--json", "--csv", "--rank-by", "--groups", "--confidence-level", "--seed"],
    "compare": ["SOURCE ...", "--runs-per-side", "--html", "--json", "--csv", "--confidence-level", "--seed"],
}

POSITIONAL = {"source": "SOURCE", "sources": "SOURCE ...", "name": "NAME"}


def test_commands_and_flags_are_the_promised_ones():
    found = {}
    for name, command in COMMANDS.items():
        fields = [field.name for field in dataclasses.fields(command)]
        flags = [f"--{field.replace('_', '-')}" for field in fields if field not in POSITIONAL]
        found[name] = [POSITIONAL[field] for field in fields if field in POSITIONAL] + flags
    assert found == SURFACE


@pytest.mark.parametrize("name", SURFACE)
def test_help_explains_every_flag_in_eighty_columns(name: str, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert all(flag.split()[0] in text for flag in SURFACE[name])
    assert f"classgap {name}" in text.split("Example")[1]  # with an example to copy
    assert max(map(len, text.splitlines()[1:])) <= 80


def test_the_front_page_lists_the_commands(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in COMMANDS)
    assert max(map(len, text.splitlines())) <= 80
    assert main([]) == 2
    assert capsys.readouterr().out == text


def test_wrong_use_ends_with_2(capsys):
    assert main(["adit"]) == 2
    assert capsys.readouterr().err == "classgap: there is no command 'adit'; did you mean audit?\n"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["audit"], "SOURCE"),
        (["audit", "x.npz", "--no-such-flag"], "--no-such-flag"),
        (["audit", "x.npz", "--html"], "--html"),
        (["audit", "x.npz", "--seed", "three"], "--seed"),
        (["compare", "a", "b", "--confidence-level", "high"], "--confidence-level"),
    ],
)
def test_wrong_flags_are_one_line_with_a_hint(words: list[str], named: str, capsys):
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert named in err
    assert f"; classgap {words[0]} --help lists what is allowed." in err
    assert not set("│╭─╯") & set(err)
    assert "---" not in err  # the rule of a box, where there is only ASCII


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["train", "--data", "digits", "--lr", "abc"], "--lr must be a number, got 'abc'"),
        (["train", "--data", "digits", "--lr=abc", "--epochs", "3"], "--lr must be a number, got 'abc'"),
        (["train", "--data", "digits", "--epochs", "1.5"], "--epochs must be a whole number, got '1.5'"),
        (["train", "--data", "digits", "--warmup_steps", "x"], "--warmup-steps must be a whole number, got 'x'"),
        (["train", "--data", "digits", "--momentum", "None"], "--momentum must be a number, got 'None'"),
        (["train", "--data", "digits", "--milestones", "2", "x", "3"], "--milestones must be numbers, got 'x'"),
        (["demo", "--seeds", "three"], "--seeds must be a whole number, got 'three'"),
        (["compare", "a", "b", "--confidence-level", "high"], "--confidence-level must be a number, got 'high'"),
    ],
)
def test_what_is_no_number_is_told_without_the_parsers_types(words: list[str], told: str, capsys):
    assert main(words) == 2
    assert capsys.readouterr().err == f"classgap: {told}; classgap {words[0]} --help lists what is allowed.\n"


def test_python_m_classgap_works_and_a_closed_pipe_is_no_error(tmp_path):
    path = tmp_path / "p.npz"
    np.savez(path, targets=[0, 1, 1], predictions=[0, 1, 0])
    version = subprocess.run(
        [sys.executable, "-m", "classgap", "--version"], capture_output=True, text=True, check=False
    )
    assert (version.returncode, version.stdout) == (0, f"classgap {__version__}\n")
    piped = f"set -o pipefail; '{sys.executable}' -m classgap audit '{path}' --json '{tmp_path}/a.json' | true"
    closed = subprocess.run(["bash", "-c", piped], capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr) == (0, "")
    assert json.loads((tmp_path / "a.json").read_text())["overall"]["n_samples"] == 3
