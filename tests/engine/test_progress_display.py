import re
from pathlib import Path

import pytest
from training_cases import config

from classgap.engine import trainer
from classgap.engine.logging.progress import Display
from classgap.engine.train import train
from classgap.methods import Method

SAMPLES = 896  # of the digits' training split


def test_titles_are_not_parsed_as_markup(capsys: pytest.CaptureFixture[str]) -> None:
    with Display("erm, stage [/old] [red]", total=10) as display:
        display.advance(10)
        display.epoch(1, 1, {"loss": 0.5})
    assert "erm, stage [/old] [red]: epoch 1 of 1, loss 0.500" in capsys.readouterr().err


def test_accuracies_are_percentages_with_a_space_as_in_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    with Display("erm", total=10) as display:
        display.advance(10)
        display.epoch(1, 1, {"loss": 0.5, "train_accuracy": 0.9984, "val_accuracy": 1.0})
    assert "loss 0.500, train 99.8 %, validation 100.0 %, " in capsys.readouterr().err


class Counting(Display):
    """Records the samples counted."""

    made: list["Counting"]

    def __init__(self, title: str, total: int, done: int = 0, *, quiet: bool = False) -> None:
        super().__init__(title, total, done, quiet=quiet)
        self.total, self.counted = total, done
        self.made.append(self)

    def advance(self, samples: int) -> None:
        super().advance(samples)
        self.counted += samples


@pytest.fixture
def displays(monkeypatch: pytest.MonkeyPatch) -> list[Counting]:
    Counting.made = []
    monkeypatch.setattr(trainer, "Display", Counting)
    return Counting.made


def printed_epochs(text: str) -> list[int]:
    """Return the epochs that were printed."""
    return [int(number) for number in re.findall(r": epoch (\d+) of \d+, loss", text)]


@pytest.mark.parametrize(
    ("settings", "total", "lines"),
    [
        ({"batch_size": 20000, "epochs": 20}, 20 * SAMPLES, list(range(2, 21, 2))),  # one partial batch
        ({"batch_size": 600, "epochs": 20}, 20 * SAMPLES, list(range(2, 21, 2))),  # 600 and 296
        ({"batch_size": 800, "epochs": 3}, 3 * 800, [1, 2, 3]),  # 800; the remaining 96 are dropped
        ({"batch_size": 600, "epochs": None, "max_steps": 5}, 2 * SAMPLES + 600, [1, 2, 3]),  # ends in the third epoch
        ({"batch_size": 600, "epochs": 3, "micro_batches": 4}, 3 * SAMPLES, [1, 2, 3]),
        ({"batch_size": 600, "epochs": 3, "sampler": "class-aware:per-class=200"}, 3 * 600, [1, 2, 3]),
    ],
)
def test_the_total_counts_the_samples_trained_on(
    settings: dict, total: int, lines: list[int], tmp_path: Path, displays: list[Counting], capsys
) -> None:
    train(config(out=tmp_path / "run", audit=False, **settings))
    assert [(each.total, each.counted) for each in displays] == [(total, total)]
    err = capsys.readouterr().err
    assert printed_epochs(err) == lines
    assert err.rstrip().endswith(" samples/s, 0 s left")


def test_each_stage_has_its_own_total(tmp_path: Path, displays: list[Counting], capsys) -> None:
    train(config(out=tmp_path / "run", audit=False, method="jtt", epochs=10, batch_size=600))
    assert [each.total for each in displays] == [each.counted for each in displays]
    assert displays[0].total < displays[1].total
    assert printed_epochs(capsys.readouterr().err) == [1, 2, *range(1, 11)]


@pytest.mark.parametrize(("updates", "samples"), [(3, SAMPLES + 600), (6, 3 * SAMPLES)])
def test_a_resumed_run_continues_counting(
    updates: int, samples: int, tmp_path: Path, displays: list[Counting], monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    settings = config(out=tmp_path / "run", audit=False, batch_size=600, epochs=3, save_every=0.0)  # six updates
    seen = 0

    def killed(*_: object) -> None:
        nonlocal seen
        seen += 1
        if seen > updates:
            raise KeyboardInterrupt

    step, end_epoch = Method.step, trainer.Trainer._end_epoch
    with monkeypatch.context() as context:
        context.setattr(Method, "step", lambda *args: (killed(), step(*args)))
        if updates == 6:  # after the last update, before its epoch ends
            context.setattr(
                trainer.Trainer, "_end_epoch", lambda *args: killed() if seen == updates else end_epoch(*args)
            )
        with pytest.raises(KeyboardInterrupt):
            train(settings)
    capsys.readouterr()
    train(settings)
    assert displays[1]._at_start == samples
    assert displays[1].counted == displays[1].total == 3 * SAMPLES
    assert printed_epochs(capsys.readouterr().err)[-1] == 3
