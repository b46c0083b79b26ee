"""Entry point of the command line.

Exit codes: 0 success, 1 failure, 2 invalid usage or input, 130 interrupted, 143 terminated.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Sequence

from classgap._exit_codes import FAILURE, INTERRUPTED, INVALID, SUCCESS, TERMINATED
from classgap.cli.audit_command import AuditCommand
from classgap.cli.compare_command import CompareCommand
from classgap.cli.demo_command import DemoCommand
from classgap.cli.export_command import ExportCommand
from classgap.cli.fix_command import FixCommand
from classgap.cli.gate_command import GateCommand
from classgap.cli.history_command import HistoryCommand
from classgap.cli.invocation import invoked
from classgap.cli.listing_commands import DatasetsCommand, ModelsCommand
from classgap.cli.methods_command import MethodsCommand
from classgap.cli.parser import Command, Terminated, parse
from classgap.cli.predict_command import PredictCommand
from classgap.cli.recipes_command import RecipesCommand
from classgap.cli.reproduce_command import ReproduceCommand
from classgap.cli.train_command import TrainCommand
from classgap.registry import nearest
from classgap.report.formatting import printable

MAX_LENGTH = 2000  # of an error message

COMMANDS: dict[str, type[Command]] = {
    "demo": DemoCommand,
    "train": TrainCommand,
    "predict": PredictCommand,
    "export": ExportCommand,
    "audit": AuditCommand,
    "compare": CompareCommand,
    "gate": GateCommand,
    "history": HistoryCommand,
    "fix": FixCommand,
    "reproduce": ReproduceCommand,
    "methods": MethodsCommand,
    "datasets": DatasetsCommand,
    "models": ModelsCommand,
    "recipes": RecipesCommand,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: Arguments without the program's name; ``sys.argv[1:]`` by default.

    Raises:
        SystemExit: With code 0, after printing the help page of a command.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # class names may contain characters that the terminal cannot encode
            stream.reconfigure(errors="replace")
    if not words or words[0] in ("-h", "--help"):
        print(help_page())
        return SUCCESS if words else INVALID
    if words[0] == "--version":
        from classgap._version import __version__

        print(f"classgap {__version__}")
        return SUCCESS
    name = words.pop(0)
    if name not in COMMANDS:
        near = nearest(name, COMMANDS)
        hint = f"did you mean {near}?" if near else f"the commands are {', '.join(COMMANDS)}."
        return _print_error(f"unknown command {name!r}; {hint}", INVALID)
    code = SUCCESS
    try:
        with invoked([name, *words]):
            code = parse(name, COMMANDS[name], words).run() or SUCCESS
        sys.stdout.flush()
    except ValueError as error:
        return _print_error(error, INVALID)
    except BrokenPipeError:  # the reader closed the pipe, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, MemoryError, ArithmeticError) as error:
        return _print_error(error, FAILURE)
    except Terminated as termination:
        return _print_error(termination, TERMINATED) if str(termination) else TERMINATED
    except KeyboardInterrupt as interrupt:
        return _print_error(str(interrupt) or "interrupted.", INTERRUPTED)
    return code


def help_page() -> str:
    """Return the page of ``classgap --help``: one line per command."""
    summaries = {name: inspect.cleandoc(command.__doc__ or "").splitlines()[0] for name, command in COMMANDS.items()}
    return "\n".join(
        [
            "usage: classgap COMMAND [OPTIONS]",
            "",
            "Find the classes a classifier fails on, explain why, and close the gap.",
            "",
            "commands:",
            *(f"  {name:<10} {summary}" for name, summary in summaries.items()),
            "",
            "Run `classgap COMMAND --help` for details.",
            "Run `classgap --version` for the version.",
            "",
            "Exit codes: 0 success, 1 failure, 2 invalid usage or input, 130 interrupted,",
            "143 terminated.",
        ]
    )


def describe_error(error: BaseException | str) -> str:
    """Return one line about an error; values from files may be of any length.

    >>> describe_error(ValueError("two\\nlines")), len(describe_error("x" * 10**6)) < 2000
    ('classgap: two lines', True)
    """
    text = " ".join(str(error).split()) or type(error).__name__
    if len(text) > MAX_LENGTH:
        text = f"{text[: MAX_LENGTH // 2]} … {text[-MAX_LENGTH // 4 :]}"
    return printable(f"classgap: {text}")


def _print_error(error: BaseException | str, code: int) -> int:
    print(describe_error(error), file=sys.stderr)
    return code
