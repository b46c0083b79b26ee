"""The command line: parse, call, print. ``classgap --help`` lists the commands."""

from classgap.cli.main import main

__all__ = ["main"]
