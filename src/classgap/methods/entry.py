"""Catalog entries of methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from classgap.losses.base import ClassLoss
from classgap.methods.method import Method
from classgap.registry import Entry

PAPER, CODE, OURS = "paper", "published code", "ours"

ROLES = {
    "loss": "the training objective",
    "procedure": "a training procedure with its own losses",
    "step": "how an optimizer step is computed",
    "post-hoc": "a change to the classifier after training",
}


@dataclass(frozen=True)
class MethodEntry(Entry[Method | ClassLoss]):
    """A method in the catalog.

    ``make`` returns a ``Method``, or a ``ClassLoss`` for methods that only replace the loss. Methods with the role
    "step" or "post-hoc" wrap another method, which ``make`` takes as ``inner``.

    Attributes:
        paper: Authors, venue, year and arXiv number; empty for controls without a paper.
        required_inputs: Inputs other than logits and targets, as short phrases.
        origins: Source of each option's default: "paper", "published code" or "ours", with details.
        role: A key of ``ROLES``.
        documented_by: Class or function whose docstring documents the method; ``make`` by default.
        differences: How published code and paper differ, unless the docstring explains it.
        incompatible: Names or roles that the method does not compose with, and the reason for each.
        merges_into: Losses that can include this one, and the parameter of the loss that enables it.

    >>> entry = MethodEntry("erm", "Cross-entropy.", make=Method, origins={"smoothing": PAPER})
    >>> entry.role, ROLES[entry.role]
    ('loss', 'the training objective')
    """

    hidden: tuple[str, ...] = ("reduction", "ignore_index", "validate_args", "class_counts", "weight")
    paper: str = ""
    required_inputs: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    role: str = "loss"
    documented_by: Any = None
    differences: str = ""
    incompatible: Mapping[str, str] = field(default_factory=dict)
    merges_into: Mapping[str, str] = field(default_factory=dict)
