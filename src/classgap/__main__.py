"""``python -m classgap`` and the script ``classgap``: the command line as a process of its own."""

import os
import signal
import sys
from typing import NoReturn

from classgap.cli import main
from classgap.cli.main import INTERRUPTED


def end(code: int) -> NoReturn:
    """Exit with a code, or as Ctrl-C ends a program; a process that torchrun started exits at once.

    DistributedDataParallel keeps its process group, and with it the threads of gloo, until the very end, even if it is
    deleted first. Python's orderly way out takes things away from under them, and a process whose work is done could
    still end in a crash.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if code == INTERRUPTED:  # by the signal, or a shell would go on with the next command of a loop
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    if "TORCHELASTIC_RUN_ID" in os.environ:
        os._exit(code)
    sys.exit(code)


def run() -> NoReturn:
    """The command line, to its end; also what the script ``classgap`` is."""
    end(main())


if __name__ == "__main__":
    run()
