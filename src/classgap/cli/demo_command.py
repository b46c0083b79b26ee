"""``classgap demo``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from classgap.cli.listing import print_paragraph
from classgap.cli.parser import Arg, Command

if TYPE_CHECKING:
    from classgap.audit import Audit, AuditDiff
    from classgap.audit.diff_results import Change

METHODS = {"erm": "cross-entropy", "mr2": "MR²", "feature-norm": "feature-norm penalty (control)"}

# From the table of tuned runs in docs/mr2.md.
ADVICE = (
    "With a tuned learning rate and weight decay, both methods gain less, and the penalty is never behind MR²: try it "
    "first (--method feature-norm; see docs/mr2.md)."
)


@dataclass(frozen=True)
class DemoCommand(Command):
    """Compare training with and without MR² on generated data.

    The dataset is MNIST-1D: 10 classes, 1,000 training and 10,000 test
    samples, generated locally. The same network is trained with cross-entropy,
    with MR² at its default settings, and with a control that ignores classes (a
    penalty on the feature norm). Takes about three minutes on two cores. To
    resume an interrupted demo, repeat the command.

    Example:
      classgap demo
    """

    ARGS: ClassVar[Mapping[str, Arg]] = {"out": Arg("DIR")}

    out: Path = Path("classgap-demo")
    """Directory for the runs and report.html."""

    seeds: int = 3
    """Number of runs per method."""

    epochs: int = 200
    """Number of epochs per run."""

    overwrite: bool = False
    """Discard existing runs in the directory and start over."""

    def run(self) -> None:
        """Train all methods, then print and write the comparison."""
        from classgap.audit import AuditDiff
        from classgap.cli.training_output import print_interrupted
        from classgap.engine import TrainingInterrupted
        from classgap.report import print_diff, write_html
        from classgap.report.formatting import printable

        if self.seeds < 1:
            raise ValueError(f"--seeds must be at least 1, got {self.seeds}.")
        try:
            self._train()
        except TrainingInterrupted as interruption:
            print_interrupted(interruption)
            return
        plain, *others = (self._audits(method) for method in METHODS)
        mr2, control = (AuditDiff.from_audits(plain, other) for other in others)
        print_diff(mr2)
        write_html(mr2, self.out / "report.html")
        seeds = f"{self.seeds} seed{'s' if self.seeds > 1 else ''} per method, {mr2.n_samples:,} test samples."
        for text in (summarize(mr2), summarize(control), f"{seeds} {ADVICE}"):
            print()
            print_paragraph(text)
        print(f"\nWrote {printable(str(self.out / 'report.html'))}.")

    def _train(self) -> None:
        from classgap.data import load
        from classgap.engine import TrainConfig, train

        data = load("mnist1d")
        for seed in range(self.seeds):
            for method in METHODS:
                config = TrainConfig(
                    data="mnist1d", method=method, epochs=self.epochs, seed=seed, out=self._directory(method, seed)
                )
                train(config, data=data, overwrite=self.overwrite)

    def _directory(self, method: str, seed: int) -> Path:
        return self.out / f"{method}-seed{seed}"

    def _audits(self, method: str) -> list[Audit]:
        from classgap.audit import Audit

        audits = [Audit.load(self._directory(method, seed) / "audit.json") for seed in range(self.seeds)]
        return [replace(audit, name=METHODS[method]) for audit in audits]


def summarize(diff: AuditDiff) -> str:
    """Describe the changes of the hard and the easy third in one line."""
    hard, easy = (diff.groups[name].change for name in ("hard", "easy"))
    return (
        f"{diff.after_name}: hard third {100 * hard.before:.1f} % → {100 * hard.after:.1f} % ({_points(hard)}); "
        f"easy third {_points(easy)}."
    )


def _points(change: Change) -> str:
    points = f"{100 * change.change:+.1f}".replace("-", "−")
    return f"{points} points{'' if change.significant else ', not significant'}"
