"""``classgap fix``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from classgap.cli.outputs import busy, check_output_folder, check_outputs, print_written, write_folder
from classgap.cli.parser import Arg, Command

if TYPE_CHECKING:
    from classgap.remedies import FixResult


@dataclass(frozen=True)
class FixCommand(Command):
    """Find a remedy for hard classes, and prove it on held-out samples.

    SOURCE holds the scores of a classifier for samples that it was not trained
    on; several sources are different models on the same samples, and are also
    averaged. Remedies are chosen on SOURCE alone and proven on --test. Without
    --test, the proof is by nested cross-fitting.

    Examples:
      classgap fix val.npz --test test.npz --out fixed
      classgap fix val_a.npz val_b.npz --test test_a.npz test_b.npz
      classgap fix predictions.npz --html fix.html

    In Python, cg.load_fix("fixed") applies the remedy to new scores.
    """

    ARGS: ClassVar[Mapping[str, Arg]] = {
        "sources": Arg("SOURCE", positional=True),
        "max_easy_loss": Arg(default="0.3; no limit if the training set is imbalanced"),
        "out": Arg("DIR"),
    }

    sources: tuple[Path, ...]
    """Prediction files with scores, one per model."""

    test: tuple[Path, ...] = ()
    """Prediction files of the same models for other samples, in the same order."""

    goal: Literal["hard", "worst", "balanced", "cost"] = "hard"
    """Value to improve: the accuracy of the hard third of the classes, of the worst tenth, of all classes, or the mean
    cost (with --costs)."""

    max_easy_loss: float | None = None
    """Accuracy of the easy third that a remedy may cost, in percentage points."""

    max_overall_loss: float = 0.1
    """Accuracy over all samples that a remedy may cost, in percentage points."""

    costs: Path | None = None
    """Costs of errors (.csv, .json, .npy): a matrix with true classes as rows, or names {"true": {"predicted": cost}};
    missing errors cost 1."""

    priors: Path | None = None
    """Class frequencies at prediction time (.csv, .json, .npy): numbers, or names {"class": prior}."""

    html: Path | None = None
    """Write the full report as one self-contained HTML page."""

    json: Path | None = None
    """Save the result as JSON."""

    out: Path | None = None
    """Write the chosen remedy to this directory, for cg.load_fix; it must be new, empty, or hold an earlier fix."""

    confidence_level: float = 0.95
    """Confidence level of all intervals."""

    seed: int = 0
    """Seed of the folds and of the bootstrap."""

    def run(self) -> None:
        """Find a remedy, write the files, and print the result."""
        from classgap.report import print_fix, write_html

        outputs = {"--html": self.html, "--json": self.json}
        self._check_outputs(outputs)
        with busy("Trying remedies"):
            result = self._fix()
            if self.out is not None and result.fix is not None:
                write_folder(self.out, result.fix.save)
            if self.json is not None:
                result.save(self.json)
            if self.html is not None:
                write_html(result, self.html)
        print_fix(result)
        print_written(outputs)
        if self.out is not None:
            self._print_use(result, self.out)

    def _check_outputs(self, outputs: Mapping[str, Path | None]) -> None:
        inputs = [*self.sources, *self.test, *(path for path in (self.costs, self.priors) if path is not None)]
        check_outputs(outputs, inputs)
        if self.out is None:
            return
        check_output_folder("--out", self.out, _belongs_to_fix, inputs)
        for flag, path in outputs.items():
            if path is not None and self.out.resolve() in path.resolve().parents:
                raise ValueError(f"{flag} {path} is in --out {self.out}, which is replaced; name another file.")

    def _fix(self) -> FixResult:
        from classgap.remedies import fix
        from classgap.remedies.class_values import read_class_values

        return fix(
            self.sources,
            self.test or None,
            goal=self.goal,
            max_easy_loss=self.max_easy_loss,
            max_overall_loss=self.max_overall_loss,
            costs=None if self.costs is None else read_class_values(self.costs, "costs"),
            priors=None if self.priors is None else read_class_values(self.priors, "priors"),
            confidence_level=self.confidence_level,
            seed=self.seed,
        )

    @staticmethod
    def _print_use(result: FixResult, out: Path) -> None:
        from classgap.report.formatting import printable

        if result.fix is None:
            print(printable(f"Nothing was written to {out}: no remedy was chosen."))
            return
        print(printable(f"Wrote {out}: cg.load_fix({str(out)!r}) takes {result.fix.input_description}."))


def _belongs_to_fix(name: str) -> bool:
    return name == "fix.json" or name.endswith(".safetensors")
