"""Command line: argument parsing and printed output. ``classgap --help`` lists the commands."""

from classgap.cli.main import main

__all__ = ["main"]
