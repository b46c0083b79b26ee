"""Evidence and advice for every cause."""

import re
import shlex
from dataclasses import replace

import pytest

from classgap import methods
from classgap.audit import Audit
from classgap.audit.figures import FIGURES, ClassResult
from classgap.audit.results import Cause
from classgap.cli.parser import parse
from classgap.cli.train_command import TrainCommand
from classgap.report import audit_text
from classgap.report.advice import ADVICE, advice, advice_parts
from classgap.report.causes import SENTENCES, cause_evidence
from classgap.report.class_table import format_cell
from classgap.report.display_names import CAUSES, cause_name
from classgap.report.notes import DIAGNOSIS
from classgap.report.summary import cause_sentence


def cause(name: str, figure: float | None = None, reference: float | None = None, other: str | None = None, **details):
    return Cause(name, figure, reference, 0.5, other, (), details)


FULL = {
    "few-training-samples": cause("few-training-samples", 27, 100, test_samples_for_3_points=1068),
    "under-trained": cause(
        *("under-trained", 0.97, 0.6),
        train_accuracy=0.61,
        test_accuracy=0.6,
        refitted_accuracy=0.97,
        loss_before=1.52,
        loss_after=1.21,
        loss_epoch=10,
        epochs=20,
    ),
    "over-fitted": cause("over-fitted", 0.4, 0.1, train_accuracy=0.99, test_accuracy=0.59, usual_gap=0.08),
    "wrong-labels": cause("wrong-labels", doubted=12, errors=23, usual=0.03),
    "decision-bias": cause("decision-bias", removed=5, errors=23, added=2),
    "close-boundary": cause("close-boundary", removed=7, errors=23, added=1),
    "overlap": cause("overlap", 0.3, None, "notebook", count=11, errors=23, back_count=4, rate=0.3),
    "large-spread": cause("large-spread", 3.0, 2.0),
    "representation": cause("representation", left=6, errors=23),
    "too-few-test-samples": cause("too-few-test-samples", 20, 90, accuracy=0.4, classes=10),
    "not-enough-evidence": cause("not-enough-evidence", missing=("features", "train-counts")),
}


@pytest.fixture
def entry(audit: Audit) -> ClassResult:
    return replace(audit.classes[0], doubted_samples=(12, 57), confident_errors=(3, 1), train_count=27.0)


def test_every_cause_has_a_name_a_sentence_and_advice():
    assert set(FULL) == set(SENTENCES) == set(ADVICE) == set(CAUSES)


@pytest.mark.parametrize("name", FULL)
def test_a_cause_has_one_name_in_the_class_table_the_diagnosis_and_the_note(name: str, entry: ClassResult):
    failing = replace(entry, diagnosis=(FULL[name],))
    figure = next(figure for figure in FIGURES if figure.name == "diagnosis")
    assert format_cell(figure, failing) == cause_name(name)
    assert cause_sentence(failing).startswith(f"{cause_name(name)}: ")
    if name not in ("too-few-test-samples", "not-enough-evidence"):  # without a threshold of their own
        assert f" {cause_name(name).capitalize()}: " in DIAGNOSIS


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("few-training-samples", ("27 training samples", "100")),
        ("under-trained", ("61.0 %", "60.0 %", "97.0 %", "1.52 to 1.21", "epoch 10 of 20", "train longer")),
        ("over-fitted", ("99.0 %", "59.0 %", "8.0 points")),
        ("wrong-labels", ("12 of its 23 errors", "3.0 %")),
        ("decision-bias", ("5 of its 23 errors", "break 2 correct predictions")),
        ("close-boundary", ("7 of its 23 errors", "breaks 1 correct prediction.")),
        ("overlap", ("11 of its 23 errors", "predicted as notebook", "4 samples of notebook")),
        ("large-spread", ("3.00", "1.50 times", "2.00")),
        ("representation", ("6 of its 23 errors",)),
        ("too-few-test-samples", ("40.0 %", "20 test samples", "10 classes", "about 90")),
        ("not-enough-evidence", ("features, training counts",)),
    ],
)
def test_evidence_has_the_numbers(name: str, facts: tuple[str, ...]):
    text = cause_evidence(FULL[name])
    assert all(fact in text for fact in facts), text
    assert text.endswith(".")


@pytest.mark.parametrize("name", FULL)
def test_missing_numbers_are_left_out(name: str, entry: ClassResult):
    bare = replace(entry, doubted_samples=(), confident_errors=(), train_count=None)
    for text in (cause_evidence(cause(name)), advice(cause(name), bare)):
        assert "None" not in text
        assert "  " not in text


@pytest.mark.parametrize("name", FULL)
def test_commands_can_be_run(name: str, entry: ClassResult):
    sentence, command = advice_parts(FULL[name], entry)
    assert advice(FULL[name], entry).startswith(sentence)
    if not command:
        assert "--" not in sentence
        return
    program, action, *words = shlex.split(command.replace("DATA", "mnist1d").replace(" N", " 10"))
    assert (program, action) == ("classgap", "train")
    assert parse("train", TrainCommand, words).data == "mnist1d"
    found = re.search(r"--method (\S+)", command)
    assert found is None or found[1] in methods.names()


def test_advice_has_the_numbers(entry: ClassResult):
    more = advice(FULL["few-training-samples"], entry)
    assert "73 more training samples" in more
    assert "about 100" in more
    assert "1,068 test samples" in more
    assert "12, 57" in advice(FULL["wrong-labels"], entry)
    assert "70 more test samples" in advice(FULL["too-few-test-samples"], entry)
    assert "features, training counts" in advice(FULL["not-enough-evidence"], entry)
    assert "3, 1" in advice(cause("not-enough-evidence"), entry)
    assert advice(cause("under-trained", epochs=30), entry).endswith("--epochs 60")
    assert "notebook" in advice(FULL["overlap"], entry)


def test_prior_correction_needs_training_counts(entry: ClassResult):
    assert "post-hoc-logit-adjustment" in advice(FULL["decision-bias"], entry)
    assert "offset" in advice(FULL["decision-bias"], replace(entry, train_count=None))


def test_long_lists_of_samples_are_cut(entry: ClassResult):
    text = advice(FULL["wrong-labels"], replace(entry, doubted_samples=tuple(range(100, 150))))
    assert "129" in text
    assert "130" not in text
    assert "20 more" in text


def test_terminal_does_not_break_commands(audit: Audit):
    text = audit_text(audit)
    commands = [line for line in text.splitlines() if "classgap train" in line]
    assert commands
    assert all(re.search(r"--(method|epochs) \S+$", line) for line in commands)
