"""Command-line arguments from the fields of a dataclass."""

from __future__ import annotations

import argparse
import ast
import inspect
import itertools
import shutil
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from classgap._csv_cells import is_number
from classgap._synonyms import find_synonym
from classgap.registry import nearest

C = TypeVar("C", bound="Command")

DESCRIPTIONS = {int: "an integer", float: "a number"}
VALUE = "\0"  # start of a word that is no option; no argument of a program contains it
METAVARS = {int: "INT", float: "FLOAT", Path: "FILE"}


@dataclass(frozen=True)
class Arg:
    """Presentation of one argument.

    Attributes:
        metavar: Placeholder for the value; derived from the type by default.
        default: Default as shown in the help page, where the field's default is None.
        positional: Whether the argument is positional.
        repeatable: Whether an option of several values takes one value each time it is given.
    """

    metavar: str = ""
    default: str = ""
    positional: bool = False
    repeatable: bool = False


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wrap help texts at spaces only: a break after a hyphen would split names like ``crop-flip``."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=min(80, shutil.get_terminal_size().columns))

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(text, width, break_on_hyphens=False)


class Terminated(Exception):
    """A command was stopped by a signal such as SIGTERM; the message is empty if another process reports it."""


class Command(ABC):
    """Base class of the commands, which are dataclasses with one field per argument.

    The docstring of the class is the help page's introduction; the docstring below a field is the argument's help.

    Attributes:
        ARGS: Presentation of arguments by field name, where it differs from the defaults.
        GROUPS: Field names by heading of the help page; all other fields are listed under "options".
    """

    ARGS: ClassVar[Mapping[str, Arg]] = {}
    GROUPS: ClassVar[Mapping[str, Sequence[str]]] = {}

    @classmethod
    def complete(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Add values from other sources to the arguments given on the command line."""
        return dict(given)

    @abstractmethod
    def run(self) -> int | None:
        """Run the command and return its exit code; ``None`` is 0.

        Raises:
            ValueError: If an argument or an input file is invalid.
            OSError: If a file cannot be read or written.
        """


def parse(name: str, command: type[C], words: Sequence[str]) -> C:
    """Parse the arguments of one command.

    Args:
        name: Name of the command.
        command: Class to parse into.
        words: Arguments after the command's name.

    Raises:
        ValueError: If an argument is unknown, invalid or missing.
        SystemExit: With code 0, after printing the help page for ``--help``.

    >>> from classgap.cli.demo_command import DemoCommand
    >>> parse("demo", DemoCommand, ["--seeds", "5"]).seeds
    5
    >>> parse("demo", DemoCommand, ["--seeds=five"])
    Traceback (most recent call last):
    ValueError: --seeds must be an integer, got 'five'. Run `classgap demo --help` for the options.
    """
    hint = f"Run `classgap {name} --help` for the options."
    arguments = {_flag(command, field): field for field in fields(command)}  # type: ignore[arg-type]
    try:
        namespace, unknown = build_parser(name, command).parse_known_intermixed_args(_prepare(words))
    except argparse.ArgumentError as error:
        raise ValueError(f"{error.argument_name} {error.message}. {hint}") from None
    if unknown:
        negations = [f"--no-{flag[2:]}" for flag, field in arguments.items() if isinstance(field.default, bool)]
        raise ValueError(f"{_describe_unknown(unknown, [*arguments, *negations])} {hint}")
    given = {key: value for key, value in vars(namespace).items() if value is not MISSING}
    # Often an empty variable of a shell. An option with values by default may be emptied on purpose.
    empty = [flag for flag, field in arguments.items() if given.get(field.name) == [] and field.default == ()]
    if empty:
        raise ValueError(f"{empty[0]} needs at least one value, got none: add one, or leave out {empty[0]}. {hint}")
    values = command.complete({key: tuple(value) if isinstance(value, list) else value for key, value in given.items()})
    missing = [flag for flag, field in arguments.items() if _is_required(field) and field.name not in values]
    if missing:
        raise ValueError(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} required. {hint}")
    return command(**values)


def _describe_unknown(words: Sequence[str], flags: Collection[str]) -> str:
    option = next((word.partition("=")[0] for word in words if word.startswith("-")), None)
    if option is None:
        return f"unexpected argument {words[0].removeprefix(VALUE)!r}."
    synonym = find_synonym(option.lstrip("-"), {flag[2:].replace("-", "_") for flag in flags if flag.startswith("--")})
    if synonym is not None:
        ours, note = synonym
        return f"unknown option {option}; did you mean --{ours.replace('_', '-')}? {note}".strip()
    abbreviated = [flag for flag in flags if flag.startswith(option)]
    near = abbreviated[0] if len(abbreviated) == 1 else nearest(option, flags)
    return f"unknown option {option}; did you mean {near}?" if near else f"unknown option {option}."


def build_parser(name: str, command: type[Command]) -> argparse.ArgumentParser:
    """Return a parser that stores only the arguments that are given."""
    by_name = {field.name: field for field in fields(command)}  # type: ignore[arg-type]
    positionals = [_usage(command, field) for field in by_name.values() if _arg(command, field).positional]
    parser = argparse.ArgumentParser(
        usage=" ".join([f"classgap {name}", *positionals, "[OPTIONS]"]),
        description=inspect.cleandoc(command.__doc__ or ""),
        formatter_class=_HelpFormatter,
        argument_default=argparse.SUPPRESS,
        add_help=False,
        allow_abbrev=False,
        exit_on_error=False,
    )
    parser.add_argument("-h", "--help", action="help", help="Show this help message and exit.")
    hints, docs = get_type_hints(command), _field_docs(command)
    grouped = set(itertools.chain.from_iterable(command.GROUPS.values()))
    rest = [each for each in by_name if each not in grouped]
    for title, members in ({None: rest} | dict(command.GROUPS)).items():
        target: Any = parser if title is None else parser.add_argument_group(title)
        for member in members:
            field = by_name[member]
            text = f"{docs.get(member, '')} {_default_text(command, field)}".strip().replace("%", "%%")
            _add_argument(target, command, field, hints[member], text)
    return parser


def _add_argument(target: Any, command: type[Command], field: Field[Any], hint: Any, text: str) -> None:
    flag = _flag(command, field)
    if hint is bool and field.default is False:
        target.add_argument(flag, dest=field.name, action="store_true", help=text)
        target.add_argument(f"--no-{flag[2:]}", dest=field.name, action="store_false", help=argparse.SUPPRESS)
        return
    if hint is bool:
        target.add_argument(flag, dest=field.name, action=argparse.BooleanOptionalAction, help=text)
        return
    kind, several = _kind(hint), get_origin(hint) is tuple
    convert = _converter(kind, optional=NoneType in get_args(hint))
    if _arg(command, field).positional:  # never required here: parse reports missing arguments of both kinds
        nargs = "*" if several else "?"
        target.add_argument(field.name, metavar=flag, nargs=nargs, default=MISSING, type=convert, help=text)
        return
    choices = f"{{{','.join(get_args(kind))}}}" if get_origin(kind) is Literal else ""
    metavar = _arg(command, field).metavar or choices or METAVARS.get(kind, field.name.upper())
    if _arg(command, field).repeatable:
        target.add_argument(flag, dest=field.name, metavar=metavar, action="append", type=convert, help=text)
        return
    target.add_argument(flag, dest=field.name, metavar=metavar, nargs="*" if several else None, type=convert, help=text)


def _converter(kind: Any, *, optional: bool) -> Callable[[str], Any]:
    """Return a function that converts the text of a value to its type."""

    def convert(text: str) -> Any:
        text = text.removeprefix(VALUE)
        if optional and text == "None":
            return None
        if get_origin(kind) is Literal:
            if text not in get_args(kind):
                raise argparse.ArgumentTypeError(f"must be one of {', '.join(get_args(kind))}; got {text!r}")
            return text
        try:
            return kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be {DESCRIPTIONS[kind]}, got {text!r}") from None

    return convert


def _kind(hint: Any) -> Any:
    """Return the type of a value: ``float`` for ``float``, ``float | None`` and ``tuple[float, ...]``."""
    if get_origin(hint) in (Union, UnionType, tuple):
        return next(part for part in get_args(hint) if part not in (NoneType, Ellipsis))
    return hint


def _arg(command: type[Command], field: Field[Any]) -> Arg:
    return command.ARGS.get(field.name, Arg())


def _flag(command: type[Command], field: Field[Any]) -> str:
    """Return an argument's name for users: its flag, or the metavar of a positional argument."""
    arg = _arg(command, field)
    return arg.metavar or field.name.upper() if arg.positional else f"--{field.name.replace('_', '-')}"


def _usage(command: type[Command], field: Field[Any]) -> str:
    several = get_origin(get_type_hints(command)[field.name]) is tuple
    text = f"{_flag(command, field)} ..." if several else _flag(command, field)
    return text if _is_required(field) else f"[{text}]"


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _default_text(command: type[Command], field: Field[Any]) -> str:
    shown, default = _arg(command, field).default, field.default
    if _is_required(field):
        return "(required)"
    if not shown and default is not None and default is not False:
        match default:
            case True:
                shown = "on"
            case tuple():
                shown = " ".join(map(str, default))
            case float():
                shown = f"{default:g}"
            case _:
                shown = str(default)
    return f"(default: {shown})" if shown else ""


def _field_docs(command: type[Command]) -> dict[str, str]:
    """Return the docstrings below the fields of a dataclass and of its bases."""
    docs = {}
    for base in reversed(command.__mro__):
        if not is_dataclass(base):
            continue
        definition = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(definition, ast.ClassDef)
        for field, below in itertools.pairwise(definition.body):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    docs[name] = " ".join(text.split())
    return docs


def _prepare(words: Sequence[str]) -> list[str]:
    """Accept ``--weight_decay`` as ``--weight-decay``, and mark values that start with a dash.

    argparse takes ``-1e-3`` and ``-inf`` for options, and with options among positional arguments also words after
    ``--``.
    """
    result, options = [], True
    for word in words:
        if options and word == "--":
            options = False
        elif not options or (word.startswith("-") and is_number(word)):
            result.append(VALUE + word)
        else:
            name, equals, value = word.partition("=")
            result.append(name.replace("_", "-") + equals + value if word.startswith("--") else word)
    return result
