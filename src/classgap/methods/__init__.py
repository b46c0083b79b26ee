"""Training methods by name: ``build("mr2", num_classes=10)``, ``names()``."""

from classgap.methods.catalog import METHODS, build, names
from classgap.methods.entry import MethodEntry
from classgap.methods.method import Method, Stage

__all__ = ["METHODS", "Method", "MethodEntry", "Stage", "build", "names"]
