"""``classgap export``."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from classgap._atomic_write import atomic_write
from classgap.cli.outputs import busy, check_outputs, print_written
from classgap.cli.parser import Arg, Command
from classgap.registry import Spec

if TYPE_CHECKING:
    from classgap.inference import LoadedRun


@dataclass(frozen=True)
class ExportCommand(Command):
    """Export a trained model to ONNX, or its results to a model card.

    The ONNX model maps preprocessed inputs to logits. Its metadata contains the
    class names and the preprocessing (size, crop, mean, std) as JSON. Its
    outputs are compared with torch before it is written. Requires
    pip install 'classgap[onnx]'.

    Examples:
      classgap export runs/birds --onnx birds.onnx
      classgap export runs/birds --hub-card README.md
    """

    ARGS: ClassVar[Mapping[str, Arg]] = {"run_dir": Arg("RUN", positional=True)}

    run_dir: Path
    """Directory of a finished run of classgap train."""

    onnx: Path | None = None
    """Write the model to this .onnx file."""

    hub_card: Path | None = None
    """Write the accuracy of each class, and how it was measured, as a section of this Hugging Face model card;
    keeps the rest of an existing file."""

    def run(self) -> None:
        """Export, then write all files or none."""
        from classgap.inference import load_run

        outputs = {"--onnx": self.onnx, "--hub-card": self.hub_card}
        if self.onnx is None and self.hub_card is None:
            raise ValueError("export needs --onnx FILE, --hub-card FILE, or both.")
        if self.onnx is not None and self.onnx.suffix.lower() != ".onnx":
            raise ValueError(f"--onnx must end in .onnx, got {self.onnx}.")
        check_outputs(outputs, [self.run_dir])
        model = load_run(self.run_dir, device="cpu")
        contents: dict[Path, bytes] = {}
        with busy(f"Exporting {self.run_dir}"):
            if self.onnx is not None:
                from classgap.inference.export import export_onnx

                contents[self.onnx] = export_onnx(model)
            if self.hub_card is not None:
                contents[self.hub_card] = self._card(model, self.hub_card).encode("utf-8")
        with ExitStack() as files:  # a file that cannot be written leaves the others as they are
            for path, content in contents.items():
                files.enter_context(atomic_write(path)).write(content)
        print_written(outputs)

    def _card(self, model: LoadedRun, path: Path) -> str:
        from classgap.audit.io.sources import read_audit
        from classgap.report.model_card import card_section, insert_section

        try:
            card = path.read_text(encoding="utf-8") if path.is_file() else ""
        except UnicodeDecodeError:
            raise ValueError(f"--hub-card {path} is not UTF-8 text.") from None
        data, network = (_without_folders(each) for each in (model.config.data, model.config.model or ""))
        section = card_section(read_audit(self.run_dir), data=data, model=network, method=model.config.method)
        return insert_section(card, section)


def _without_folders(text: str) -> str:
    """Shorten the path in a name: a card is public, and the folders of a machine are nobody's business.

    >>> _without_folders("folder:/home/me/photos:size=32"), _without_folders("digits")
    ('folder:photos:size=32', 'digits')
    """
    spec = Spec.parse(text)
    path = [] if spec.argument is None else [Path(spec.argument).name or spec.argument]
    return ":".join([Path(spec.name).name, *path, *(f"{key}={value}" for key, value in spec.options.items())])
