from pathlib import Path

import pytest

from classgap.engine import RunDirectory, TrainConfig
from classgap.engine.storage.checkpoint import save_checkpoint

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


def test_a_directory_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="not a run"):
        opened(tmp_path, overwrite=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="not a run"):
        opened(tmp_path / "file")


@pytest.mark.parametrize(
    "config",
    [
        "name: thesis\nversion: 3\n",
        "[1, 2",
        "",
        "data: digits\nepochs: 3\n",
    ],  # the last one is valid but has no run beside it
)
def test_overwrite_leaves_other_projects_alone(config: str, tmp_path: Path) -> None:
    for name in ("audit.json", "report.html", "metrics.jsonl", "tensorboard/events", "checkpoints/last.pt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("years of work")
    (tmp_path / "config.yaml").write_text(config)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match="not a run"):
        opened(tmp_path, overwrite=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_overwrite_removes_a_run_of_another_version(tmp_path: Path) -> None:
    directory = opened(tmp_path / "run")
    save_checkpoint({}, directory.last)
    directory.close()
    with directory.config.open("a") as file:
        file.write("abolished: 3\n")
    with pytest.raises(ValueError, match="'abolished'"):
        opened(tmp_path / "run")
    opened(tmp_path / "run", overwrite=True).close()
    assert not directory.last.exists()


def test_different_settings_are_named(tmp_path: Path) -> None:
    opened(tmp_path / "run").close()
    opened(tmp_path / "run", TrainConfig(data="digits")).close()  # None matches any value
    opened(
        tmp_path / "run", TrainConfig(data="digits", device="cpu", save_every=1.0)
    ).close()  # these do not change the result
    with pytest.raises(ValueError, match=r"lr .*0\.1.* 0\.2.*--overwrite"):
        opened(tmp_path / "run", TrainConfig(data="digits", lr=0.2))


def test_a_run_stored_before_a_setting_existed_has_its_default(tmp_path: Path) -> None:
    opened(tmp_path / "run").close()
    path = tmp_path / "run" / "config.yaml"
    (tmp_path / "run" / "checksums.json").unlink()
    path.write_text(
        "".join(line for line in path.open() if not line.startswith("clip_grad") and "nesterov" not in line)
    )
    opened(tmp_path / "run").close()
    with pytest.raises(ValueError, match=r"nesterov \(stored False, now True"):
        opened(tmp_path / "run", TrainConfig(data="digits", nesterov=True))


def test_an_incomplete_line_is_ignored(tmp_path: Path) -> None:
    directory = opened(tmp_path / "run")
    for epoch in range(3):
        directory.add_metrics({"epoch": epoch})
    with directory.metrics.open("a") as file:
        file.write('{"epoch": 3, "los')
    assert [line["epoch"] for line in directory.read_metrics()] == [0, 1, 2]
    directory.keep_epochs(2)
    directory.add_metrics({"final": True})
    assert directory.read_metrics() == [{"epoch": 0}, {"epoch": 1}, {"final": True}]
    assert directory.finished()


def test_temporary_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    left = [run / ".config.yaml.12-0123456789abcdef.tmp", run / "checkpoints" / ".last.pt.12-0123456789abcdef.tmp"]
    for path in left:
        path.write_text("half of")
    opened(run).close()
    assert not any(path.exists() for path in left)
