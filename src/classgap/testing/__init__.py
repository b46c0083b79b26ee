"""Conformance suite for losses, including your own."""

from classgap.testing.conformance import CHECKS, check_loss
from classgap.testing.loss_case import Inputs, LossCase
from classgap.testing.processes import Processes

__all__ = ["CHECKS", "Inputs", "LossCase", "Processes", "check_loss"]
