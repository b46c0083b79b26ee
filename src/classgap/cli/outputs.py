"""Output files of a command."""

from __future__ import annotations

import glob
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

MAX_NAME = 210  # bytes: most file systems allow 255, and a temporary name is up to 45 longer
REPORTS = (".html", ".json", ".csv", ".xml", ".md")  # files in a run directory that may be replaced, except:
RECORDS = (
    *("checksums.json", "class_names.json", "data.json", "env.json", "failure.json"),
    *("predictions.csv", "preprocessing.json"),
)


def check_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path]) -> None:
    """Check, before any work, that all outputs can be written and overwrite no input.

    Args:
        outputs: Files by flag.
        inputs: Files and directories that are read.

    Raises:
        ValueError: If an output is invalid.
    """
    sources = {_resolve(file) for source in inputs for file in (source, *map(Path, glob.glob(str(source))))}
    flag_of: dict[Path, str] = {}
    for flag, path in outputs.items():
        if path is None:
            continue
        if str(path) == "-":
            raise ValueError(f"{flag} must be a file, got -: standard output shows the printed report.")
        _check_name(flag, path)
        resolved = _resolve(path)
        if resolved.is_symlink() or resolved.parent.is_symlink():
            raise ValueError(f"{flag} {path} is a circular symbolic link; choose another file.")
        if path.is_dir():
            raise ValueError(f"{flag} {path} is a directory; choose a file in it.")
        if path.exists() and not path.is_file():  # a pipe or a device
            if not os.access(path, os.W_OK):
                raise ValueError(f"{flag} {path} is not writable.")
            continue  # written directly, so the directory may be read-only; several outputs may share /dev/null
        if not resolved.parent.is_dir():
            raise ValueError(f"{flag} {path}: the directory {path.parent} does not exist.")
        if not os.access(resolved.parent, os.W_OK):
            raise ValueError(f"{flag} {path}: the directory {path.parent} is not writable.")
        if resolved in sources:
            raise ValueError(f"{flag} {path} would overwrite an input; choose another file.")
        run = next((each for each in resolved.parents if each in sources or _is_run(each)), None)
        is_report = resolved.suffix in REPORTS and resolved.name not in RECORDS  # of the file that a link leads to
        if run is not None and path.exists() and not is_report:
            raise ValueError(f"{flag} {path} would overwrite a file of the run {run}; choose another file.")
        if _is_standard_output(path):
            raise ValueError(f"{flag} {path} would overwrite the redirected standard output; choose another file.")
        if resolved in flag_of:
            raise ValueError(f"{flag_of[resolved]} and {flag} name the same file {path}.")
        flag_of[resolved] = flag


def check_output_folder(flag: str, path: Path, known: Callable[[str], bool], inputs: Iterable[Path]) -> None:
    """Check, before any work, that a directory can be written: it is new, empty, or holds an earlier result.

    Args:
        flag: Flag of the command line.
        path: Directory to write.
        known: Whether a file name belongs to an earlier result, which may be replaced.
        inputs: Files and directories that are read.

    Raises:
        ValueError: If the directory cannot be written, or holds other files.
    """
    _check_name(flag, path)
    resolved = _resolve(path)
    if resolved.is_symlink():
        raise ValueError(f"{flag} {path} is a circular symbolic link; choose another directory.")
    if path.exists() and not path.is_dir():
        raise ValueError(f"{flag} {path} is a file; choose a directory.")
    if not resolved.parent.is_dir():
        raise ValueError(f"{flag} {path}: the directory {path.parent} does not exist.")
    if not os.access(resolved.parent, os.W_OK):
        raise ValueError(f"{flag} {path}: the directory {path.parent} is not writable.")
    if any(resolved == source or resolved in source.parents for source in map(_resolve, inputs)):
        raise ValueError(f"{flag} {path} contains an input; choose another directory.")
    others = sorted(entry.name for entry in path.iterdir() if not known(entry.name)) if path.exists() else []
    if others:
        raise ValueError(f"{flag} {path} contains other files ({others[0]}); choose a new or empty directory.")


def write_folder(path: Path, write: Callable[[Path], None]) -> None:
    """Write a directory completely or not at all; an earlier one is replaced."""
    target = _resolve(path)
    new, old = (
        target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(8)}.{end}") for end in ("new", "old")
    )
    try:
        write(new)
        if target.exists():
            os.rename(target, old)
        try:
            os.rename(new, target)
        except OSError:
            if old.exists():
                os.rename(old, target)
            raise
    finally:
        for leftover in (new, old):
            shutil.rmtree(leftover, ignore_errors=True)


def _check_name(flag: str, path: Path) -> None:
    if len(os.fsencode(path.name)) > MAX_NAME:
        raise ValueError(f"{flag} {path.name[:40]}… must have a file name of at most {MAX_NAME} bytes.")


def _is_run(directory: Path) -> bool:
    """Return whether a directory holds a training run."""
    return (directory / "config.yaml").is_file() and (directory / "checkpoints").is_dir()


def _resolve(path: Path) -> Path:
    """Follow symbolic links. ``Path.resolve`` raises a RuntimeError for links that lead back to themselves."""
    return Path(os.path.realpath(path))


def _is_standard_output(path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(1), path.stat())
    except OSError:  # the file does not exist, or standard output is closed
        return False


def print_written(outputs: Mapping[str, Path | None]) -> None:
    """Print the names and sizes of the files that were written."""
    from classgap.report.formatting import printable

    for path in outputs.values():
        if path is not None:
            size = f" ({path.stat().st_size / 1000:,.0f} kB)" if path.is_file() else ""  # pipes have no size
            print(f"Wrote {printable(str(path))}{size}.")


@contextmanager
def busy(message: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner on standard error while the block runs, if it is a terminal; yield a function that updates it."""
    from rich.console import Console
    from rich.text import Text

    from classgap.report.formatting import printable

    with Console(stderr=True).status(Text(printable(message))) as status:
        yield lambda text: status.update(Text(printable(text)))
