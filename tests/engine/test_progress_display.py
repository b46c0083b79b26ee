import pytest

from classgap.engine.progress import Display


def test_a_title_is_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    with Display("erm, stage [/old] [red]", total=10) as display:
        display.advance(10)
        display.epoch(1, 1, {"loss": 0.5})
    assert "erm, stage [/old] [red]: epoch 1 of 1, loss 0.500" in capsys.readouterr().err
