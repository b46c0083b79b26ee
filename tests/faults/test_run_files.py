"""Damaged settings, weights, checkpoints, audits and links end in one line that names the file."""

import json
import os
import zlib
from base64 import b64encode
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from classgap.audit import Audit
from classgap.audit.gate_rules import GateRules
from classgap.audit.serialization import sample_limit
from classgap.cli.main import main
from classgap.engine.config import read_settings
from classgap.engine.storage.checkpoint import load_checkpoint, save_checkpoint
from classgap.engine.storage.run_directory import RunDirectory
from classgap.models import build
from classgap.models.checkpoint import architecture
from classgap.models.state_files import read_weights

LAUGHS = "a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
)
YAML = {
    "deep": "a: " + "[" * 1500,
    "laughs": LAUGHS,
    "endless": "a: &a [*a]\n",
    "impossible date": "data: 2024-99-99\n",
    "not a bool": "data: !!bool 7\n",
    "not a time": "data: !!timestamp x\n",
    "object": "data: !!python/object/apply:os.getcwd []\n",
    "open quote": "data: 'digits\nepochs: 3\n",
    "control character": "data: \x07\n",
    "list of keys": "? [a, b]\n: 1\n",
}


@pytest.mark.parametrize("name", YAML)
@pytest.mark.parametrize("read", [read_settings, GateRules.load])
def test_damaged_yaml_is_reported_in_one_line(tmp_path, name, read):
    path = tmp_path / "mine.yaml"
    path.write_text(YAML[name])
    with pytest.raises(ValueError, match=r"mine\.yaml") as raised:
        read(path)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 1000


def test_large_values_are_printed_in_part(tmp_path):
    (tmp_path / "mine.yaml").write_text("epochs: [" + "[1, 2, 3], " * 900 + "1]\nunknown: " + "x" * 9000)
    with pytest.raises(ValueError, match="epochs") as raised:
        read_settings(tmp_path / "mine.yaml")
    assert len(str(raised.value)) < 1000


def run_with(tmp_path, settings):
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.yaml").write_text(settings.format(run=run))
    save_file({"fc.weight": torch.zeros(2, 3)}, run / "checkpoints" / "model.safetensors")
    return run


@pytest.mark.parametrize("settings", ["data: 'digits", "model: 7", "model: [a, b]", "a: " + "[" * 1500])
def test_runs_with_damaged_settings_are_no_checkpoints(tmp_path, settings):
    run = run_with(tmp_path, settings)
    with pytest.raises(ValueError, match=r"config\.yaml") as raised:
        read_weights(run)
    assert "\n" not in str(raised.value)


def test_a_checkpoint_may_not_name_itself(tmp_path):
    run = run_with(tmp_path, "model: checkpoint:{run}")
    for read in (architecture, lambda name: build(name, num_classes=2, input_shape=(3,))):
        with pytest.raises(ValueError, match="names itself") as raised:
            read(f"checkpoint:{run}")
        assert str(run) in str(raised.value)


WEIGHTS = {
    "integer keys": {0: torch.zeros(2)},
    "sparse": {"fc.weight": torch.eye(3).to_sparse()},
    "meta": {"fc.weight": torch.empty(3, device="meta")},
    "quantized": {"fc.weight": torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)},
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_that_cannot_be_copied_are_rejected(tmp_path, name):
    torch.save(WEIGHTS[name], tmp_path / "w.pt")
    with pytest.raises(ValueError, match=r"w\.pt") as raised:
        read_weights(tmp_path / "w.pt")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.3, 0.7, 0.99])
def test_truncated_weights_are_reported(tmp_path, fraction):
    torch.save({"fc.weight": torch.zeros(300, 3)}, tmp_path / "w.pt")
    content = (tmp_path / "w.pt").read_bytes()
    (tmp_path / "w.pt").write_bytes(content[: int(fraction * len(content))])
    with pytest.raises(ValueError, match=r"w\.pt"):
        read_weights(tmp_path / "w.pt")
    save_checkpoint({"x": torch.zeros(300, 3)}, tmp_path / "last.pt")
    content = (tmp_path / "last.pt").read_bytes()
    (tmp_path / "last.pt").write_bytes(content[: int(fraction * len(content))])
    with pytest.raises(ValueError, match=r"last\.pt") as raised:
        load_checkpoint(tmp_path / "last.pt")
    assert "Errno" not in str(raised.value)


@pytest.mark.parametrize("text", ["7", "[" * 9000])
def test_damaged_records_of_a_run_are_reported(tmp_path, text):
    directory = RunDirectory(tmp_path)
    directory.metrics.write_text(f"{text}\n")
    with pytest.raises(ValueError, match=r"metrics\.jsonl"):
        directory.read_metrics()


@pytest.fixture
def audit(tmp_path):
    targets = np.repeat(np.arange(6), 4)
    found = Audit.from_predictions(targets=targets, predictions=np.where(np.arange(24) % 5, targets, 0))
    found.save(tmp_path / "a.json")
    return json.loads((tmp_path / "a.json").read_text())


@pytest.mark.parametrize("third", ["easy", "medium", "hard"])
def test_audits_without_a_third_are_rejected(tmp_path, audit, third):
    del audit["groups"][third]
    (tmp_path / "b.json").write_text(json.dumps(audit))
    with pytest.raises(ValueError, match=rf"b\.json: groups\.{third}"):
        Audit.load(tmp_path / "b.json")


def test_samples_are_decompressed_up_to_the_stated_number(tmp_path, audit):
    zeros = zlib.compress(bytes(10**8))
    audit["samples"]["targets"] = {"dtype": "|u1", "data": b64encode(zeros).decode()}
    (tmp_path / "b.json").write_text(json.dumps(audit))
    with pytest.raises(ValueError, match="samples must have at most 24"):
        Audit.load(tmp_path / "b.json")


def test_stated_samples_are_bounded(tmp_path, audit):
    audit["overall"]["n_samples"] = 10**9
    assert sample_limit(audit) == {}  # then MAX_SAMPLES holds


@pytest.mark.parametrize("source", ["run/predictions.npz", "run", "other.npz"])
@pytest.mark.parametrize("name", ["config.yaml", "metrics.jsonl", "checkpoints/last.pt"])
def test_files_of_a_run_are_not_overwritten(tmp_path, monkeypatch, capsys, source, name):
    monkeypatch.chdir(tmp_path)
    Path("run/checkpoints").mkdir(parents=True)
    for path in ("run/predictions.npz", "other.npz"):
        np.savez(path, targets=np.arange(6) % 2, predictions=np.arange(6) % 2)
    for path in ("config.yaml", "metrics.jsonl", "checkpoints/last.pt"):
        Path("run", path).write_text("")
    assert main(["audit", source, "--json", f"run/{name}"]) == 2
    assert f"run/{name} would overwrite a file of the run" in capsys.readouterr().err
    assert Path("run", name).read_text() == ""


@pytest.mark.parametrize("name", ["config.yaml", "metrics.jsonl", "env.json", "checkpoints/last.pt", "predictions.npz"])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_links_to_files_of_a_run_are_not_written_through(tmp_path, monkeypatch, capsys, name, kind):
    monkeypatch.chdir(tmp_path)
    Path("run/checkpoints").mkdir(parents=True)
    np.savez("run/predictions.npz", targets=np.arange(6) % 2, predictions=np.arange(6) % 2)
    for path in ("config.yaml", "metrics.jsonl", "env.json", "checkpoints/last.pt"):
        Path("run", path).write_text("kept")
    before = Path("run", name).read_bytes()
    link = Path("link.json" if kind == "file" else "folder")
    link.symlink_to(Path("run", name) if kind == "file" else "run")
    assert main(["audit", "run", "--json", str(link if kind == "file" else link / name)]) == 2
    assert "would overwrite" in capsys.readouterr().err
    assert Path("run", name).read_bytes() == before


def test_stored_results_and_fixes_are_not_overwritten(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("results/entries").mkdir(parents=True)
    Path("results/entries/0a.json").write_text("kept")
    Path("fix").mkdir()
    Path("fix/fix.safetensors").write_text("kept")
    words = ["reproduce", "mr2-table-3", "--no-train", "--csv", "results/entries/0a.json"]
    assert main(words) == main(["predict", "run", "--fix", "fix", "--out", "fix/fix.safetensors"]) == 2
    assert capsys.readouterr().err.count("would overwrite") == 2
    assert Path("results/entries/0a.json").read_text() == Path("fix/fix.safetensors").read_text() == "kept"


LONE = "\ud800"


@pytest.mark.parametrize("flag", ["--groups", "--superclasses", "--hierarchy"])
def test_unpaired_surrogates_in_json_are_rejected(tmp_path, monkeypatch, capsys, audit, flag):
    monkeypatch.chdir(tmp_path)
    np.savez("ok.npz", targets=np.arange(6) % 2, predictions=np.arange(6) % 2)
    Path("g.json").write_text(json.dumps({LONE: ["0"], "0": LONE}))
    assert main(["audit", "ok.npz", flag, "g.json"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "g.json" in line
    Path("g.json").write_text(json.dumps({"group \U0001f600": ["0"]}))  # two escapes that are one character
    assert main(["audit", "ok.npz", "--groups", "g.json"]) == 0


def test_class_names_with_unpaired_surrogates_are_rejected(tmp_path, capsys):
    names = np.array(["a", f"{LONE}b"])
    np.savez(tmp_path / "p.npz", targets=np.arange(6) % 2, predictions=np.arange(6) % 2, class_names=names)
    assert main(["audit", str(tmp_path / "p.npz")]) == 2
    assert "p.npz: class_names must be valid Unicode" in capsys.readouterr().err


def test_file_names_that_are_no_utf8_are_replaced_in_reports(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("p.npz", targets=np.arange(6) % 2, predictions=np.arange(6) % 2)
    source = os.fsdecode(b"\xff.npz")
    Path("p.npz").rename(source)
    assert main(["audit", source, "--json", "a.json", "--html", "a.html", "--csv", "a.csv"]) == 0
    assert Audit.load("a.json").name == "\ufffd"
    assert main(["train", "--data", "digits", "--out", source]) == 2
    assert "UTF-8" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
@pytest.mark.parametrize("flag", ["--json", "--html", "--csv"])
def test_a_full_disk_names_the_file(tmp_path, monkeypatch, capsys, flag):
    monkeypatch.chdir(tmp_path)
    np.savez("ok.npz", targets=np.arange(6) % 2, predictions=np.arange(6) % 2)
    assert main(["audit", "ok.npz", flag, "/dev/full"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "/dev/full" in line


@pytest.mark.parametrize("length", [211, 255, 300, 5000])
def test_long_output_names_are_rejected(tmp_path, monkeypatch, capsys, length):
    monkeypatch.chdir(tmp_path)
    np.savez("ok.npz", targets=np.arange(6) % 2, logits=np.eye(6, 2))
    assert main(["audit", "ok.npz", "--json", "x" * length]) == main(["fix", "ok.npz", "--out", "x" * length]) == 2
    assert capsys.readouterr().err.count("at most 210 bytes") == 2


@pytest.mark.parametrize(
    "words",
    [
        ["audit", "loop"],
        ["audit", "loop.npz"],
        ["audit", "a.json", "--html", "loop"],
        ["audit", "a.json", "--csv", "loop/x.csv"],
        ["gate", "a.json", "loop", "--max-gap", "3"],
        ["fix", "loop"],
        ["fix", "a.json", "--out", "loop"],
    ],
)
def test_links_that_lead_back_to_themselves_are_reported(tmp_path, monkeypatch, capsys, audit, words):
    monkeypatch.chdir(tmp_path)
    for name in ("loop", "loop.npz"):
        Path(name).symlink_to(name)
    assert main(words) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "loop" in lines[0] or words[:2] == ["fix", "a.json"]
