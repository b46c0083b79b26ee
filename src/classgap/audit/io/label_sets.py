"""Sets of valid labels: one set of classes per sample, given as lists, as ragged arrays or in a JSON file.

In memory and in prediction files, sets are in the order of the samples. A JSON file is matched by sample id where the
predictions have one (``index``):

- an object ``{"id": [labels], …}`` has the ids as keys;
- a list has one entry per sample of the full test set, and ids number its entries from 0 or from 1. An id of 0 means
  from 0, and an id equal to the number of entries means from 1. If both fit, the numbering is the one under which more
  samples have a valid label of their own.

Without ids, a list must have one entry per sample, in their order.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from classgap.audit._types import Integers
from classgap.audit.io.labels import are_integers, encode
from classgap.audit.io.sample_ids import HASHED, encode_ids
from classgap.audit.results import Notice
from classgap.audit.serialization import read_json

MOSTLY = 0.5  # fraction of valid own labels below which the sets probably belong to other samples


@dataclass(frozen=True, eq=False)
class LabelSets:
    """A set of classes per sample; ``classes[offsets[i]:offsets[i + 1]]`` is the set of sample i.

    >>> sets = LabelSets(np.array([0, 2, 1]), np.array([0, 2, 2, 3]))
    >>> sets.sizes_N.tolist(), sets.contain(np.array([2, 0, 0])).tolist()
    ([2, 0, 1], [True, False, False])
    """

    classes: Integers
    offsets: Integers

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes_N(self) -> Integers:
        """Number of valid classes of each sample."""
        return np.diff(self.offsets)

    @property
    def known_N(self) -> NDArray[np.bool_]:
        """Which samples have at least one valid class."""
        return self.sizes_N > 0

    def contain(self, labels_N: Integers) -> NDArray[np.bool_]:
        """Whether each sample's set contains its label; false for empty sets."""
        rows = np.repeat(np.arange(len(self)), self.sizes_N)
        found_N = np.zeros(len(self), dtype=np.bool_)
        found_N[rows[self.classes == labels_N[rows]]] = True
        return found_N

    def take(self, rows: Integers) -> LabelSets:
        """Return the sets of some samples, in the order of ``rows``."""
        sizes = self.sizes_N[rows]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], sizes)
        return LabelSets(self.classes[places], offsets)


@dataclass(frozen=True)
class RaggedLabels:
    """Sets of a prediction file: all labels in one array, and N + 1 offsets into it."""

    labels: Any
    offsets: Any


@dataclass(frozen=True)
class ListedLabels:
    """Sets of a JSON list, which sample ids number from 0 or from 1."""

    entries: Sequence[Any]


def sets_from(values: Any) -> Any:
    """Read the sets if ``values`` is a path; otherwise match a list as that of a file."""
    if isinstance(values, str | os.PathLike):
        return read_label_sets(values)
    return values if isinstance(values, Mapping | ListedLabels | RaggedLabels) else ListedLabels(values)


def read_label_sets(path: str | os.PathLike[str]) -> ListedLabels | dict[Any, Any]:
    """Read the sets of a JSON file: a list of lists of labels, or an object from sample id to a list of labels.

    Raises:
        ValueError: if the file is neither.
    """
    content = read_json(path)
    if isinstance(content, dict):
        return content
    if isinstance(content, list):
        return ListedLabels(content)
    raise ValueError(f'{path} must hold a list of lists of labels, or {{"id": [labels], ...}}.')


def check_label_sets(
    values: Any, names: Sequence[str], targets_N: Integers, index_N: Integers | None, *, by_name: bool
) -> tuple[LabelSets, tuple[Notice, ...]]:
    """Return the set of each sample, and notices about the match.

    Args:
        values: lists of labels in the order of the samples, a mapping from sample id to labels, or one of the classes
            above.
        names: class names.
        targets_N: class of each sample.
        index_N: id of each sample.
        by_name: whether integers are class names, not class indices, because targets are given by name.

    Raises:
        ValueError: if the sets do not match the samples, contain unknown classes, or are all empty.
    """
    by_name = by_name and are_integers(names)
    notices: list[Notice] = []
    if isinstance(values, Mapping):
        sets = _match_ids(values, names, index_N, by_name)
    elif isinstance(values, ListedLabels) and index_N is not None and int(index_N.max()) < HASHED:
        sets, start = _match_numbers(_encode_lists(values.entries, names, by_name), targets_N, index_N)
        if start:
            notices.append(Notice("valid-labels-from-one", {"entries": len(values.entries)}))
    else:
        entries = values.entries if isinstance(values, ListedLabels) else values
        if isinstance(entries, RaggedLabels):
            sets = _encode_ragged(entries, names)
        else:
            sets = _encode_lists(entries, names, by_name)
        if len(sets) != len(targets_N):
            matched = " Sample ids (index) would match them." if isinstance(values, ListedLabels) else ""
            raise ValueError(
                f"valid_labels must have one set per sample, got {len(sets)} for {len(targets_N)} samples.{matched}"
            )
    known_N = sets.known_N
    if not known_N.any():
        raise ValueError("valid_labels must not be empty for every sample: no prediction could be judged.")
    fraction = float(sets.contain(targets_N)[known_N].mean())
    if fraction < MOSTLY:
        notices.append(Notice("labels-mostly-invalid", {"fraction": fraction}))
    return sets, tuple(notices)


def _match_ids(values: Mapping[Any, Any], names: Sequence[str], index_N: Integers | None, by_name: bool) -> LabelSets:
    if index_N is None:
        raise ValueError(
            "valid_labels is a mapping from sample ids, but the samples have none: pass index, or a list with one set "
            "per sample."
        )
    place: dict[int, int] = {}
    for i, key in enumerate(values):
        try:
            place[int(str(key))] = i
        except ValueError:
            if int(index_N.max()) >= HASHED:  # ids are strings
                continue
            raise ValueError(f"valid_labels must have sample ids (integers) as keys, got {key!r}.") from None
    if int(index_N.max()) >= HASHED:
        place |= {code: i for i, code in enumerate(encode_ids([str(key) for key in values]).tolist())}
    missing = [number for number in index_N.tolist() if number not in place]
    if missing:
        raise ValueError(
            f"valid_labels has no entry for {len(missing)} of {len(index_N)} samples, the first with index "
            f"{missing[0]}: add [] for samples without a valid label."
        )
    sets = _encode_lists(list(values.values()), names, by_name, keys=list(values))
    return sets.take(np.array([place[number] for number in index_N.tolist()], dtype=np.int64))


def _match_numbers(sets: LabelSets, targets_N: Integers, index_N: Integers) -> tuple[LabelSets, int]:
    """Return the set of each sample, and whether its id numbers the entries from 0 or from 1."""
    low, high = int(index_N.min()), int(index_N.max())
    fitting = [start for start in (0, 1) if low >= start and high - start < len(sets)]
    if not fitting:
        raise ValueError(
            f"valid_labels has {len(sets)} entries, but index goes up to {high}: pass the labels of the full test set, "
            'or {"id": [labels], ...}.'
        )
    candidates = [(sets.take(index_N - start), start) for start in fitting]
    return max(candidates, key=lambda found: (int(found[0].contain(targets_N).sum()), -found[1]))


def _encode_lists(entries: Any, names: Sequence[str], by_name: bool, keys: Sequence[Any] | None = None) -> LabelSets:
    if isinstance(entries, str | Mapping) or not hasattr(entries, "__len__"):
        raise ValueError(f"valid_labels must be a list of lists of classes, got {reprlib.repr(entries)}.")
    flat: list[Any] = []
    sizes = np.zeros(len(entries), dtype=np.int64)
    for i, entry in enumerate(entries):
        labels = entry.tolist() if isinstance(entry, np.ndarray | Tensor) else entry
        if not isinstance(labels, (list, tuple, set, frozenset)):
            where = f"valid_labels[{i if keys is None else keys[i]!r}]"
            raise ValueError(f"{where} must be a list of classes, got {reprlib.repr(labels)}: put it in brackets.")
        for label in labels:
            if isinstance(label, bool) or not isinstance(label, (str, int, np.integer)):
                where = f"valid_labels[{i if keys is None else keys[i]!r}]"
                raise ValueError(f"{where} must hold class names or class indices, got {reprlib.repr(label)}.")
        flat.extend(labels)
        sizes[i] = len(labels)
    if by_name or any(isinstance(label, str) for label in flat):
        flat = [str(label) for label in flat]
    return LabelSets(encode("valid_labels", flat, names), np.concatenate([[0], np.cumsum(sizes)]))


def _encode_ragged(values: RaggedLabels, names: Sequence[str]) -> LabelSets:
    labels = values.labels.numpy() if isinstance(values.labels, Tensor) else np.asarray(values.labels)
    offsets = values.offsets.numpy() if isinstance(values.offsets, Tensor) else np.asarray(values.offsets)
    if labels.ndim != 1:
        raise ValueError(
            f"valid_labels must hold the labels of all samples in one dimension, got shape {labels.shape}."
        )
    if offsets.ndim != 1 or offsets.dtype.kind not in "iu" or not len(offsets):
        raise ValueError(
            f"valid_labels_offsets must be integers of shape (n_samples + 1,), got shape {offsets.shape} of "
            f"{offsets.dtype}."
        )
    offsets = offsets.astype(np.int64)
    if offsets[0] != 0 or offsets[-1] != len(labels) or (np.diff(offsets) < 0).any():
        raise ValueError(
            f"valid_labels_offsets must rise from 0 to {len(labels)}, the number of valid_labels, got "
            f"{offsets[0]} to {offsets[-1]}."
        )
    return LabelSets(encode("valid_labels", labels, names), offsets)
