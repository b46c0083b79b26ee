"""Text files in one folder per class, encoded by a sentence encoder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from classgap._regular_files import check_regular_file
from classgap.data.dataset import Dataset
from classgap.data.sources.folder import find_files, list_class_folders
from classgap.data.sources.table import make_table_dataset
from classgap.data.transforms.text import DEFAULT_ENCODER, TextColumn

TEXT, TARGET = "text", "target"  # columns that the files become
MAX_BYTES = 10_000_000  # of a file; an encoder reads the first page of it


def load_text_folder(
    path: str, *, encoder: str = DEFAULT_ENCODER, test_fraction: float | None = None, data_seed: int = 0
) -> Dataset:
    """Load ``PATH/train/CLASS/*.txt`` and ``PATH/test/CLASS/*.txt``, or draw a test split from ``PATH/CLASS/*.txt``.

    A folder ``PATH/val`` is used as in ``folder``. Each file is one sample. Encoders read a limited number of tokens
    and ignore the rest of a text.

    Args:
        path: Folder.
        encoder: Sentence encoder, as in ``csv``.
        test_fraction: Fraction of each class to hold out as the test split if there is none, 0.2 by default.
        data_seed: Random seed of the held-out test split, which otherwise depends only on file names.
    """
    name = f"text:{path}"
    lists, class_names, notes = list_class_folders(name, path, find_texts, "text files", test_fraction, data_seed)
    parts = [
        (name, {TEXT: [read_text(file) for file in files.paths], TARGET: [class_names[k] for k in files.targets]})
        for files in lists
    ]
    column = TextColumn.from_encoder(TEXT, encoder)
    return replace(make_table_dataset(name, parts, target=TARGET, class_names=class_names, texts=[column]), notes=notes)


def find_texts(directory: Path) -> list[str]:
    """List the text files in a directory and its subdirectories, sorted."""
    return find_files(directory, is_text_name)


def is_text_name(name: str) -> bool:
    """Whether a file name ends in ``.txt`` and is not hidden.

    >>> is_text_name("mail.TXT"), is_text_name("._mail.txt"), is_text_name("mail.md")
    (True, False, False)
    """
    return not name.startswith(".") and name.lower().endswith(".txt")


def read_text(path: str) -> str:
    """Read a text file.

    Raises:
        ValueError: If it cannot be read as UTF-8, or is too large.
    """
    check_regular_file(path)
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
        return data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read the text {path} ({error}).") from None
