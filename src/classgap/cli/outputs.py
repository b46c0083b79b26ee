"""Files that a command is asked to write: checked before the work, not after it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def check_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path]) -> None:
    """See that every output can be written and overwrites nothing that is read.

    Args:
        outputs: flag → file.
        inputs: files and directories that are read.

    Raises:
        ValueError: if one cannot be.
    """
    sources = {source.resolve() for source in inputs}
    flag_of: dict[Path, str] = {}
    for flag, path in outputs.items():
        if path is None:
            continue
        place = path.resolve()
        if str(path) == "-":
            raise ValueError(f"{flag} - names no file: what is printed takes standard output already; name a file.")
        if path.is_dir():
            raise ValueError(f"{flag} {path} is a directory; name a file in it.")
        if path.exists() and not path.is_file():  # a pipe or a device
            if not os.access(path, os.W_OK):
                raise ValueError(f"{flag} {path} cannot be written to.")
            continue  # written to as it is: its directory is not, and several outputs may go to /dev/null
        if not place.parent.is_dir():
            raise ValueError(f"{flag} {path}: the directory {path.parent} does not exist.")
        if not os.access(place.parent, os.W_OK):
            raise ValueError(f"{flag} {path}: the directory {path.parent} cannot be written to.")
        if place in sources:
            raise ValueError(f"{flag} {path} would overwrite an input; name another file.")
        if _is_standard_output(path):
            raise ValueError(f"{flag} {path} is where standard output goes, and would lose it; name another file.")
        if place in flag_of:
            raise ValueError(f"{flag_of[place]} and {flag} name the same file {path}.")
        flag_of[place] = flag


def _is_standard_output(path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(1), path.stat())
    except OSError:  # not there yet, or standard output is closed
        return False


def tell_written(outputs: Mapping[str, Path | None]) -> None:
    """Say which files were written."""
    from classgap.report.formatting import printable

    for path in outputs.values():
        if path is not None:
            size = f" ({path.stat().st_size / 1000:,.0f} kB)" if path.is_file() else ""  # a pipe has none
            print(f"Wrote {printable(str(path))}{size}.")


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show that something takes a while, on a terminal only."""
    from rich.console import Console
    from rich.text import Text

    from classgap.report.formatting import printable

    with Console(stderr=True).status(Text(printable(what))):
        yield
