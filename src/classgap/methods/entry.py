"""What the catalogue says about a method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from classgap.losses.base import ClassLoss
from classgap.methods.method import Method
from classgap.registry import Entry

PAPER, CODE, OURS = "paper", "published code", "ours"

ROLES = {
    "loss": "what is minimised",
    "procedure": "a training procedure with losses of its own",
    "step": "how a step is made",
    "post-hoc": "what happens to the classifier after training",
}


@dataclass(frozen=True)
class MethodEntry(Entry[Method | ClassLoss]):
    """A method: made by a function, or by the class of its loss if it is a loss and nothing else.

    Attributes:
        paper: authors, where and when, arXiv number; empty for controls without one.
        needs: what it uses beyond logits and targets.
        origins: where an option's default comes from: "paper", "published code" or "ours", and details.
        role: of ``ROLES``. Steps and post-hoc methods are made around another one, which ``make`` takes as ``inner``.
        explained_by: whose docstring explains it, if not that of ``make``.
        differences: how published code and paper differ, where the docstring does not say it.
        refuses: names or roles that it does not go together with, with the reason.
        joins: another loss that it can be a part of, with the parameter of that loss which it then stands for.

    >>> entry = MethodEntry("erm", "Plain training.", make=Method, origins={"smoothing": PAPER})
    >>> entry.role, ROLES[entry.role]
    ('loss', 'what is minimised')
    """

    hidden: tuple[str, ...] = ("reduction", "ignore_index", "validate_args", "class_counts", "weight")
    paper: str = ""
    required_inputs: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    role: str = "loss"
    explained_by: Any = None
    differences: str = ""
    refuses: Mapping[str, str] = field(default_factory=dict)
    joins: Mapping[str, str] = field(default_factory=dict)
