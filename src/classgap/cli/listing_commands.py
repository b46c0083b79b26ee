"""``classgap datasets``, ``classgap models``: what there is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from classgap.registry import Entry, Option

GENERAL = (
    "fraction=0.1       keep a tenth of each class",
    "imbalance=100      long tail with this imbalance factor (Cao et al., 2019)",
    "label-noise=0.1    replace a tenth of the labels",
    "data-seed=1        seed of these draws, independent of the training seed",
)


@dataclass(frozen=True)
class DatasetsCommand:
    """List the data sets that --data names.

    Example:
      classgap datasets
    """

    def run(self) -> None:
        """Print them."""
        from classgap.data import DATASETS

        _print("data set", DATASETS.entries.values())
        print("\nEvery data set also takes options for its training split:")
        for text in GENERAL:
            print(f"  {text}")


@dataclass(frozen=True)
class ModelsCommand:
    """List the networks that --model names.

    Example:
      classgap models
    """

    def run(self) -> None:
        """Print them."""
        from classgap.models import MODELS

        _print("network", MODELS.entries.values())
        print("Options go behind the name: mlp:width=256, timm:resnet18:pretrained=yes.")


def _print(kind: str, entries: Iterable[Entry[Any]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for column in (kind, "what it is", "options"):
        table.add_column(column)
    for entry in entries:
        extra = f" Needs classgap[{entry.extra}]." if entry.extra else ""
        options = ", ".join(map(_shown, entry.options().values()))
        table.add_row(*map(Text, (entry.usage, entry.summary + extra, options)))  # plain: [vision] is no markup
    Console().print(table, highlight=False)


def _shown(option: Option) -> str:
    words = {True: "yes", False: "no"}
    default = words[option.default] if isinstance(option.default, bool) else option.default
    default = "none" if default is None else default
    return f"{option.name.replace('_', '-')}={default}"
