"""``classgap demo``."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from classgap.cli.invocation import command_line
from classgap.cli.listing import print_paragraph
from classgap.cli.outputs import busy, write_folder
from classgap.cli.parser import Arg, Command

if TYPE_CHECKING:
    from classgap.audit import Audit, AuditDiff
    from classgap.audit.diff_results import Change
    from classgap.remedies import FixResult

METHODS = {"erm": "cross-entropy", "mr2": "MR²"}
DATA = "mnist1d:n-train=2000"  # 1,000 training samples are left when half is held out

# From the table of tuned runs in docs/mr2.md.
ADVICE = (
    "With a tuned learning rate and weight decay, MR² gains less; docs/remedies.md compares all remedies on eight "
    "problems."
)


@dataclass(frozen=True)
class DemoCommand(Command):
    """Train, audit and fix a classifier on generated data.

    The dataset is MNIST-1D: 10 classes, 1,000 training, 1,000 validation and
    10,000 test samples, generated locally. The demo trains a network with
    cross-entropy, audits it, finds a remedy on the validation samples, tests it
    on the test samples, and trains with the MR² loss (margin regularization)
    for comparison. It takes about three minutes on two cores. To resume an
    interrupted demo, rerun the command.

    Example:
      classgap demo
    """

    ARGS: ClassVar[Mapping[str, Arg]] = {"out": Arg("DIR")}

    out: Path = Path("classgap-demo")
    """Directory for the runs, the reports and the fix."""

    seeds: int = 3
    """Number of runs per method; the fix averages their predictions."""

    epochs: int = 200
    """Number of epochs per run."""

    overwrite: bool = False
    """Discard existing runs in the directory and start over."""

    def run(self) -> None:
        """Train, audit, fix, and compare with MR²; print and write every report."""
        from classgap.audit import AuditDiff
        from classgap.cli.training_output import raise_interrupted
        from classgap.engine import TrainingInterrupted
        from classgap.report import print_audit, print_fix, write_html

        if self.seeds < 1:
            raise ValueError(f"--seeds must be at least 1, got {self.seeds}.")
        try:
            self._train()
        except TrainingInterrupted as interruption:
            raise_interrupted(interruption)
        plain, mr2 = (self._audits(method) for method in METHODS)
        result = self._fix()
        diff = AuditDiff.from_audits(plain, mr2)
        print_audit(plain[0])
        print()
        print_fix(result)
        write_html(plain[0], self.out / "audit.html", command=command_line())
        write_html(result, self.out / "fix.html", command=command_line())
        write_html(diff, self.out / "mr2.html", command=command_line())
        print()
        for line in (summarize_fix(result), summarize(diff), f"{ADVICE}"):
            print_paragraph(line)
        self._print_files(result)

    def _train(self) -> None:
        from classgap.data import load
        from classgap.engine import TrainConfig, train

        data = load(DATA)
        for seed in range(self.seeds):
            for method in METHODS:
                config = TrainConfig(
                    data=DATA,
                    method=method,
                    epochs=self.epochs,
                    seed=seed,
                    val_fraction=0.5,
                    split_seed=0,  # all runs hold out the same samples
                    out=self._directory(method, seed),
                )
                train(config, data=data, overwrite=self.overwrite)

    def _fix(self) -> FixResult:
        from classgap.remedies import fix

        with busy("Trying remedies") as update:
            result = fix([self._directory("erm", seed) for seed in range(self.seeds)], progress=update)
        if result.fix is not None:
            write_folder(self.out / "fixed", result.fix.save)
        elif (self.out / "fixed").exists():  # of an earlier demo
            shutil.rmtree(self.out / "fixed")
        return result

    def _directory(self, method: str, seed: int) -> Path:
        return self.out / f"{method}-seed{seed}"

    def _audits(self, method: str) -> list[Audit]:
        from classgap.audit import Audit

        audits = [Audit.load(self._directory(method, seed) / "audit.json") for seed in range(self.seeds)]
        return [replace(audit, name=METHODS[method]) for audit in audits]

    def _print_files(self, result: FixResult) -> None:
        from classgap.report.formatting import printable

        for name in ("audit.html", "fix.html", "mr2.html"):
            print(f"Wrote {printable(str(self.out / name))}.")
        if result.fix is not None:
            print(f"Wrote {printable(str(self.out / 'fixed'))}; load it with cg.load_fix.")


def summarize_fix(result: FixResult) -> str:
    """Describe the proof of a fix in one line."""
    if result.proof is None:
        return "classgap fix: nothing helped."
    hard, easy = result.proof["hard"], result.proof["easy"]
    return (
        f"classgap fix ({result.chosen}): hard third {100 * hard.before:.1f} % → {100 * hard.after:.1f} % "
        f"({format_change(hard.change)} points); easy third {format_change(easy.change)} points."
    )


def summarize(diff: AuditDiff) -> str:
    """Describe the changes of the hard and the easy third in one line."""
    hard, easy = (diff.groups[name].change for name in ("hard", "easy"))
    return (
        f"{diff.after_name} (mean of {diff.n_runs}): hard third {100 * hard.before:.1f} % → {100 * hard.after:.1f} % "
        f"({_points(hard)}); easy third {_points(easy)}."
    )


def format_change(change: float) -> str:
    """Format a change in points with a sign."""
    return f"{100 * change:+.1f}".replace("-", "−")


def _points(change: Change) -> str:
    return f"{format_change(change.change)} points{'' if change.significant else ', not significant'}"
