"""The conformance suite that every loss here passes, for losses of your own too."""

from classgap.testing.conformance import CHECKS, check_loss
from classgap.testing.loss_case import Inputs, LossCase
from classgap.testing.processes import Processes

__all__ = ["CHECKS", "Inputs", "LossCase", "Processes", "check_loss"]
