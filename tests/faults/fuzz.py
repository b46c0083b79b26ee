"""Run the readers on damaged files in this process: ``python fuzz.py DIRECTORY SEED COUNT [READER …]``.

Prints one JSON line per violation. A case must end with success or with one line that names the file, within bounds of
time and memory.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import resource
import shutil
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mutations import mutate
from readers import READERS, Reader, write_files

SECONDS = 20
MEMORY = 3 * 2**30  # of address space, more than at the start


class TookTooLongError(BaseException):
    """Not an OSError as TimeoutError, which readers may catch."""


def run_case(reader: Reader, directory: Path) -> str | None:
    """Return the violation, if there is one."""
    out, err = io.StringIO(), io.StringIO()
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("always")
            code = reader.run(directory)
    except (Exception, TookTooLongError):
        return traceback.format_exc(limit=-6)
    finally:
        signal.alarm(0)
    lines = [line for line in err.getvalue().splitlines() if line and not line.startswith(reader.progress)]
    if code == 0 and not [line for line in lines if not line.startswith("classgap: ")]:
        return None
    if code == reader.verdict and not lines:
        return None
    if code not in (1, 2):
        return f"exit code {code}: {lines}"
    if len(lines) != 1 or not lines[0].startswith("classgap: "):
        return f"not one line: {lines}"
    if not any(name in lines[0] for name in reader.names):
        return f"does not name {reader.target}: {lines[0]}"
    return f"{len(lines[0])} characters" if len(lines[0]) > 2000 else None


def fuzz(directory: Path, seed: int, count: int, names: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the violations of ``count`` damaged files."""
    for case in range(count):
        name = names[case % len(names)]
        target = READERS[name].target
        content = mutate((directory / "pristine" / target).read_bytes(), target, np.random.default_rng((seed, case)))
        yield from run_reader(directory, name, content, f"seed {seed}, case {case}")


def replay_inputs(directory: Path) -> Iterator[dict[str, Any]]:
    """Yield the violations of the files in ``inputs/READER/``."""
    for file in sorted((Path(__file__).parent / "inputs").glob("*/*")):
        yield from run_reader(directory, file.parent.name, file.read_bytes(), file.name)


def run_reader(directory: Path, name: str, content: bytes, case: str) -> Iterator[dict[str, Any]]:
    """Yield the violation of one damaged file."""
    (directory / "case").write_text(f"{name}: {case}")  # shows what crashed the process
    reader, pristine, work = READERS[name], directory / "pristine", directory / "work"
    shutil.rmtree(work, ignore_errors=True)
    for file in reader.needs:
        (shutil.copytree if (pristine / file).is_dir() else shutil.copy2)(pristine / file, _parent(work / file))
    _parent(work / reader.target).write_bytes(content)
    for file in work.rglob("checksums.json"):  # a hostile run has the right ones, or none
        file.unlink()
    problem = run_case(reader, work)
    if problem is not None:
        yield {"name": name, "case": case, "problem": problem}


def _parent(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def bound() -> None:
    """Bound time and memory of this process."""
    torch.set_num_threads(1)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))

    def stop(*_: object) -> None:
        raise TookTooLongError(f"more than {SECONDS} s")

    signal.signal(signal.SIGALRM, stop)


def main() -> None:
    """Replay the inputs that failed once, then fuzz."""
    directory, seed, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    directory.mkdir(parents=True, exist_ok=True)
    bound()
    os.chdir(directory)
    write_files(directory / "pristine")
    names = sys.argv[4:] or list(READERS)
    for violation in itertools.chain(replay_inputs(directory), fuzz(directory, seed, count, names)):
        print(json.dumps(violation), flush=True)


if __name__ == "__main__":
    main()
