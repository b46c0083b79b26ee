"""The training loop: stages, epochs and steps, with checkpoints and a clean stop on a signal."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from classgap._atomic_write import atomic_write_text
from classgap.distributed import all_gather_object, all_reduce_max, barrier, broadcast_object, rank
from classgap.engine.class_stats import compute_class_stats
from classgap.engine.errors import NonFiniteLossError, TrainingInterrupted
from classgap.engine.logging.progress import Display
from classgap.engine.logging.tensorboard import TensorBoardLogger
from classgap.engine.random_state import random_state, restore_random_state
from classgap.engine.run import Run
from classgap.engine.signals import StopRequest
from classgap.engine.storage.checkpoint import (
    first_non_finite,
    load_checkpoint,
    load_weights,
    save_checkpoint,
    save_weights,
)
from classgap.engine.storage.run_directory import RunDirectory
from classgap.models import interpolate_weights

CONTINUE, SAVE, STOP = 0, 1, 2  # action after a step; the largest value over all processes applies


class Trainer:
    """Train a run and store its progress.

    Args:
        run: The run.
        directory: Where to store metrics and checkpoints.
        quiet: Do not show progress.

    Attributes:
        epochs_done: Completed epochs over all stages, one line of ``metrics.jsonl`` each.
        best: Epoch and monitored value of the best epoch, if the run monitors one.
    """

    def __init__(self, run: Run, directory: RunDirectory, *, quiet: bool = False) -> None:
        self.run, self.directory, self.quiet = run, directory, quiet
        self.epochs_done = 0
        self.best: dict[str, Any] | None = None
        self._previous_best: dict[str, Any] | None = None
        self._last_save = self._epoch_start = time.monotonic()
        self._epoch_samples = 0

    def fit(self, stop: StopRequest) -> None:
        """Train to the end, from the last checkpoint if there is one.

        Args:
            stop: Checked after each step.

        Raises:
            TrainingInterrupted: If a signal was received; a checkpoint was written.
            NonFiniteLossError: If the loss is not finite; the last checkpoint is from before.
        """
        run = self.run
        if not self._resume():
            self._save_initial_weights()
            self._save()  # a checkpoint to return to from the first step on
        while True:
            self._fit_stage(stop)
            run.end_stage()
            run.position.after_stage()
            if run.position.stage == len(run.stages):
                break
            run.begin_stage()
            self._save()
        self._load_selected_weights()
        run.method.finish(run)

    def _fit_stage(self, stop: StopRequest) -> None:
        run = self.run
        title = f"{run.config.method}, seed {run.config.seed}"
        title += f", {run.stage.name}" if len(run.stages) > 1 else ""
        total, done = (run.batches.count_samples(updates) for updates in (run.updates, run.position.updates))
        enabled = run.config.tensorboard and rank() == 0
        with (
            Display(title, total, done, quiet=self.quiet) as display,
            TensorBoardLogger(self.directory.path, enabled=enabled, epochs_done=self.epochs_done) as logger,
        ):
            while run.position.epoch < run.epochs:
                metrics = self.fit_epoch(stop, display)
                logger.add(metrics, self.epochs_done)
                self._save_or_stop(stop)

    def fit_epoch(self, stop: StopRequest, display: Display) -> dict[str, Any]:
        """Train for the rest of the current epoch and return its metrics."""
        run = self.run
        position = run.position
        self._epoch_start, self._epoch_samples = time.monotonic(), 0
        if position.step == 0:
            run.meter.reset()
            run.method.epoch_start(run)
        run.model.train()
        run.method.train()
        for batch in run.batches.epoch(position.epoch, start=position.step):
            if position.updates == run.updates:
                break
            try:
                run.method.step(run, batch)
            except NonFiniteLossError as failure:
                self._write_failure(failure)
                raise
            position.after_step()
            self._epoch_samples += batch.total
            display.advance(batch.total)
            self._save_or_stop(stop)
        return self._end_epoch(display)

    def _end_epoch(self, display: Display) -> dict[str, Any]:
        run = self.run
        metrics: dict[str, Any] = {"stage": run.stage.name, "epoch": run.position.epoch + 1}
        metrics["lr"] = run.optimizer.param_groups[0]["lr"]
        metrics |= run.meter.means()
        run.end_epoch()
        with run.averaged_weights():
            if run.validation is not None:
                accuracies = run.predictions(run.validation).accuracies()
                metrics |= {f"val_{name}": value for name, value in accuracies.items()}
                self._update_best(metrics)
            self._write_class_stats()
        run.position.after_epoch()
        self.epochs_done += 1
        seconds = time.monotonic() - self._epoch_start
        if rank() == 0:
            speed = self._epoch_samples / max(1e-9, seconds)
            timing = {"seconds": round(seconds, 3), "samples_per_second": round(speed, 1)}
            self.directory.add_metrics({**metrics, "timing": timing})
        display.epoch(run.position.epoch, run.epochs, metrics)
        if run.position.epoch == run.epochs:
            self._save()
        return metrics

    def _write_class_stats(self) -> None:
        """Write the statistics of the classes after this epoch, if configured; one line for each line of metrics."""
        run = self.run
        if not run.config.class_stats:
            return
        statistics = compute_class_stats(run, run.train)
        if rank() == 0:
            line = {"stage": run.stage.name, "epoch": run.position.epoch + 1, **statistics.to_dict()}
            self.directory.add_class_stats(line)

    def _save_or_stop(self, stop: StopRequest) -> None:
        """Save if a checkpoint is due and stop if a signal was received, on all processes alike."""
        stop.poll()
        due = rank() == 0 and time.monotonic() - self._last_save >= self.run.config.save_every
        action = all_reduce_max(STOP if stop.name else SAVE if due else CONTINUE)
        if action != CONTINUE:
            self._save()
        if action == STOP:
            raise TrainingInterrupted(
                f"stopped by {stop.name or 'a signal to another process'} at {self.run.describe_position()}; saved in "
                f"{self.directory.path}. Run the same command to resume.",
                stop.name,
            )

    def _save(self) -> None:
        run = self.run
        name = first_non_finite(run.model, run.method)
        if name is not None:  # keep the last good checkpoint
            failure = NonFiniteLossError(
                f"update {run.position.updates} of {run.stage.name}", [f"parameter {name}"], []
            )
            self._write_failure(failure)
            raise failure
        state = run.state_dict() | {
            "random": all_gather_object(random_state()),
            "epochs_done": self.epochs_done,
            "best": self.best,
        }
        if rank() == 0:
            self.directory.update_checksums()
            save_checkpoint(state, self.directory.last, self.directory.previous)
            self.directory.keep_best(*(best["epoch"] for best in (self.best, self._previous_best) if best is not None))
            self._previous_best = self.best
        barrier()
        self._last_save = time.monotonic()

    def _resume(self) -> bool:
        """Restore the last checkpoint and return whether there was one."""
        state = self._read_checkpoint()
        if state is None:
            if rank() == 0:
                self.directory.keep_epochs(0)
            return False
        self.run.load_state_dict(state)
        self.epochs_done, self.best = state["epochs_done"], state["best"]
        self._previous_best = self.best
        if rank() < len(state["random"]):
            restore_random_state(state["random"][rank()])
        if rank() == 0:
            self.directory.keep_epochs(self.epochs_done)
            self.directory.failure.unlink(missing_ok=True)
        return True

    def _read_checkpoint(self) -> dict[str, Any] | None:
        """Read the last checkpoint, or the one before if it is damaged; every process reads the same one."""
        paths = [path for path in (self.directory.last, self.directory.previous) if path.exists()]
        path, damage = None, None
        if rank() == 0 and paths:
            path, damage = paths[0], _damage(paths[0])
            if damage is not None and len(paths) > 1 and _damage(paths[1]) is None:
                print(f"classgap: {damage.partition(';')[0]}; resuming from the one before.", file=sys.stderr)
                paths[0].replace(self.directory.damaged)  # else the next checkpoint would move it over the good one
                path, damage = paths[1], None
        name, damage = broadcast_object((None if path is None else path.name, damage))
        if damage is not None:
            raise ValueError(damage)
        return None if name is None else load_checkpoint(self.directory.checkpoints / name)

    def _update_best(self, metrics: dict[str, Any]) -> None:
        """Keep the weights of the best epoch of the last stage."""
        monitor = self.run.config.monitor
        last_stage = self.run.position.stage == len(self.run.stages) - 1
        if monitor == "last" or not last_stage:
            return
        # Early on, the hard third may have an accuracy of 0 in every epoch: overall accuracy breaks ties.
        value = [metrics[f"val_{monitor}"], metrics["val_accuracy"]]
        if self.best is None or value > self.best["value"]:
            self.best = {"epoch": metrics["epoch"], "value": value}
            if rank() == 0:
                save_weights(self.run.model, self.directory.best(metrics["epoch"]))
            barrier()

    def _save_initial_weights(self) -> None:
        if self.run.config.wise_ft_alpha < 1 and rank() == 0:
            save_weights(self.run.model, self.directory.initial)

    def _load_selected_weights(self) -> None:
        """Load the weights of the best epoch and interpolate them with the initial ones, if configured."""
        model, config = self.run.model, self.run.config
        if self.best is not None:
            model.load_state_dict(load_weights(self.directory.best(self.best["epoch"])))
        if config.wise_ft_alpha < 1:
            initial = load_weights(self.directory.initial)
            trained = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
            model.load_state_dict(interpolate_weights(initial, trained, config.wise_ft_alpha))

    def _write_failure(self, failure: NonFiniteLossError) -> None:
        if rank() == 0:
            record = {"where": failure.where, "not_finite": failure.terms, "samples": failure.samples}
            atomic_write_text(self.directory.failure, json.dumps(record, indent=2) + "\n")


def _damage(path: Path) -> str | None:
    """Return why a checkpoint cannot be read, or ``None``."""
    try:
        load_checkpoint(path)
    except ValueError as error:
        return str(error)
    return None
