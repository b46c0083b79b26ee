from pathlib import Path

import pytest

from classgap.engine import RunDirectory, TrainConfig

DIGITS = TrainConfig(data="digits", lr=0.1, epochs=3)


def opened(path: Path, config: TrainConfig = DIGITS, **settings) -> RunDirectory:
    directory = RunDirectory(path)
    directory.begin(config, {}, **settings)
    return directory


def test_two_processes_cannot_train_in_one_directory(tmp_path: Path) -> None:
    first = opened(tmp_path / "run")
    with pytest.raises(ValueError, match="another process is training"):
        opened(tmp_path / "run")
    first.close()
    opened(tmp_path / "run").close()


def test_a_directory_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="holds other files and no run"):
        opened(tmp_path, force=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="holds other files"):
        opened(tmp_path / "file")


def test_other_settings_are_named(tmp_path: Path) -> None:
    opened(tmp_path / "run").close()
    opened(tmp_path / "run", TrainConfig(data="digits")).close()  # what is not said agrees with anything
    opened(tmp_path / "run", TrainConfig(data="digits", device="cpu", save_every=1.0)).close()  # nor where it is run
    with pytest.raises(ValueError, match=r"lr 0\.1 there and 0\.2 here.*--force"):
        opened(tmp_path / "run", TrainConfig(data="digits", lr=0.2))


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    directory = opened(tmp_path / "run")
    for epoch in range(3):
        directory.add_metrics({"epoch": epoch})
    with directory.metrics.open("a") as file:
        file.write('{"epoch": 3, "los')
    assert [line["epoch"] for line in directory.read_metrics()] == [0, 1, 2]
    directory.keep_metrics(2)
    directory.add_metrics({"final": True})
    assert directory.read_metrics() == [{"epoch": 0}, {"epoch": 1}, {"final": True}]
    assert directory.finished()


def test_what_a_killed_process_left_is_no_obstacle_and_is_removed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    left = [run / ".config.yaml.12-0123456789abcdef.tmp", run / "checkpoints" / ".last.pt.12-0123456789abcdef.tmp"]
    for path in left:
        path.write_text("half of")
    opened(run).close()
    assert not any(path.exists() for path in left)
