"""The surface is frozen here: a new command or flag needs an edit of this file."""

import dataclasses
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from classgap import __version__
from classgap.cli import main
from classgap.cli.main import COMMANDS

SURFACE = {
    "demo": "--out --seeds --epochs --overwrite",
    "train": """
        --data --model --method --out --epochs --max-steps --batch-size --optimizer --lr --loss-lr --momentum --nesterov
        --weight-decay --layer-decay --schedule --warmup-epochs --warmup-steps --warmup-start-factor --min-lr
        --milestones --gamma --clip-grad --micro-batches
        --precision --channels-last --compile --augment --mix --sampler --val-fraction --val-fold --split-seed --monitor
        --ema-decay --swa-start --swa-lr --wise-ft-alpha --seed --save-every --save-features --save-train-features
        --class-stats --audit --tensorboard --device --config --dry-run --overwrite
    """,
    "predict": "RUN INPUTS --out --split --top-k --fix --on-error --batch-size --workers --device",
    "export": "RUN --onnx --hub-card",
    "audit": """
        SOURCE --html --json --csv --rank-by --groups --confidence-level --seed --valid-labels --slices
        --superclasses --hierarchy --targets --features --train-counts --name --map --check-labels --thumbnails
        --images --key
    """,
    "compare": """
        SOURCES --n-runs --html --json --csv --confidence-level --seed --key --rename --unpaired --correction
    """,
    "gate": """
        BEFORE AFTER --rules --max-class-drop --max-group-drop --min-class-accuracy --max-gap --confidence-level --key
        --rename --unpaired --seed --json --junit --markdown
    """,
    "history": "SOURCES --html --json",
    "fix": """
        SOURCES --test --goal --max-easy-loss --max-overall-loss --max-medium-loss --costs --priors --html --json --out
        --confidence-level --seed
        --data --model --budget --n-trials --methods --epochs --val-fraction --executor --study-dir
    """,
    "reproduce": """
        NAME --scale --seeds --cells --executor --results-dir --files --train --keep-runs --html --markdown --csv
    """,
    "methods": "NAME",
    "datasets": "NAME",
    "models": "NAME",
    "recipes": "NAME",
}


def test_commands_and_flags():
    found = {}
    for name, command in COMMANDS.items():
        found[name] = [
            command.ARGS[field.name].metavar + "S" * field.name.endswith("s")
            if field.name in command.ARGS and command.ARGS[field.name].positional
            else f"--{field.name.replace('_', '-')}"
            for field in dataclasses.fields(command)
        ]
    assert found == {name: flags.split() for name, flags in SURFACE.items()}


@pytest.mark.parametrize("name", SURFACE)
def test_help_has_every_flag_and_an_example_in_eighty_columns(name: str, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert all(f" {flag.rstrip('S')}" in text for flag in SURFACE[name].split())
    assert f"classgap {name}" in text.split("Example")[1]
    assert max(map(len, text.splitlines())) <= 80


def test_help_groups_cover_every_training_setting_once():
    command = COMMANDS["train"]
    grouped = [name for members in command.GROUPS.values() for name in members]
    assert len(grouped) == len(set(grouped))
    assert {field.name for field in dataclasses.fields(command)} - set(grouped) == {"config", "dry_run"}


def test_front_page_has_one_line_per_command(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {name} " in text for name in COMMANDS)
    assert "classgap COMMAND --help" in text
    assert max(map(len, text.splitlines())) <= 80
    assert main([]) == 2
    assert capsys.readouterr().out == text


def test_unknown_command(capsys):
    assert main(["adit"]) == 2
    err = capsys.readouterr().err
    assert "'adit'" in err
    assert "did you mean audit?" in err


def test_usage_error_is_one_line_that_names_the_help_page(capsys):
    assert main(["train", "--data", "digits", "--epochs", "three"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("classgap: --epochs must be an integer, got 'three'. ")
    assert "`classgap train --help`" in err


def test_python_m_classgap_and_a_closed_pipe(tmp_path):
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


def test_an_interrupted_import_ends_quietly(tmp_path):
    (tmp_path / "torch.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "classgap", "audit", "test.npz"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a test suite in the background may ignore it
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
