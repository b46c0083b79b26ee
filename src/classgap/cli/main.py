"""Where every command starts, and how it ends: 0 done, 1 failed, 2 wrong use or bad input, 130 interrupted."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import inspect
import io
import itertools
import os
import re
import sys
from collections.abc import Sequence
from typing import Protocol, cast

from classgap.cli.audit_command import AuditCommand
from classgap.cli.compare_command import CompareCommand
from classgap.cli.demo_command import DemoCommand
from classgap.cli.listing_commands import DatasetsCommand, ModelsCommand
from classgap.cli.methods_command import MethodsCommand
from classgap.cli.parse_errors import wrong_number
from classgap.cli.train_command import TrainCommand
from classgap.report.formatting import printable

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130  # 130: what shells show of Ctrl-C


class Command(Protocol):
    """What a command line is parsed into: a dataclass whose fields are the arguments."""

    def run(self) -> None:
        """Do it.

        Raises:
            ValueError: in one sentence, if an argument or an input file is at fault.
            OSError: if something else went wrong with a file.
        """


COMMANDS: dict[str, type[Command]] = {
    "demo": DemoCommand,
    "train": TrainCommand,
    "audit": AuditCommand,
    "compare": CompareCommand,
    "methods": MethodsCommand,
    "datasets": DatasetsCommand,
    "models": ModelsCommand,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; the help page of a command ends in ``SystemExit`` with code 0.

    Args:
        arguments: without the program's name; those of the process if not given.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # class names may hold what the terminal cannot show
            stream.reconfigure(errors="replace")
    if not words or words[0] in ("-h", "--help"):
        print(help_page())
        return DONE if words else BAD_INPUT
    if words[0] == "--version":
        from classgap._version import __version__

        print(f"classgap {__version__}")
        return DONE
    name = words.pop(0)
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the commands are {', '.join(COMMANDS)}."
        return _complain(f"there is no command {name!r}; {hint}", BAD_INPUT)
    try:
        _parse(name, words).run()
        sys.stdout.flush()
    except ValueError as error:
        return _complain(error, BAD_INPUT)
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, MemoryError, ArithmeticError) as error:
        return _complain(error, FAILED)
    except KeyboardInterrupt as interrupt:
        return _complain(str(interrupt) or "interrupted.", INTERRUPTED)
    return DONE


def help_page() -> str:
    """What ``classgap --help`` prints: every command with the first line of its own page."""
    lines = [f"  {name:<10} {_description(command).splitlines()[0]}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: classgap COMMAND ...",
            "",
            "classgap finds the classes a classifier fails, explains why, and closes the gap.",
            "",
            *lines,
            "",
            "classgap COMMAND --help tells more about one; classgap --version the version.",
            "Exit codes: 0 done, 1 failed, 2 wrong use or bad input, 130 interrupted.",
        ]
    )


def _parse(name: str, words: list[str]) -> Command:
    import tyro

    command, told = COMMANDS[name], io.StringIO()
    preset = command.preset(words) if hasattr(command, "preset") else None
    try:
        with contextlib.redirect_stderr(told):
            about = _description(command)
            parsed = tyro.cli(command, prog=f"classgap {name}", description=about, args=words, default=preset)
    except SystemExit as end:
        if not end.code:
            raise  # help was asked for
        problem = _first_part(told.getvalue())
        problem = wrong_number(command, words, problem) or problem
        raise ValueError(f"{problem}; {_hint(command, problem)}classgap {name} --help lists what is allowed.") from None
    return cast(Command, parsed)


def _hint(command: type[Command], problem: str) -> str:
    """The flag that was meant, if one was mistyped."""
    flags = [f"--{field.name.replace('_', '-')}" for field in dataclasses.fields(command)]  # type: ignore[arg-type]
    unknown = re.search(r"Unrecognized options: (--[\w-]+)", problem)
    near = difflib.get_close_matches(unknown[1], flags, n=1) if unknown else []
    return f"did you mean {near[0]}? " if near else ""


def _first_part(box: str) -> str:
    """What is wrong, out of a box of several lines that goes on with explanations.

    >>> _first_part("╭─ Title ─╮\\n│ Unknown: │\\n│   --x    │\\n│ ──────── │\\n│ See help │\\n╰──────────╯")
    'Unknown: --x'
    >>> _first_part(" Title \\n ------- \\n  Unknown: \\n    --x \\n  -------- \\n  See help ")  # in ASCII
    'Unknown: --x'
    """
    boxed = [line for line in box.splitlines() if line.startswith("│")]
    lines = [line.strip("│ ") for line in boxed or box.splitlines()]
    body = lines if boxed else list(itertools.dropwhile(lambda line: not _is_rule(line), lines))[1:]
    part = itertools.takewhile(lambda line: not _is_rule(line), body)
    return " ".join(" ".join(part).replace("(required)", "").split()).rstrip(".") or " ".join(box.split())


def _is_rule(line: str) -> bool:
    return bool(line) and not set(line) - set("─-")


def _description(command: type[Command]) -> str:
    return inspect.cleandoc(command.__doc__ or "")


def _complain(what: BaseException | str, code: int) -> int:
    text = " ".join(str(what).split()) or type(what).__name__
    print(printable(f"classgap: {text}"), file=sys.stderr)
    return code
