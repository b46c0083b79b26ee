"""Every method is described: summary, paper, options with sources, and an example that works."""

import re
import shlex

import pytest

from classgap import methods
from classgap.methods.describe import MethodDescription
from classgap.methods.entry import CODE, OURS, PAPER, ROLES

CONTROLS = {"erm", "feature-norm"}  # have no paper
GIVEN = {"num_classes": 2, "class_counts": [90, 10], "feature_dim": 4, "num_samples": 100}


@pytest.mark.parametrize("name", methods.names())
def test_every_method_is_described(name: str) -> None:
    method = MethodDescription.from_name(name)
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


def test_names_with_summaries_fit_80_columns() -> None:
    width = max(map(len, methods.names()))
    summaries = [MethodDescription.from_name(name).entry.summary for name in methods.names()]
    assert width + len("  ") + max(map(len, summaries)) <= 80


@pytest.mark.parametrize("name", methods.names())
def test_examples_name_existing_methods(name: str) -> None:
    words = shlex.split(MethodDescription.from_name(name).command)
    assert words[:2] == ["classgap", "train"]
    text = words[words.index("--method") + 1]
    assert name in text.split("+")
    methods.build(text, **GIVEN)


def test_defaults_can_be_typed() -> None:
    for name in methods.names():
        options = [option for option in MethodDescription.from_name(name).options if option.default != "None"]
        methods.build(":".join([name, *(f"{each.name}={each.default}" for each in options)]), **GIVEN)
