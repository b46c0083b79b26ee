"""Run the command line as a process: ``python -m classgap`` and the script ``classgap``."""

import os
import signal
import sys
from typing import NoReturn

from classgap._exit_codes import INTERRUPTED


def run() -> NoReturn:
    """Run the command line and exit with its code.

    While modules are imported, an interruption ends the process at once: it would otherwise print where, and modules
    that catch it halfway would fail in other ways.
    """
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # it is ignored under nohup
    if interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from classgap.cli import main

    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    exit_process(main())


def exit_process(code: int) -> NoReturn:
    """Exit with a code, by SIGINT after an interruption, and immediately under torchrun.

    DistributedDataParallel keeps its process group and gloo's threads until the process ends, even after it is deleted.
    A regular interpreter shutdown frees resources that these threads still use, so a finished process could crash.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if code == INTERRUPTED:  # a shell only stops a loop of commands if the process dies by the signal
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    if "TORCHELASTIC_RUN_ID" in os.environ:
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    run()
