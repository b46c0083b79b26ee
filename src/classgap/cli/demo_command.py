"""``classgap demo``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

if TYPE_CHECKING:
    from classgap.audit import Audit, AuditDiff

# What of the demo's gain is left to those who tune, from the table of docs/mr2.md.
ADVICE = (
    "With learning rate and weight decay tuned, less is left of both gains, and the penalty is nowhere behind MR²: try "
    "it first (--method feature-norm; docs/mr2.md)."
)
METHODS = {"erm": "cross-entropy", "mr2": "MR²", "feature-norm": "a penalty on the feature norm"}


@dataclass(frozen=True)
class DemoCommand:
    """Train with and without MR² on data made on the spot, and compare.

      MNIST-1D: 10 classes, 1,000 training and 10,000 test samples. The same
      network is trained with cross-entropy, with MR² at its default
      settings, and with a control that knows no classes: smaller features
      for all samples alike. Then every class is compared on the test
      samples. About three minutes on two cores. An interrupted demo goes on
      where it stopped.

    Example:
      classgap demo
    """

    out: Annotated[Path, arg(metavar="DIR")] = Path("classgap-demo")
    """Directory for the runs and report.html."""

    seeds: int = 3
    """Runs of each method."""

    epochs: int = 200
    """Epochs of each run."""

    overwrite: bool = False
    """Start over."""

    def run(self) -> None:
        """Train, compare, tell."""
        from classgap.audit import AuditDiff
        from classgap.cli.training_output import tell_stopped
        from classgap.engine import TrainingInterrupted
        from classgap.report import print_diff, write_html
        from classgap.report.formatting import printable

        if self.seeds < 1:
            raise ValueError(f"--seeds must be at least 1; got {self.seeds}.")
        try:
            self._train()
        except TrainingInterrupted as stopped:
            tell_stopped(stopped)
            return
        plain, *others = (self._audits(method) for method in METHODS)
        mr2, control = (AuditDiff.from_audits(plain, other) for other in others)
        print_diff(mr2)
        write_html(mr2, self.out / "report.html")
        print(f"\n{verdict(mr2)}\n\nFor comparison, what knows no classes: {verdict(control)}\n\n{ADVICE}")
        print(f"\nWrote {printable(str(self.out / 'report.html'))}: every class, before and after.")

    def _train(self) -> None:
        from classgap.data import load
        from classgap.engine import TrainConfig, train

        data = load("mnist1d")
        for seed in range(self.seeds):
            for method in METHODS:
                place = self._place(method, seed)
                config = TrainConfig(data="mnist1d", method=method, epochs=self.epochs, seed=seed, out=place)
                train(config, data=data, overwrite=self.overwrite)

    def _place(self, method: str, seed: int) -> Path:
        return self.out / f"{method}-seed{seed}"

    def _audits(self, method: str) -> list[Audit]:
        from classgap.audit import Audit

        audits = [Audit.load(self._place(method, seed) / "audit.json") for seed in range(self.seeds)]
        return [replace(audit, name=METHODS[method]) for audit in audits]


def verdict(diff: AuditDiff) -> str:
    """What happened to the hard classes and what the easy ones paid, in one sentence, whatever it is."""
    hard, easy = (diff.groups[name].change for name in ("hard", "easy"))
    helped, price = "did not clearly change", "the easy ones did not clearly change"
    if hard.significant:
        helped = "helped" if hard.change > 0 else "hurt"
    if easy.significant:
        price = "the easy ones gained" if easy.change > 0 else "the easy ones paid"
    return (
        f"{diff.after_name} {helped} the hard classes: {hard.before:.1%} before, {hard.after:.1%} after "
        f"({100 * hard.change:+.1f} points); {price} ({100 * easy.change:+.1f} points). "
        f"{diff.runs_per_side} seed{'s' if diff.runs_per_side > 1 else ''}, {diff.n_samples:,} test samples."
    )
