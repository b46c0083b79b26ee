"""``classgap datasets`` and ``classgap models``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from classgap.cli.listing import print_entries, print_extras, print_option, print_paragraph
from classgap.cli.parser import Arg, Command
from classgap.registry import Registry, argument_docs

TRAINING_SPLIT = """\
Options of every dataset, applied to the training split:
  fraction=0.1     stratified subset
  imbalance=100    long tail with this imbalance factor (Cao et al.)
  label-noise=0.1  fraction of wrong labels
  label-noise-type=asymmetric  wrong labels are the next class, not a random one
  data-seed=1      seed for these options; independent of --seed
"""


@dataclass(frozen=True)
class DatasetsCommand(Command):
    """List the datasets for --data, or describe one.

    Examples:
      classgap datasets
      classgap datasets folder
    """

    ARGS: ClassVar[Mapping[str, Arg]] = {"name": Arg("NAME", positional=True, default="list all")}

    name: str | None = None
    """Dataset to describe."""

    def run(self) -> None:
        """Print the list or the description."""
        from classgap.data import DATASETS

        if self.name is not None:
            _print_entry(DATASETS, self.name, f"\n{TRAINING_SPLIT}", flag="--data")
            return
        print_entries(DATASETS.entries.values())
        print(f"\n{TRAINING_SPLIT}\nOptions follow the name: cifar100:imbalance=100, folder:photos:size=64.")
        print("Run `classgap datasets NAME` for details.")
        print_extras(DATASETS.entries.values())


@dataclass(frozen=True)
class ModelsCommand(Command):
    """List the models for --model, or describe one.

    Examples:
      classgap models
      classgap models resnet32
    """

    ARGS: ClassVar[Mapping[str, Arg]] = {"name": Arg("NAME", positional=True, default="list all")}

    name: str | None = None
    """Model to describe."""

    def run(self) -> None:
        """Print the list or the description."""
        from classgap.models import MODELS

        if self.name is not None:
            _print_entry(MODELS, self.name, "", flag="--data DATA --model")
            return
        print_entries(MODELS.entries.values())
        print("\nOptions follow the name: mlp:width=256, timm:resnet18:pretrained=yes.")
        print("Run `classgap models NAME` for details.")
        print_extras(MODELS.entries.values())


def _print_entry(registry: Registry[Any], name: str, more: str, *, flag: str) -> None:
    entry = registry.entry(name.partition(":")[0])
    options, docs = entry.options().values(), argument_docs(entry.make)
    print(f"usage: classgap train {flag} {entry.usage}{'[:OPTION=VALUE ...]' if options or more else ''}\n")
    print_paragraph(entry.summary)
    if entry.extra:
        print(f"Requires pip install 'classgap[{entry.extra}]'.")
    print("\nOptions:" if options else "\nNo options of its own.")
    for option in options:
        print_option(option.name, option.kind, option.default, docs.get(option.name, ""))
    print(more, end="")
