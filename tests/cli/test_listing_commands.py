import re

import pytest

from classgap.cli import main
from classgap.data import DATASETS
from classgap.models import MODELS

REGISTRIES = {"datasets": DATASETS, "models": MODELS}
ENTRIES = [(command, name) for command, registry in REGISTRIES.items() for name in registry.names()]


@pytest.mark.parametrize("command", REGISTRIES)
def test_list_has_one_line_per_entry_and_fits_a_screen(command: str, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    listed = [line.split()[0].split(":")[0].rstrip("*") for line in text.split("\n\n")[0].splitlines()]
    assert listed == REGISTRIES[command].names()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 80
    assert "classgap[vision]" in text


@pytest.mark.parametrize("command", ["methods", "datasets", "models", "recipes"])
def test_lists_align_all_descriptions(command: str, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command]) == 0
    text = capsys.readouterr().out
    lines = [line for line in text.split("\n\n")[0].splitlines() if line.startswith("  ")]
    starts = [re.match(r"  \S+ {2,}", line).end() for line in lines]  # type: ignore[union-attr]
    assert len(set(starts)) == 1
    assert max(map(len, lines)) <= 80
    assert command == "recipes" or "…" not in text  # a question can be longer; `classgap recipes NAME` has all of it


@pytest.mark.parametrize(("command", "name"), ENTRIES)
def test_description_has_every_option_with_default_type_and_meaning(command: str, name: str, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command, name]) == 0
    text = capsys.readouterr().out
    entry = REGISTRIES[command].entry(name)
    for option in entry.options():
        assert re.search(rf"^  {option.replace('_', '-')}=.*  \(.+\)\n      \S", text, re.MULTILINE), option
    assert f" {entry.usage}" in text
    assert max(map(len, text.splitlines())) <= 80


def test_description_shows_type_default_and_meaning(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["datasets", "folder"]) == 0
    text = capsys.readouterr().out
    assert "on-error=raise  (str)\n      " in text
    assert "data-seed" in text
    assert main(["models", "timm:resnet18"]) == 0
    assert "pretrained=no  (yes or no)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "name", "near"), [("datasets", "cifa100", "cifar100"), ("models", "lineer", "linear")]
)
def test_unknown_name(command: str, name: str, near: str, capsys):
    assert main([command, name]) == 2
    assert f"did you mean {near!r}?" in capsys.readouterr().err
