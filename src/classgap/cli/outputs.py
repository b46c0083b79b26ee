"""Output files of a command."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def check_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path]) -> None:
    """Check, before any work, that all outputs can be written and overwrite no input.

    Args:
        outputs: Files by flag.
        inputs: Files and directories that are read.

    Raises:
        ValueError: If an output is invalid.
    """
    sources = {source.resolve() for source in inputs}
    flag_of: dict[Path, str] = {}
    for flag, path in outputs.items():
        if path is None:
            continue
        resolved = path.resolve()
        if str(path) == "-":
            raise ValueError(f"{flag} must be a file, got -: standard output shows the printed report.")
        if path.is_dir():
            raise ValueError(f"{flag} {path} is a directory; name a file in it.")
        if path.exists() and not path.is_file():  # a pipe or a device
            if not os.access(path, os.W_OK):
                raise ValueError(f"{flag} {path} is not writable.")
            continue  # written directly, so the directory may be read-only; several outputs may share /dev/null
        if not resolved.parent.is_dir():
            raise ValueError(f"{flag} {path}: the directory {path.parent} does not exist.")
        if not os.access(resolved.parent, os.W_OK):
            raise ValueError(f"{flag} {path}: the directory {path.parent} is not writable.")
        if resolved in sources:
            raise ValueError(f"{flag} {path} would overwrite an input; name another file.")
        if _is_standard_output(path):
            raise ValueError(f"{flag} {path} would overwrite the redirected standard output; name another file.")
        if resolved in flag_of:
            raise ValueError(f"{flag_of[resolved]} and {flag} name the same file {path}.")
        flag_of[resolved] = flag


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
def busy(message: str) -> Iterator[None]:
    """Show a spinner on standard error while the block runs, if it is a terminal."""
    from rich.console import Console
    from rich.text import Text

    from classgap.report.formatting import printable

    with Console(stderr=True).status(Text(printable(message))):
        yield
