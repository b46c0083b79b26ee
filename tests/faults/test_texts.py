"""Properties of the parsers of names with options, flags and tables, over texts that nobody would type."""

import csv
import math
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from classgap.audit import read_predictions
from classgap.cli.main import describe_error
from classgap.engine.config import parse_settings
from classgap.registry import Spec, convert, validate

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
VALUES = st.text(st.characters(exclude_characters=":=", exclude_categories=["Cs"]), max_size=8)
OPTIONS = st.dictionaries(NAMES, VALUES, max_size=4)


@given(NAMES, OPTIONS)
def test_names_with_options_are_parsed_back(name, options):
    spec = Spec.parse(":".join([name, *(f"{key}={value}" for key, value in options.items())]))
    assert (spec.name, spec.argument, dict(spec.options)) == (name, None, options)


@given(st.text(max_size=40))
def test_any_text_is_a_component_or_an_error(text):
    try:
        name = Spec.parse(text).name
    except ValueError:
        name = ""
        assert not text or text.startswith(":") or text.count("=") > 1
    assert text.startswith(name)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.sampled_from(["epochs", "lr", "seed", "milestones", "audit", "monitor", "out"]), PLAIN)
def test_settings_of_any_type_are_converted_or_named(name, value):
    message = name
    try:
        parse_settings({name: value})
    except ValueError as error:
        message = describe_error(error)
    assert name in message
    assert len(message) < 1000


@given(st.integers() | st.floats(allow_nan=False), st.sampled_from([int, float]))
def test_numbers_survive_as_text(value, kind):
    if kind is int and not isinstance(value, int):
        value = math.floor(value) if math.isfinite(value) else 0
    assert convert("x", str(value), kind) == kind(value) == validate("x", kind(value), kind)


LABELS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=6)


@settings(deadline=None, max_examples=40)
@given(st.lists(LABELS, min_size=2, max_size=4, unique=True), st.randoms(use_true_random=False))
def test_labels_survive_in_csv_files(names, random):
    targets, predictions = ([random.choice(names) for _ in range(9)] for _ in range(2))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "p.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("target", "prediction"), *zip(targets, predictions, strict=True)])
        found = read_predictions(path)
    assert [found.class_names[k] for k in found.targets_N] == targets
    assert [found.class_names[k] for k in found.predictions_N] == predictions
