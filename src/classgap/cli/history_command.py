"""``classgap history``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from classgap.audit.history import history
from classgap.cli.invocation import command_line
from classgap.cli.outputs import busy, check_outputs, print_written
from classgap.cli.parser import Arg, Command


@dataclass(frozen=True)
class HistoryCommand(Command):
    """Show how accuracy, hard classes and the gap change over releases.

    Each SOURCE is the audit or the predictions of one release, oldest first.

    Example:
      classgap history v1.json v2.json v3.json --html history.html
    """

    ARGS: ClassVar[Mapping[str, Arg]] = {"sources": Arg("SOURCE", positional=True)}

    sources: tuple[Path, ...]
    """Saved audits, prediction files or run directories, oldest first."""

    html: Path | None = None
    """Write the history as one self-contained HTML page."""

    json: Path | None = None
    """Save the history as JSON."""

    def run(self) -> None:
        """Read the sources, write the files, and print the history."""
        from classgap.report import print_history, write_html

        outputs = {"--html": self.html, "--json": self.json}
        check_outputs(outputs, self.sources)
        with busy("Reading"):
            found = history(self.sources)
            if self.json is not None:
                found.save(self.json)
            if self.html is not None:
                write_html(found, self.html, sources=self.sources, command=command_line())
        print_history(found)
        print_written(outputs)
