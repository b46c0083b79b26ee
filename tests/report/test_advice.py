"""Evidence and advice for every cause."""

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from html_reader import Page
from synthetic_audits import with_budgets

from classgap import methods
from classgap.audit import Audit, read_predictions
from classgap.audit.figures import FIGURES, ClassResult
from classgap.audit.results import AuditSource, Cause, Interval, OffsetChange
from classgap.cli.fix_command import FixCommand
from classgap.cli.main import COMMANDS
from classgap.cli.parser import parse
from classgap.engine.config import TrainConfig, write_config
from classgap.report import audit_text, render_html
from classgap.report.advice import ADVICE, advice, advice_parts, fix_command, remedy_advice
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
    "too-few-test-samples": cause("too-few-test-samples", 20, 90, accuracy=0.4, classes=10, mean=0.75),
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
        ("under-trained", ("61.0 %", "60.0 %", "97.0 %", "1.52 to 1.21", "epoch 10 of 20")),
        ("over-fitted", ("99.0 %", "59.0 %", "8.0 points")),
        ("wrong-labels", ("12 of its 23 errors", "3.0 %")),
        ("decision-bias", ("5 of its 23 errors", "break 2 of its correct predictions")),
        ("close-boundary", ("7 of its 23 errors", "breaks 1 of its correct predictions.")),
        ("overlap", ("11 of its 23 errors", "predicted as notebook", "4 samples of notebook")),
        ("large-spread", ("3.00", "1.50 times", "2.00")),
        ("representation", ("6 of its 23 errors",)),
        ("too-few-test-samples", ("40.0 %", "20 test samples", "35.0 points below", "10 equally", "about 90")),
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


@pytest.fixture(scope="module")
def run_source(tmp_path_factory: pytest.TempPathFactory) -> AuditSource:
    """The source of a run directory, as ``classgap train`` writes it."""
    run = tmp_path_factory.mktemp("my runs") / "run 1"
    run.mkdir()
    config = TrainConfig(data="digits", model="mlp", method="erm", epochs=30, out=run)
    write_config(config, run / "config.yaml")
    (run / "metrics.jsonl").write_text('{"final": true}\n')
    np.savez(run / "predictions.npz", logits=np.tile(np.eye(3), (2, 1)), targets=[0, 1, 2] * 2)
    source = read_predictions(run).source
    assert source is not None
    return source


def parsed(command: str) -> Any:
    """Parse a command with the parser of the command line."""
    program, action, *words = shlex.split(command)
    assert program == "classgap"
    return parse(action, COMMANDS[action], words)


@pytest.mark.parametrize("name", FULL)
def test_commands_parse_and_keep_the_settings_of_the_run(name: str, entry: ClassResult, run_source: AuditSource):
    sentence, command = advice_parts(FULL[name], entry, run_source)
    assert advice(FULL[name], entry, run_source).startswith(sentence)
    if name in ("wrong-labels", "too-few-test-samples", "not-enough-evidence"):
        assert command == ""
        return
    settings = parsed(command)
    if isinstance(settings, FixCommand):
        assert settings.sources == (Path(run_source.predictions),)
        return
    assert (settings.data, settings.model) == ("digits", "mlp")
    assert str(settings.out) != run_source.run
    assert settings.method in methods.names()
    assert (settings.method, settings.epochs) != ("erm", 30)  # something changes


@pytest.mark.parametrize("name", FULL)
@pytest.mark.parametrize("has_scores", [True, False])
def test_prediction_files_get_commands_without_placeholders(name: str, has_scores: bool, entry: ClassResult):
    source = AuditSource("my predictions.npz", has_scores)
    sentence, command = advice_parts(FULL[name], entry, source)
    assert not re.search(r"\b[A-Z]{2,}\b|\bN\b", sentence + command)
    assert bool(command) == (has_scores and name in ("few-training-samples", "decision-bias"))
    if command:
        assert parsed(command).sources == (Path("my predictions.npz"),)


@pytest.mark.parametrize("name", FULL)
def test_arrays_get_advice_in_words(name: str, entry: ClassResult):
    sentence, command = advice_parts(FULL[name], entry)
    assert command == ""
    assert "--" not in sentence
    assert "classgap" not in sentence
    found = re.search(r"\(([a-z-]+)\)$", sentence)
    assert found is None or found[1] in methods.names()


def test_run_with_validation_samples_is_fixed_as_a_run(entry: ClassResult, run_source: AuditSource):
    held_out = replace(run_source, has_validation=True)
    assert parsed(fix_command(held_out)).sources == (Path(str(run_source.run)),)
    assert parsed(fix_command(run_source)).sources == (Path(run_source.predictions),)
    assert fix_command(None) == ""


def test_test_predictions_are_no_held_out_samples(run_source: AuditSource):
    plain = AuditSource("my predictions.npz", has_scores=True)
    for source, remedy in ((run_source, "train with --val-fraction"), (plain, "with --test")):
        sentence, command = remedy_advice(source)
        assert "no untouched test set afterwards" in sentence
        assert remedy in sentence
        assert command == fix_command(source)
    sentence, _ = remedy_advice(replace(run_source, has_validation=True))
    assert "validation samples" in sentence
    assert "untouched" not in sentence


def test_longer_training_doubles_epochs_or_steps(entry: ClassResult, run_source: AuditSource):
    assert parsed(advice_parts(FULL["under-trained"], entry, run_source)[1]).epochs == 60
    brief = replace(run_source, epochs=1)  # two epochs would be too few as well
    assert parsed(advice_parts(FULL["under-trained"], entry, brief)[1]).epochs == 10
    by_steps = replace(run_source, epochs=None, max_steps=500)
    assert parsed(advice_parts(FULL["under-trained"], entry, by_steps)[1]).max_steps == 1000


def test_advice_has_the_numbers(entry: ClassResult):
    more = advice(FULL["few-training-samples"], entry)
    assert "73 more training samples" in more
    assert "have 100. To detect a change of 3 points, you need 1,068 test samples of this class. For now" in more
    assert "test samples" not in advice(cause("few-training-samples", 27, 100, test_samples_for_3_points=0), entry)
    assert "12, 57" in advice(FULL["wrong-labels"], entry)
    assert "70 more test samples" in advice(FULL["too-few-test-samples"], entry)
    tested = replace(entry, support=1068)
    assert "3 points" not in advice(FULL["few-training-samples"], tested)
    assert "features, training counts" in advice(FULL["not-enough-evidence"], entry)
    assert "3, 1" in advice(cause("not-enough-evidence"), entry)
    assert "notebook" in advice(FULL["overlap"], entry)
    assert "(valid_labels)" in advice(FULL["overlap"], entry)
    given = replace(FULL["overlap"], details={**FULL["overlap"].details, "valid_labels": "given"})
    assert "check that the valid labels hold both where a sample shows both" in advice(given, entry)


@pytest.mark.parametrize(
    ("compared", "usual", "accurate", "whose", "goal"),
    [
        ("median", 18.0, 25.0, "classes above the mean accuracy usually have", 25),
        ("median", 42.5, 40.0, "the median class has", 43),
        ("classes-above-mean", 42.5, 42.5, "classes above the mean accuracy usually have", 43),
    ],
)
def test_missing_training_samples_add_up(compared, usual, accurate, whose, goal, entry: ClassResult):
    found = cause("few-training-samples", 15, usual, compared_with=compared, accurate_classes_have=accurate)
    assert f"Collect at least {goal - 15} more training samples, because {whose} {goal}." in advice(found, entry)
    assert cause_evidence(found).endswith(f" {-(-usual // 1):.0f}.")


def test_each_number_of_test_samples_says_what_it_is_for(entry: ClassResult):
    for wanted, evidence, more in (
        (1768, "about 1,768 samples would", "about 1,728 more test samples"),
        (39.5, "slightly more samples would", "a few more test samples"),
    ):
        found = cause("too-few-test-samples", 40, wanted, test_samples_for_3_points=4080)
        assert f"{evidence} be enough to decide whether it is below the mean." in cause_evidence(found)
        assert advice(found, replace(entry, support=40)) == (
            f"Collect {more} of the class to decide whether it is below the mean. "
            "To detect a change of 3 points, you need 4,080 test samples of this class."
        )


def test_several_overlapping_classes_are_named(entry: ClassResult):
    found = cause("overlap", 0.4, None, "a", count=20, errors=30, rate=0.4, others=("a", "b", "c"))
    assert cause_evidence(found) == "20 of its 30 errors are predicted as a, b or c."
    assert "with a, b or c if" in advice(found, entry)


def test_models_without_a_head_get_no_advice_to_retrain_it(entry: ClassResult, run_source: AuditSource):
    found = cause("close-boundary", removed=7, errors=23, added=1, head="none")
    assert "linear classifier" in cause_evidence(found)
    assert "linear classifier" in advice(found, entry)
    assert advice_parts(found, entry, run_source)[1] == ""


def test_prior_correction_needs_training_counts(entry: ClassResult):
    assert "priors" in advice(FULL["decision-bias"], entry)
    assert "priors" not in advice(FULL["decision-bias"], replace(entry, train_count=None))


def test_long_lists_of_samples_are_cut(entry: ClassResult):
    text = advice(FULL["wrong-labels"], replace(entry, doubted_samples=tuple(range(100, 150))))
    assert "129" in text
    assert "130" not in text
    assert "20 more" in text


def test_terminal_does_not_break_commands(audit: Audit, run_source: AuditSource):
    text = audit_text(replace(audit, source=run_source))
    commands = [match[0] for match in re.finditer(r"classgap (train|fix) .*", text)]
    assert commands
    for command in commands:
        parsed(command)


def test_every_command_of_the_page_parses(audit: Audit, run_source: AuditSource):
    shown = replace(audit, source=run_source)
    (data,) = Page(render_html(shown)).data
    commands = [text for text in data["texts"] if text.startswith("classgap ")]
    assert commands
    for command in commands:
        parsed(command)


def test_audit_of_another_directory_names_no_run(tmp_path: Path):
    (tmp_path / "config.yaml").write_text("model: {layers: 3}")
    np.savez(tmp_path / "predictions.npz", predictions=[0, 1], targets=[0, 1])
    source = Audit.from_file(tmp_path).source
    assert source == AuditSource(str(tmp_path / "predictions.npz"), has_scores=False)


def test_offsets_and_their_command_are_shown(audit: Audit, labels_audit: Audit, run_source: AuditSource):
    change = OffsetChange(overall=0.012, easy=-0.023, hard=0.341, hard_interval=Interval(0.3, 0.38))
    known = replace(with_budgets(audit), offset_change=change, source=run_source)
    page = " ".join(text for _, text in Page(render_html(known)).texts)
    for shown in (audit_text(known), page):
        text = " ".join(shown.replace("\N{NO-BREAK SPACE}", " ").split())
        for fact in ("+34.1", "+30.0 to +38.0", "−2.3", "+1.2"):
            assert fact in text
        assert fix_command(run_source).split("'")[0] in text
    for unknown in (labels_audit, replace(known, offset_change=OffsetChange(0.0, 0.0, 0.0, Interval(0.0, 0.0)))):
        assert "Class offsets would" not in audit_text(unknown)
