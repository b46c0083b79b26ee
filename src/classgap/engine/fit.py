"""The loop: stages, epochs, steps; a checkpoint now and then; a clean end when asked to stop."""

from __future__ import annotations

import json
import time
from typing import Any

from classgap._atomic_write import atomic_write_text
from classgap.distributed import all_gather_object, all_reduce_max, barrier, broadcast_object, rank
from classgap.engine.errors import NonFiniteLossError
from classgap.engine.logging.progress import Display
from classgap.engine.logging.tensorboard import Scalars
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

GO_ON, SAVE, STOP = 0, 1, 2  # what a step may end with, in rising order of weight


class TrainingInterrupted(Exception):
    """The run was asked to stop; it is saved and can go on.

    Args:
        message: in one sentence, for people.
        signal: the name of what this process was asked by; "" if another process was.
    """

    def __init__(self, message: str, signal: str = "") -> None:
        super().__init__(message)
        self.signal = signal


class Fit:
    """Trains a run and stores it in a directory as it goes.

    Args:
        run: what is trained.
        directory: where it is stored.
        quiet: no progress is shown.
    """

    def __init__(self, run: Run, directory: RunDirectory, *, quiet: bool = False) -> None:
        self.run, self.directory, self.quiet = run, directory, quiet
        self.epochs_done = 0  # over all stages: the lines of metrics.jsonl
        self.best: dict[str, Any] | None = None
        self._saved = self._epoch_began = time.monotonic()
        self._epoch_samples = 0  # that were used since then
        self._begun = False  # whether the current stage was set up

    def __call__(self, stop: StopRequest) -> None:
        """Train to the end, from the last checkpoint if there is one.

        Args:
            stop: looked at after every step.

        Raises:
            TrainingInterrupted: if a signal asked for it; a checkpoint was written.
            NonFiniteLossError: if the loss is no longer a number; the last checkpoint is from before.
        """
        self._resume()
        run = self.run
        while run.position.stage < len(run.stages):
            if not self._begun:
                run.begin_stage()
                self._begun = True
                self._keep_initial()
                self._save()  # so that there is something to go back to from the first step on
            self._stage(stop)
            run.method.stage_end(run)
            run.position.after_stage()
            self._begun = False
        self._choose()
        run.method.finish(run)

    def _stage(self, stop: StopRequest) -> None:
        run = self.run
        title = f"{run.config.method}, seed {run.config.seed}"
        title += f", {run.stage.name}" if len(run.stages) > 1 else ""
        total, done = (run.batches.samples(updates) for updates in (run.updates, run.position.updates))
        logged = run.config.tensorboard and rank() == 0
        with (
            Display(title, total, done, quiet=self.quiet) as display,
            Scalars(self.directory.path, on=logged, done=self.epochs_done) as scalars,
        ):
            while run.position.epoch < run.epochs:
                metrics = self.epoch(stop, display)
                scalars.add(metrics, self.epochs_done)
                self._look_up(stop)

    def epoch(self, stop: StopRequest, display: Display) -> dict[str, Any]:
        """Train for an epoch, or what is left of it; gives its figures."""
        run = self.run
        position = run.position
        self._epoch_began, self._epoch_samples = time.monotonic(), 0
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
                self._tell(failure)
                raise
            position.after_step()
            self._epoch_samples += batch.total
            display.advance(batch.total)
            self._look_up(stop)
        return self._end_epoch(display)

    def _end_epoch(self, display: Display) -> dict[str, Any]:
        run = self.run
        metrics: dict[str, Any] = {"stage": run.stage.name, "epoch": run.position.epoch + 1}
        metrics["lr"] = run.optimizer.param_groups[0]["lr"]
        metrics |= run.meter.means()
        if run.validation is not None:
            accuracies = run.predictions(run.validation).accuracies()
            metrics |= {f"val_{name}": value for name, value in accuracies.items()}
            self._remember_best(metrics)
        run.position.after_epoch()
        self.epochs_done += 1
        seconds = time.monotonic() - self._epoch_began
        if rank() == 0:
            speed = self._epoch_samples / max(1e-9, seconds)
            timing = {"seconds": round(seconds, 3), "samples_per_second": round(speed, 1)}
            self.directory.add_metrics({**metrics, "timing": timing})
        display.epoch(run.position.epoch, run.epochs, metrics)
        if run.position.epoch == run.epochs:
            self._save()
        return metrics

    def _look_up(self, stop: StopRequest) -> None:
        """After a step: save if it is time, stop if asked; all processes do the same."""
        due = rank() == 0 and time.monotonic() - self._saved >= self.run.config.save_every
        code = all_reduce_max(STOP if stop.name else SAVE if due else GO_ON)
        if code != GO_ON:
            self._save()
        if code == STOP:
            raise TrainingInterrupted(
                f"stopped by {stop.name or 'a signal to another process'} at {self.run.where()}; saved in "
                f"{self.directory.path}. The same command goes on from here.",
                stop.name,
            )

    def _save(self) -> None:
        run = self.run
        spoiled = first_non_finite(run.model, run.method)
        if spoiled is not None:  # keep the last good one
            failure = NonFiniteLossError(
                f"update {run.position.updates} of {run.stage.name}", [f"parameter {spoiled}"], []
            )
            self._tell(failure)
            raise failure
        state = run.state_dict() | {
            "random": all_gather_object(random_state()),
            "epochs_done": self.epochs_done,
            "best": self.best,
        }
        if rank() == 0:
            save_checkpoint(state, self.directory.last)
            self.directory.keep_best(None if self.best is None else self.best["epoch"])
        barrier()
        self._saved = time.monotonic()

    def _resume(self) -> None:
        if not broadcast_object(self.directory.last.exists()):
            return
        state = load_checkpoint(self.directory.last)
        self.run.load_state_dict(state)
        self.epochs_done, self.best = state["epochs_done"], state["best"]
        if rank() < len(state["random"]):
            restore_random_state(state["random"][rank()])
        if rank() == 0:
            self.directory.keep_metrics(self.epochs_done)
            self.directory.failure.unlink(missing_ok=True)
        self._begun = True

    def _remember_best(self, metrics: dict[str, Any]) -> None:
        rule = self.run.config.monitor
        last_stage = self.run.position.stage == len(self.run.stages) - 1
        if rule == "last" or not last_stage:
            return
        # Early on the hard third may be all wrong in every epoch: then overall accuracy decides.
        value = [metrics[f"val_{rule}"], metrics["val_accuracy"]]
        if self.best is None or value > self.best["value"]:
            self.best = {"epoch": metrics["epoch"], "value": value}
            if rank() == 0:
                save_weights(self.run.model, self.directory.best(metrics["epoch"]))
            barrier()

    def _keep_initial(self) -> None:
        if self.run.config.wise_ft_alpha < 1 and self.run.position.stage == 0 and rank() == 0:
            save_weights(self.run.model, self.directory.initial)

    def _choose(self) -> None:
        """Put the chosen weights into the model: of the best epoch, and between them and the initial ones."""
        model, config = self.run.model, self.run.config
        if self.best is not None:
            model.load_state_dict(load_weights(self.directory.best(self.best["epoch"])))
        if config.wise_ft_alpha < 1:
            initial = load_weights(self.directory.initial)
            trained = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
            model.load_state_dict(interpolate_weights(initial, trained, config.wise_ft_alpha))

    def _tell(self, failure: NonFiniteLossError) -> None:
        if rank() == 0:
            record = {"where": failure.where, "not_finite": failure.terms, "samples": failure.samples}
            atomic_write_text(self.directory.failure, json.dumps(record, indent=2) + "\n")
