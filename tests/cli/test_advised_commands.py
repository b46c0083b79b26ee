"""Every command that an audit advises runs as it is shown, in a directory whose name has to be quoted."""

import html
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from classgap.audit import Audit, AuditSettings
from classgap.audit.results import Cause
from classgap.cli import main
from classgap.report import audit_text, render_html
from classgap.report.advice import ADVICE, advice_parts

COMMAND = r"classgap (?:train|fix) .*"


def text_commands(text: str) -> set[str]:
    return {found.strip() for found in re.findall(COMMAND, text)}


def page_commands(page: str) -> set[str]:
    """Commands in the tables and in the data of the drawers."""
    shown = (html.unescape(re.sub(r"<[^>]+>", "", code)) for code in re.findall(r"<code>(.*?)</code>", page, re.DOTALL))
    (data, *_) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, flags=re.DOTALL)
    drawers = json.loads(data)[0]
    return {text for text in (*shown, *drawers["texts"]) if re.fullmatch(COMMAND, text)}


def run_commands(commands: set[str]) -> None:
    for command in sorted(commands):
        program, *words = shlex.split(command)
        assert program == "classgap"
        assert main(words) == 0, command


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def train(*flags: str) -> Audit:
    out = "my runs/a 'long' tail"
    assert main(["train", "--data", "digits:imbalance=20", "--model", "mlp:width=8", *flags, "--out", out]) == 0
    return Audit.from_file(out, settings=AuditSettings(map="none", n_resamples=100))


def test_commands_of_a_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audit = train("--epochs", "1", "--val-fraction", "0.2")
    printed = text_commands(capsys.readouterr().out)
    found = text_commands(audit_text(audit)) | page_commands(render_html(audit))
    assert printed <= found
    assert {shlex.split(command)[1] for command in printed} == {"train", "fix"}
    run_commands(printed)


@pytest.mark.slow
@pytest.mark.parametrize("flags", [("--epochs", "1", "--val-fraction", "0.2"), ("--max-steps", "3")])
def test_commands_for_every_cause(folder: Path, flags: tuple[str, ...]) -> None:
    audit = train(*flags)
    entry = next(entry for entry in audit.classes if entry.diagnosis)
    every = {advice_parts(Cause(name, None, None, 0.5, None, ()), entry, audit.source)[1] for name in ADVICE} - {""}
    assert {command.split("--method ")[1].split()[0] for command in every if "--method" in command} == {
        *("sam", "crt", "lmdl", "feature-norm", "logit-adjustment")
    }
    run_commands(every)
    for words in map(shlex.split, every):
        if words[1] == "train":
            assert Audit.load(Path(words[-1]) / "audit.json").overall.n_samples == audit.overall.n_samples


def biased_scores() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    targets = np.repeat(np.arange(4), 60)
    logits = rng.normal(size=(240, 4)) + 4 * np.eye(4)[targets]
    logits[:, 0] -= 3.5
    return logits, targets


@pytest.mark.parametrize("kind", ["npz", "csv", "shards", "folder"])
def test_commands_of_prediction_files(kind: str, folder: Path) -> None:
    logits, targets = biased_scores()
    if kind == "npz":
        source = "my $scores.npz"
        np.savez(source, logits=logits, targets=targets)
    elif kind == "csv":
        source = "my scores.csv"
        rows = [",".join(map(str, (target, *row))) for target, row in zip(targets, logits, strict=True)]
        Path(source).write_text("\n".join(["target,0,1,2,3", *rows]) + "\n")
    elif kind == "shards":
        source = "part-*.npz"
        for i, rows in enumerate(np.array_split(np.arange(240), 2)):
            np.savez(f"part-{i}.npz", logits=logits[rows], targets=targets[rows])
    else:
        source = "arrays of a run"
        Path(source).mkdir()
        np.save(f"{source}/logits.npy", logits)
        np.save(f"{source}/targets.npy", targets)
    audit = Audit.from_file(source)
    found = text_commands(audit_text(audit)) | page_commands(render_html(audit))
    assert found == {f"classgap fix {shlex.quote(source)}"}
    run_commands(found)


@pytest.mark.parametrize("lack", ["targets", "samples"])
def test_no_command_is_advised_that_could_not_run(lack: str, folder: Path) -> None:
    logits, targets = biased_scores()
    if lack == "targets":
        np.save("scores.npy", logits)
        np.save("targets.npy", targets)
        audit = Audit.from_file("scores.npy", targets="targets.npy")
    else:  # one sample of the last class
        np.savez("scores.npz", logits=logits[:181], targets=targets[:181])
        audit = Audit.from_file("scores.npz")
        assert main(["fix", "scores.npz"]) != 0
    assert "decision-bias" in {cause.name for entry in audit.classes for cause in entry.diagnosis}
    assert not text_commands(audit_text(audit)) | page_commands(render_html(audit))
