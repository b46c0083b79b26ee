"""What the catalogue says about a method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from classgap.losses.base import ClassLoss
from classgap.methods.method import Method
from classgap.registry import Entry


@dataclass(frozen=True)
class MethodEntry(Entry[Method | ClassLoss]):
    """A method: made by a function, or by the class of its loss if it is a loss and nothing else.

    Attributes:
        paper: authors, where and when, arXiv number.
        needs: what it uses beyond logits and targets.
        origins: where an option's default comes from: "paper", "published code" or "ours".
    """

    hidden: tuple[str, ...] = ("reduction", "ignore_index", "class_counts", "class_weights")
    paper: str = ""
    needs: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
