"""``classgap fix``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from classgap.cli.invocation import command_line
from classgap.cli.outputs import busy, check_output_folder, check_outputs, print_written, write_folder
from classgap.cli.parser import Arg, Command

if TYPE_CHECKING:
    from classgap.remedies import FixResult


_TRAINING = ("model", "budget", "n_trials", "methods", "epochs", "val_fraction", "executor", "study_dir")


@dataclass(frozen=True)
class FixCommand(Command):
    """Find a remedy for hard classes, and test it on held-out samples.

    SOURCE holds a classifier's scores on samples it was not trained on. Several
    sources hold the scores of different models on the same samples; fix also
    tries their ensembles. Remedies are chosen on SOURCE alone and tested on
    --test, or by nested cross-fitting without it. A run of classgap train with
    --val-fraction has everything needed: validation and test samples, images,
    features and weights. With --data instead of SOURCE, fix trains the
    models itself: it searches methods and settings within --budget.

    Examples:
      classgap fix val.npz --test test.npz --out fixed
      classgap fix val_a.npz val_b.npz --test test_a.npz test_b.npz
      classgap fix predictions.npz --html fix.html
      classgap fix runs/a runs/b
      classgap fix --data mnist1d --budget 10m --executor process:2

    In Python, cg.load_fix("fixed") loads the fix; call it with new scores.
    """

    ARGS: ClassVar[Mapping[str, Arg]] = {
        "sources": Arg("SOURCE", positional=True),
        "max_easy_loss": Arg(default="0.3; no limit if the training set is imbalanced"),
        "max_medium_loss": Arg(default="1; no limit if the training set is imbalanced"),
        "out": Arg("DIR"),
        "study_dir": Arg("DIR", default="runs/DATA-fix-seedN"),
    }
    GROUPS: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "training": (
            "data",
            "model",
            "budget",
            "n_trials",
            "methods",
            "epochs",
            "val_fraction",
            "executor",
            "study_dir",
        ),
    }

    sources: tuple[Path, ...] = ()
    """Prediction files with scores or run directories, one per model."""

    test: tuple[Path, ...] = ()
    """Predictions of the same models on the test set, in the same order."""

    goal: Literal["hard", "worst", "balanced", "cost"] = "hard"
    """Metric to improve: mean accuracy of the hard third of the classes (hard), of the worst tenth (worst), of all
    classes (balanced), or mean cost (cost, with --costs)."""

    max_easy_loss: float | None = None
    """Largest drop allowed in the accuracy of the easy third, in percentage points."""

    max_overall_loss: float = 0.1
    """Largest drop allowed in overall accuracy, in percentage points."""

    max_medium_loss: float | None = None
    """Largest drop allowed in the accuracy of the medium third, in percentage points."""

    costs: Path | None = None
    """Costs of errors (.csv, .json, .npy): a matrix with true classes as rows, or {"true": {"predicted": cost}} by
    class name; unlisted errors cost 1."""

    priors: Path | None = None
    """Class frequencies at prediction time (.csv, .json, .npy): numbers in class order, or {"class": prior}."""

    html: Path | None = None
    """Write the full report as one self-contained HTML page."""

    json: Path | None = None
    """Save the result as JSON."""

    out: Path | None = None
    """Save the chosen remedy to this directory, for cg.load_fix. It must be new or empty, or contain an earlier fix."""

    confidence_level: float = 0.95
    """Confidence level of all intervals."""

    seed: int = 0
    """Seed for the folds, the bootstrap and the search."""

    data: str | None = None
    """Train on this dataset instead of fixing a trained model; see `classgap datasets`."""

    model: str | None = None
    """Model to train, by default one that suits the data; see `classgap models`."""

    budget: str | None = None
    """Training time limit: 2h, 30m, 45s."""

    n_trials: int | None = None
    """Maximum number of trials, including the baseline."""

    methods: tuple[str, ...] = ()
    """Training methods to try, by default the ones that suit the data."""

    epochs: int | None = None
    """Number of epochs of each trial."""

    val_fraction: float = 0.2
    """Fraction of the training set held out to score trials."""

    executor: str = "process:1"
    """Where trials run: in N processes (process:N), or on a Dask cluster (dask:ADDRESS) whose workers share the file
    system."""

    study_dir: Path | None = None
    """Directory of the search. Rerun the command to continue it."""

    def run(self) -> None:
        """Find a remedy, write the files, and print the result."""
        from classgap.report import print_fix, write_html

        outputs = {"--html": self.html, "--json": self.json}
        self._check_sources()
        self._check_outputs(outputs)
        if self.data is not None:
            result = self._search()
        else:
            with busy("Trying remedies") as update:
                result = self._fix(update)
        with busy("Writing"):
            if self.out is not None and result.fix is not None:
                write_folder(self.out, result.fix.save)
            if self.json is not None:
                result.save(self.json)
            if self.html is not None:
                write_html(result, self.html, sources=[*self.sources, *self.test], command=command_line())
        print_fix(result)
        print_written(outputs)
        if self.out is not None:
            self._print_use(result, self.out)

    def _check_sources(self) -> None:
        if self.goal == "cost" and self.costs is None:
            raise ValueError("--goal cost needs --costs, a file with the costs of errors.")
        if self.data is None:
            if not self.sources:
                raise ValueError("fix needs SOURCE (prediction files or run directories), or --data to train.")
            given = [name for name in _TRAINING if getattr(self, name) != getattr(type(self), name)]
            if given:
                raise ValueError(f"--{given[0].replace('_', '-')} needs --data: without it, nothing is trained.")
        elif self.sources or self.test:
            files = ", ".join(map(str, (*self.sources, *self.test)))
            raise ValueError(f"--data {self.data} trains models and cannot be combined with SOURCE or --test: {files}.")

    def _check_outputs(self, outputs: Mapping[str, Path | None]) -> None:
        inputs = [*self.sources, *self.test, *(path for path in (self.costs, self.priors) if path is not None)]
        check_outputs(outputs, inputs)
        if self.out is None:
            return
        check_output_folder("--out", self.out, _belongs_to_fix, inputs)
        for flag, path in outputs.items():
            if path is not None and Path(os.path.realpath(self.out)) in Path(os.path.realpath(path)).parents:
                raise ValueError(f"{flag} {path} is in --out {self.out}, which will be replaced; choose another file.")

    def _fix(self, progress: Callable[[str], None]) -> FixResult:
        from classgap.remedies import fix

        return fix(self.sources, self.test or None, seed=self.seed, progress=progress, **self._arguments())

    def _search(self) -> FixResult:
        from classgap.cli.fix_search import run_search
        from classgap.remedies.search import SearchConfig

        assert self.data is not None
        config = SearchConfig(
            data=self.data,
            model=self.model,
            out=self.study_dir,
            budget=self.budget,
            n_trials=self.n_trials,
            executor=self.executor,
            val_fraction=self.val_fraction,
            methods=self.methods or None,
            epochs=self.epochs,
            seed=self.seed,
        )
        return run_search(config, **self._arguments())

    def _arguments(self) -> dict[str, Any]:
        from classgap.remedies.class_values import read_class_values

        return {
            "goal": self.goal,
            "max_easy_loss": self.max_easy_loss,
            "max_overall_loss": self.max_overall_loss,
            "max_medium_loss": self.max_medium_loss,
            "costs": None if self.costs is None else read_class_values(self.costs, "costs"),
            "priors": None if self.priors is None else read_class_values(self.priors, "priors"),
            "confidence_level": self.confidence_level,
        }

    @staticmethod
    def _print_use(result: FixResult, out: Path) -> None:
        from classgap.report.formatting import printable

        if result.fix is None:
            print(printable(f"Nothing was written to {out}: no remedy was chosen."))
            return
        print(printable(f"Wrote {out}: cg.load_fix({str(out)!r}) takes {result.fix.input_description}."))


def _belongs_to_fix(name: str) -> bool:
    return name == "fix.json" or name.endswith(".safetensors")
