"""The catalogue is complete, and docs/methods.md is what it says."""

import re
import resource
import shlex
import sys
from pathlib import Path

import pytest

from classgap import methods
from classgap.methods.describe import Explained
from classgap.methods.entry import CODE, OURS, PAPER, ROLES
from classgap.methods.page import END, main, page, rewritten

DOCS = Path(__file__).parents[2] / "docs" / "methods.md"
CONTROLS = {"erm", "feature-norm"}  # what people would try first; without a paper
GIVEN = {"num_classes": 2, "class_counts": [90, 10], "feature_dim": 4, "num_samples": 100}


def test_the_page_is_that_of_the_catalogue() -> None:
    written = DOCS.read_text(encoding="utf-8")
    assert written.startswith(page()), "docs/methods.md is old: python -m classgap.methods.page docs/methods.md"


def test_what_is_written_by_hand_is_kept() -> None:
    assert rewritten(f"old\n{END}\nmeasured\n") == page() + "measured\n"
    assert rewritten("") == page()


def test_a_page_that_cannot_be_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "methods.md"
    path.write_text(f"old\n{END}\nmeasured\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch.setattr(sys, "argv", ["page", str(path)])
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, hard))  # as on a full disk
    try:
        with pytest.raises(OSError, match="File too large"):
            main()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == f"old\n{END}\nmeasured\n"
    main()
    assert path.read_text() == page() + "measured\n"


@pytest.mark.parametrize("name", methods.names())
def test_every_method_is_explained(name: str) -> None:
    method = Explained.from_name(name)
    entry = method.entry
    assert re.fullmatch(r"[A-Z][^\n]{10,}\.", entry.summary)
    assert bool(entry.paper) != (name in CONTROLS)
    assert entry.role in ROLES
    assert len(method.text) > 100
    assert ">>>" not in method.text
    assert entry.origins.keys() == entry.options().keys()
    for option in method.options:
        assert option.origin.startswith((PAPER, CODE, OURS)), option
        assert option.meaning, option


@pytest.mark.parametrize("name", methods.names())
def test_examples_name_methods_that_exist(name: str) -> None:
    words = shlex.split(Explained.from_name(name).command)
    assert words[:2] == ["classgap", "train"]
    text = words[words.index("--method") + 1]
    assert name in text.split("+")
    methods.build(text, **GIVEN)


def test_defaults_can_be_typed() -> None:
    for name in methods.names():
        options = [option for option in Explained.from_name(name).options if option.default != "None"]
        methods.build(":".join([name, *(f"{each.name}={each.default}" for each in options)]), **GIVEN)
