import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from classgap._atomic_write import atomic_write, atomic_write_text, remove_leftovers


def test_it_writes_and_replaces_with_usual_permissions(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    for text in ("first\n", "zweite – äöü\n"):
        atomic_write_text(target, text)
        assert target.read_bytes() == text.encode()
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_failure_keeps_the_old_file_and_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "page.html"
    atomic_write_text(target, "good")

    def fail(*args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        atomic_write_text(target, "bad")
    assert target.read_text() == "good"
    assert os.listdir(tmp_path) == ["page.html"]


def test_a_missing_directory_is_named_and_the_temporary_file_is_not(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="directory does not exist") as caught:
        atomic_write_text(tmp_path / "a" / "b" / "page.html", "text")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, str(tmp_path / "a" / "b"))
    assert ".tmp" not in str(caught.value)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError) as other:
        atomic_write_text(tmp_path / "file" / "page.html", "text")
    assert other.value.filename == str(tmp_path / "file" / "page.html")


def test_permissions_follow_the_umask_which_is_never_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            # It belongs to all threads: one that makes a file meanwhile would get the wrong permissions.
            patch.delattr(os, "umask")
            atomic_write_text(tmp_path / "page.html", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "page.html").stat().st_mode) == 0o640


def test_a_link_is_kept_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    link, real = tmp_path / "page.html", tmp_path / "store" / "real.html"
    link.symlink_to(Path("store") / "real.html")  # to nothing yet
    for text in ("first", "second"):
        atomic_write_text(link, text)
        assert os.readlink(link) == os.path.join("store", "real.html")
        assert (real.is_symlink(), real.read_text()) == (False, text)
    assert os.listdir(real.parent) == ["real.html"]
    leftover = real.parent / ".real.html.1-0123456789abcdef.tmp"
    leftover.touch()
    remove_leftovers(link)
    assert not leftover.exists()


@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_is_written_to_and_stays(tmp_path: Path, linked: bool) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    target = tmp_path / "link" if linked else pipe
    if linked:
        target.symlink_to(pipe)
    read: list[str] = []
    # A daemon: if nobody ever writes, it waits for good.
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    atomic_write_text(target, "text")
    reader.join(timeout=20)
    assert read == ["text"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert target.is_symlink() == linked
    assert len(os.listdir(tmp_path)) == 1 + linked


@pytest.mark.parametrize("linked", [False, True])
def test_a_directory_is_rejected(tmp_path: Path, linked: bool) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    target = tmp_path / "link" if linked else folder
    if linked:
        target.symlink_to(folder)
    with pytest.raises(IsADirectoryError):
        atomic_write_text(target, "text")
    assert (target.is_symlink(), os.listdir(folder)) == (linked, [])
    assert len(os.listdir(tmp_path)) == 1 + linked


def test_two_writers_of_one_file_do_not_meet(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    with atomic_write(target) as first, atomic_write(target) as second:
        first.write(b"first")
        second.write(b"second")
    assert target.read_bytes() == b"first"  # the last to be done
    assert os.listdir(tmp_path) == ["page.html"]


def test_only_files_left_by_killed_processes_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    code = (
        "import os, signal, sys\n"
        "from classgap._atomic_write import atomic_write\n"
        "with atomic_write(sys.argv[1]), atomic_write(sys.argv[2]):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    targets = [str(tmp_path / "metrics.json"), str(folder / "model.safetensors")]
    done = subprocess.run([sys.executable, "-c", code, *targets], check=False)
    assert done.returncode == -signal.SIGKILL
    others = {tmp_path / ".notes.tmp", tmp_path / "page.1-0123456789abcdef.tmp", folder / "last.pt"}
    for path in others:
        path.touch()
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 5
    remove_leftovers(tmp_path)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == others
    remove_leftovers(tmp_path / "missing")


def test_of_one_file_only_its_own_are_removed(tmp_path: Path) -> None:
    own, other = (tmp_path / f".{name}.json.1-0123456789abcdef.tmp" for name in ("[a]", "a"))
    own.touch()
    other.touch()
    remove_leftovers(tmp_path / "[a].json")
    assert not own.exists()
    assert other.exists()
