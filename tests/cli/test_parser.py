from pathlib import Path

import pytest

from classgap._synonyms import SYNONYMS
from classgap.cli.main import COMMANDS
from classgap.cli.parser import Command, build_parser, parse


def parse_words(name: str, *words: str) -> Command:
    return parse(name, COMMANDS[name], words)


@pytest.mark.parametrize(
    "words", [("--weight-decay", "0.1"), ("--weight-decay=0.1",), ("--weight_decay", "0.1"), ("--weight_decay=0.1",)]
)
def test_spellings_of_a_flag(words: tuple[str, ...]):
    assert parse_words("train", "--data", "digits", *words).weight_decay == 0.1


def test_underscores_in_values_are_kept():
    command = parse_words("train", "--data=features:a_b.npz", "--out", "my_run", "--model", "open_clip:ViT_B")
    assert (command.data, command.out, command.model) == ("features:a_b.npz", Path("my_run"), "open_clip:ViT_B")


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["--epochs", "3"], "epochs", 3),
        (["--epochs", "None"], "epochs", None),
        (["--lr", "1e-3"], "lr", 1e-3),
        (["--schedule", "step"], "schedule", "step"),
        (["--milestones", "2", "3.5"], "milestones", (2.0, 3.5)),
        (["--augment", "none"], "augment", "none"),
        (["--nesterov"], "nesterov", True),
        (["--nesterov", "--no-nesterov"], "nesterov", False),
        (["--no-audit"], "audit", False),
        ([], "audit", True),
        ([], "momentum", 0.9),
    ],
)
def test_values_have_the_types_of_the_fields(words: list[str], field: str, value: object):
    found = getattr(parse_words("train", "--data", "digits", *words), field)
    assert (found, type(found)) == (value, type(value))


def test_positional_arguments_may_be_between_options():
    command = parse_words("compare", "a.npz", "--html", "d.html", "b.npz", "--seed", "3", "c.npz")
    assert command.sources == (Path("a.npz"), Path("b.npz"), Path("c.npz"))
    assert (command.html, command.seed) == (Path("d.html"), 3)


@pytest.mark.parametrize(
    ("words", "sources"),
    [(["a", "--", "-b", "--seed"], ["a", "-b", "--seed"]), (["--seed", "3", "--", "--a_b", "--"], ["--a_b", "--"])],
)
def test_words_after_two_dashes_are_no_options(words: list[str], sources: list[str]):
    assert parse_words("compare", *words).sources == tuple(map(Path, sources))


@pytest.mark.parametrize("number", ["-1", "-0.5", "-1e-3", "-inf"])
def test_negative_numbers_are_values(number: str):
    assert parse_words("compare", "a", "b", "--confidence-level", number).confidence_level == float(number)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--data", "digits", "--lr", "abc"], "--lr must be a number, got 'abc'"),
        (["train", "--data", "digits", "--lr=abc", "--epochs", "3"], "--lr must be a number, got 'abc'"),
        (["train", "--data", "digits", "--epochs", "1.5"], "--epochs must be an integer, got '1.5'"),
        (["train", "--data", "digits", "--warmup_steps", "x"], "--warmup-steps must be an integer"),
        (["train", "--data", "digits", "--momentum", "None"], "--momentum must be a number, got 'None'"),
        (["train", "--data", "digits", "--milestones", "2", "x"], "--milestones must be a number, got 'x'"),
        (["train", "--data", "digits", "--schedule", "cosin"], "one of cosine, step, constant; got 'cosin'"),
        (["train", "--data", "digits", "--epoch", "3"], "--epoch; did you mean --epochs?"),
        (["train", "--data", "digits", "--epoch=3"], "--epoch; did you mean --epochs?"),
        (["train", "--data", "digits", "--frobnicate", "3"], "unknown option --frobnicate."),
        (["train", "--data", "digits", "more"], "unexpected argument 'more'"),
        (["train", "--data", "digits", "--nesterov=3"], "--nesterov"),
        (["train", "--model", "mlp"], "--data is required"),
        (["audit"], "SOURCE is required"),
        (["audit", "x.npz", "y.npz"], "unexpected argument 'y.npz'"),
        (["audit", "x.npz", "--html"], "--html expected one argument"),
        (["audit", "x.npz", "--html", "--json", "a.json"], "--html expected one argument"),
        (["compare", "a", "b", "--confidence-level", "high"], "--confidence-level must be a number"),
        (["compare", "--n-run", "2", "a", "b"], "did you mean --n-runs?"),
        (["compare"], "SOURCE is required"),
        (["audit", "x.npz", "--conf", "0.9"], "--conf; did you mean --confidence-level?"),
        (["fix", "val.npz", "--test"], "--test needs at least one value"),
        (["fix", "--test", "--json", "a.json", "val.npz"], "--test needs at least one value"),
        (["train", "--", "--data", "digits"], "unexpected argument '--data'"),
        (["train", "--data", "digits", "--epochs", "-1e2"], "--epochs must be an integer, got '-1e2'"),
    ],
)
def test_invalid_arguments_are_named(words: list[str], message: str):
    with pytest.raises(ValueError, match="--help") as error:
        parse_words(*words)
    assert message in str(error.value)
    assert f"`classgap {words[0]} --help`" in str(error.value)


def test_help_shows_defaults_choices_and_percent_signs():
    text = " ".join(build_parser("train", COMMANDS["train"]).format_help().split())
    for part in ("(default: 0.9)", "(default: 0.8 0.9)", "{cosine,step,constant}", "(required)", "depends on the data"):
        assert part in text
    assert "--no-audit" in text
    assert "--no-nesterov" not in text  # off by default: only needed against a file


OTHER_NAMES = [
    ("train", "--grad-accum-steps 4", "--micro-batches", "splits"),  # timm
    ("train", "--gradient_accumulation_steps=4", "--micro-batches", "splits"),  # Hugging Face
    ("train", "--accumulate-grad-batches 4", "--micro-batches", "splits"),  # Lightning
    ("train", "--val-split 0.1", "--val-fraction", "each training class"),
    ("train", "--validation_split=0.1", "--val-fraction", "each training class"),  # Keras
    ("train", "--lr-scheduler cosine", "--schedule", ""),
    ("train", "--sched cosine", "--schedule", ""),  # timm
    ("train", "--batch 64", "--batch-size", ""),
    ("train", "-b 64", "--batch-size", ""),  # timm
    ("train", "--per-device-train-batch-size 64", "--batch-size", "all processes"),  # Hugging Face
    ("train", "--clip-grad-norm 1", "--clip-grad", ""),
    ("train", "--max-grad-norm 1", "--clip-grad", ""),  # Hugging Face
    ("train", "--early-stopping", "--monitor", "does not stop early"),
    ("train", "--seeds 3", "--seed", "once per seed"),
    ("train", "--force", "--overwrite", ""),
    ("train", "--resume", "--out", "same command"),
    ("train", "--loss focal", "--method", ""),
    ("train", "--output-dir x", "--out", ""),  # Hugging Face
    ("compare", "--runs 3", "--n-runs", ""),
    ("compare", "--independent", "--unpaired", ""),
    ("audit", "--image-dir photos", "--images", ""),
    ("audit", "--title release", "--name", ""),
    ("reproduce", "--data clinc150=x.npz", "--files", ""),
    ("compare", "--seeds 3", "--n-runs", ""),
    ("compare", "--alpha 0.05", "--confidence-level", "1 - alpha"),
    ("demo", "--n-runs 3", "--seeds", ""),
    ("audit", "--out report.html", "--html", ""),
    ("audit", "--labels y.npy", "--targets", ""),
    ("fix", "--n-jobs 2", "--executor", "process"),  # scikit-learn
    ("predict", "--num-workers 2", "--workers", ""),  # torch
    ("export", "--output model.onnx", "--onnx", ""),
]


@pytest.mark.parametrize(("name", "words", "ours", "difference"), OTHER_NAMES)
def test_names_of_other_libraries_lead_to_ours(name: str, words: str, ours: str, difference: str):
    with pytest.raises(ValueError, match=f"did you mean {ours}\\?") as error:
        parse_words(name, *words.split())
    assert difference in str(error.value)


def test_every_synonym_leads_to_an_option_that_exists():
    flags = {name: build_parser(name, COMMANDS[name])._option_string_actions.keys() for name in COMMANDS}
    for ours, _, others in SYNONYMS:
        for other in others.split():
            words = [f"--{name.replace('_', '-')}" for name in (ours, other)]
            assert any(words[0] in known and words[1] not in known for known in flags.values()), (ours, other)


def test_a_negated_name_leads_to_the_negated_option():
    with pytest.raises(ValueError, match="--no-report; did you mean --no-audit"):
        parse_words("train", "--no-report")
    with pytest.raises(ValueError, match="--no-audti; did you mean --no-audit"):
        parse_words("train", "--no-audti")


def test_output_options_lead_to_those_of_the_command():
    with pytest.raises(ValueError, match="--out; did you mean --results-dir"):
        parse_words("reproduce", "mr2-table-1", "--out", "x")
