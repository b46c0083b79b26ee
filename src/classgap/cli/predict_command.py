"""``classgap predict``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from classgap.cli.outputs import check_outputs, print_written
from classgap.cli.parser import Arg, Command

if TYPE_CHECKING:
    from classgap.inference import InputSamples, PredictResult

MAX_SHOWN = 20  # samples printed without --out


@dataclass(frozen=True)
class PredictCommand(Command):
    """Predict classes with a trained model.

    INPUT is one of:
      images               files, or folders, searched recursively; folders
                           named after classes give the targets
      .txt                 text files or folders, for runs trained on text
      .npz, .safetensors   array "features", or "test_features" (see --split);
                           "targets" is optional
      .npy                 one row per sample
      .csv                 a header and one row of numbers per sample; the
                           column "target" is optional
      .csv, .parquet       table rows, for runs trained on a table
      a dataset            as in --data of classgap train (see --split)
    Without INPUT, predict the test samples of the run.

    Inputs are preprocessed as in training. Files written with --out are read by
    classgap audit, compare and fix.

    Examples:
      classgap predict runs/birds photos/new --out new.csv --top-k 3
      classgap predict runs/birds --split val --out val.npz
    """

    ARGS: ClassVar[Mapping[str, Arg]] = {
        "run_dir": Arg("RUN", positional=True),
        "inputs": Arg("INPUT", positional=True),
        "fix": Arg("DIR"),
        "batch_size": Arg(default="that of the run"),
    }

    run_dir: Path
    """Directory of a finished run of classgap train."""

    inputs: tuple[str, ...] = ()
    """Images, texts, folders, feature files, tables, or a dataset."""

    out: Path | None = None
    """Write logits, probabilities, class names and targets to this .npz, .safetensors or .csv file."""

    split: Literal["test", "val", "train"] = "test"
    """Split of a dataset or of a file with splits."""

    top_k: int | None = None
    """Also list the k most likely classes of each sample."""

    fix: Path | None = None
    """Apply the fix that `classgap fix --out DIR` saved for this run."""

    on_error: Literal["raise", "skip"] = "raise"
    """How to handle unreadable images: stop at the first (raise), or decode all images before predicting and skip the
    unreadable ones (skip)."""

    batch_size: int | None = None
    """Batch size."""

    workers: int = 0
    """Number of processes that decode images."""

    device: str = "auto"
    """Device: auto, cpu, cuda, cuda:1."""

    def run(self) -> None:
        """Predict, write the file, and print a summary."""
        from classgap.data.sources.parallel import progress_bar
        from classgap.inference import load_run
        from classgap.inference.inputs import read_inputs
        from classgap.inference.prediction_files import check_suffix, write_predictions
        from classgap.inference.processes import process_group
        from classgap.remedies import load_fix

        self._check_numbers()
        if self.out is not None:
            check_suffix(self.out)
            read = [self.run_dir, *map(Path, self.inputs), *([] if self.fix is None else [self.fix])]
            check_outputs({"--out": self.out}, read)
        model = load_run(self.run_dir, device=self.device)
        fix = None if self.fix is None else load_fix(self.fix)
        model.check_fix(fix)
        if self.top_k is not None and self.top_k > len(model.class_names):
            raise ValueError(f"--top-k must be at most the number of classes, {len(model.class_names)}.")
        samples = read_inputs(model, self.inputs, self.split)
        if self.on_error == "skip":
            with progress_bar("checking images", len(samples)) as advance:
                samples = samples.without_unreadable(advance)
        with (
            process_group(model.device) as (rank, processes),
            progress_bar("predicting", -(-len(samples) // processes)) as advance,
        ):
            result = model.predict(
                samples, batch_size=self.batch_size, workers=self.workers, fix=fix, shard=True, progress=advance
            )
        if rank > 0:
            return
        if self.out is not None:
            write_predictions(self.out, result, samples, top_k=self.top_k, train_counts=model.train_counts)
        self._print(result, samples)
        print_written({"--out": self.out})

    def _check_numbers(self) -> None:
        for flag, value, least in (
            ("--top-k", self.top_k, 1),
            ("--batch-size", self.batch_size, 1),
            ("--workers", self.workers, 0),
        ):
            if value is not None and value < least:
                raise ValueError(f"{flag} must be at least {least}, got {value}.")

    def _print(self, result: PredictResult, samples: InputSamples) -> None:
        from classgap.report.formatting import printable

        for note in samples.notes:
            print(printable(note))
        if self.out is None:
            _print_rows(result, samples, self.top_k or 1)
        count = f"{len(samples):,} sample{'s' if len(samples) > 1 else ''}"
        if samples.targets is not None:
            correct = int((result.predictions == samples.targets).sum())
            print(f"{count}, {100 * correct / len(samples):.2f} % accuracy.")
        else:
            print(f"{count}.")


def _print_rows(result: PredictResult, samples: InputSamples, top_k: int) -> None:
    """Print the best classes of the first samples, in columns."""
    from classgap.report.formatting import printable

    shown = range(min(MAX_SHOWN, len(samples)))
    columns = {"sample": [str(row) if samples.filenames is None else samples.filenames[row] for row in shown]}
    if samples.targets is not None:
        columns["target"] = [result.class_names[samples.targets[row]] for row in shown]
    for place, (classes, scores) in enumerate(zip(*(each.T.tolist() for each in result.top_k(top_k)), strict=True)):
        name = "prediction" if place == 0 else f"top {place + 1}"
        columns[name] = [f"{result.class_names[classes[row]]} {scores[row]:.3f}" for row in shown]
    cells = [[printable(each) for each in (name, *column)] for name, column in columns.items()]
    widths = [max(map(len, column)) for column in cells]
    for line in zip(*cells, strict=True):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    if len(samples) > MAX_SHOWN:
        print(f"… and {len(samples) - MAX_SHOWN:,} more: use --out to write all.")
