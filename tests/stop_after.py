"""Interrupt a training after some steps."""

from classgap.engine.signals import StopRequest


class StopAfter(StopRequest):
    """Ask to stop after some steps."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps

    def poll(self) -> None:
        self.steps -= 1
        if self.steps == 0:
            self.name = "the test"
