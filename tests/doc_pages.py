"""Run the code blocks of a documentation page, in the order in which a reader meets them."""

import contextlib
import io
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from classgap.cli import main

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```(python|console|text)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def read_page(name: str) -> str:
    """Return the Markdown text of ``docs/NAME``."""
    return (DOCS / name).read_text(encoding="utf-8")


def prose(text: str) -> str:
    """Return a page without its code blocks."""
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def read_commands(name: str) -> list[str]:
    """Return the lines of the ``console`` blocks of a page."""
    return [line for kind, block in BLOCK.findall(read_page(name)) if kind == "console" for line in _split_lines(block)]


def run_page(name: str, exit_codes: Mapping[str, int] | None = None, namespace: dict[str, object] | None = None) -> str:
    """Run the ``python`` and ``console`` blocks of a page in the current directory and return what they print.

    The Python blocks share one namespace. A ``text`` block states what the block above it prints, and must be right.

    Args:
        name: path below ``docs``.
        exit_codes: start of a command → its exit code; the other commands must succeed.
        namespace: variables of the Python blocks; those that they set are added.
    """
    namespace = {} if namespace is None else namespace
    outputs: list[str] = []
    blocks = BLOCK.findall(read_page(name))
    assert blocks, f"{name} has no code blocks"
    for kind, block in blocks:
        if kind == "text":
            assert outputs[-1] == block, f"{name} states:\n{block}\nbut this is printed:\n{outputs[-1]}"
            continue
        with contextlib.redirect_stdout(io.StringIO()) as output:
            if kind == "python":
                exec(compile(block, name, "exec"), namespace)
            else:
                _run_commands(block, exit_codes or {})
        outputs.append(output.getvalue())
    return "".join(outputs)


def _run_commands(block: str, exit_codes: Mapping[str, int]) -> None:
    for line in _split_lines(block):
        program, *words = shlex.split(line)
        assert program == "classgap", line
        expected = next((code for start, code in exit_codes.items() if line.startswith(start)), 0)
        assert main(words) == expected, line


def _split_lines(block: str) -> list[str]:
    return block.replace("\\\n", " ").splitlines()
