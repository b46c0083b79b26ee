"""Run the code blocks of the case studies on the real data, store every figure, and write the pages.

    OMP_NUM_THREADS=1 python benchmarks/case_studies.py measure FOLDER --keep REPORTS   # FOLDER holds the data
    python benchmarks/case_studies.py docs                                            # writes docs/case-studies/*.md

The pages in case_study_pages/ are templates: their code blocks are the ones that run, and their figures are filled in
from results/case_studies.json. ``--keep`` keeps the files that the blocks write. ``make pictures`` takes the pictures.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import case_study_figures
import jinja2
import stored

HERE = Path(__file__).parent
RESULTS = stored.RESULTS / "case_studies.json"
TEMPLATES = HERE / "case_study_pages"
PAGES = HERE.parent / "docs" / "case-studies"
DATA = {
    "imagenet": (
        "imagenet_val_dino.npz",
        "imagenet_val_simclr.npz",
        "imagenet_val_cleanlab.npz",
        "imagenet_val_real_labels.json",
    ),
    "clinc150": ("clinc150_minilm.npz",),
}


@dataclass
class Session:
    """What the blocks of a page leave behind.

    Attributes:
        folder: where they ran.
        names: names of the Python blocks.
        seconds: processor seconds of each command, and of the Python blocks under "python".
    """

    folder: Path
    names: dict[str, Any] = field(default_factory=dict)
    seconds: list[tuple[str, float]] = field(default_factory=list)

    def read(self, name: str) -> dict[str, Any]:
        """Return a JSON file that a command wrote."""
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def total(self, start: str = "") -> float:
        """Processor seconds of the commands that start with ``start``."""
        return sum(seconds for command, seconds in self.seconds if command.startswith(start))


def run_blocks(study: str, folder: Path) -> Session:
    """Run the blocks of a page in a folder that holds its data."""
    session = Session(folder)
    text = (TEMPLATES / f"{study}.md").read_text(encoding="utf-8")
    with chdir(folder):
        for kind, block in re.findall(r"^```(python|console)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
            if kind == "python":
                start = time.process_time()
                exec(compile(block, study, "exec"), session.names)
                session.seconds.append(("python", time.process_time() - start))
                continue
            for command in block.splitlines():
                start = _child_seconds()
                done = subprocess.run([sys.executable, "-m", *shlex.split(command)], capture_output=True, text=True)
                # A gate that finds a worse model ends with 1.
                if done.returncode not in ((0, 1) if command.startswith("classgap gate") else (0,)):
                    raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr}")
                session.seconds.append((command, _child_seconds() - start))
    return session


def _child_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(data: Path, keep: Path | None = None) -> dict[str, Any]:
    """Run both case studies and return their figures."""
    results = {}
    for study, names in DATA.items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) if keep is None else keep / study
            folder.mkdir(parents=True, exist_ok=True)
            for name in names:
                source = next(data.rglob(name), None)
                if source is None:
                    raise FileNotFoundError(f"{name} is not below {data}.")
                (folder / name).unlink(missing_ok=True)
                (folder / name).symlink_to(source.resolve())
            results[study] = getattr(case_study_figures, study)(run_blocks(study, folder))
    return results


def render(study: str, results: dict[str, Any]) -> str:
    """Return the page of a case study with its figures."""
    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Markdown
    )
    pages.filters |= {
        "count": lambda value: f"{value:,}",
        "one": lambda value: f"{value:.1f}",
        "pct": lambda value: f"{100 * value:.1f}",
        "pct_ci": lambda figure: _with_interval(figure, signed=False),
        "pts": lambda value: stored.signed(100 * value),
        "pts1": stored.signed,
        "pts_ci": lambda figure: _with_interval(figure, signed=True),
    }
    return pages.get_template(f"{study}.md").render(r=results[study])


def _with_interval(figure: Sequence[float], signed: bool) -> str:
    value, low, high = (stored.signed(100 * part) if signed else f"{100 * part:.1f}" for part in figure)
    return f"{value} ({low}\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}{high})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("data", type=Path)
    measuring.add_argument("--keep", type=Path)
    commands.add_parser("docs")
    given = parser.parse_args()
    if given.command == "measure":
        stored.write(RESULTS, measure(given.data, given.keep))
    results = stored.read(RESULTS)
    PAGES.mkdir(exist_ok=True)
    for study in DATA:
        (PAGES / f"{study}.md").write_text(render(study, results), encoding="utf-8")


if __name__ == "__main__":
    main()
