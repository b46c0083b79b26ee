"""``classgap demo``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import arg


@dataclass(frozen=True)
class DemoCommand:
    """Train with and without MR² on data made on the spot, and compare.

    MNIST-1D: 10 classes, 1,000 training and 10,000 test samples. The same
    network is trained with cross-entropy and with MR² at its default settings;
    then every class is compared on the test samples. Two to four minutes on two
    cores. An interrupted demo goes on where it stopped.

    Example:
      classgap demo
    """

    out: Annotated[Path, arg(metavar="DIR")] = Path("classgap-demo")
    """Directory for the runs and report.html."""

    seeds: int = 3
    """Runs of each method."""

    epochs: int = 200
    """Epochs of each run."""

    def run(self) -> None:
        """Train, compare, tell."""
        from classgap.audit import Audit, AuditDiff
        from classgap.engine import Stopped, TrainConfig, train
        from classgap.report import print_diff, write_html
        from classgap.report.wording import printable

        if self.seeds < 1:
            raise ValueError(f"--seeds must be at least 1; got {self.seeds}.")
        methods = ("erm", "mr2")
        places = {(method, seed): self.out / f"{method}-seed{seed}" for method in methods for seed in range(self.seeds)}
        for seed in range(self.seeds):
            for method in methods:
                place = places[method, seed]
                config = TrainConfig(data="mnist1d", method=method, epochs=self.epochs, seed=seed, out=place)
                try:
                    train(config)
                except Stopped as stopped:
                    print(f"classgap: {stopped}")
                    return
        audits = {key: Audit.load(place / "audit.json") for key, place in places.items()}
        plain, margin = ([audits[method, seed] for seed in range(self.seeds)] for method in methods)
        diff = AuditDiff.of(plain, margin)
        print_diff(diff)
        write_html(diff, self.out / "report.html")
        print(f"{_verdict(diff)}\nWrote {printable(str(self.out / 'report.html'))}.")


def _verdict(diff: object) -> str:
    return str(diff)
