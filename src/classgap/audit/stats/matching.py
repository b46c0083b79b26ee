"""Match the classes and samples of audits: by class name, and by sample id or position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classgap.audit._types import Integers
from classgap.audit.audit import Audit


@dataclass(frozen=True)
class ClassMatch:
    """Classes of two sides, matched by name.

    Attributes:
        names: classes of both sides, in the order of the first side and with the names of the second.
        added: classes that only the second side has, or has test samples of.
        removed: classes that only the first side has, or has test samples of.
        renamed: old name → new name.
    """

    names: tuple[str, ...]
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MatchedSamples:
    """Samples that all audits have, of classes that both sides have.

    Attributes:
        classes: matched classes.
        targets_N: position of each sample's class in ``classes.names``.
        before_predictions_SN: position of the class that each run before predicts; -1 if only one side has it.
        after_predictions_SN: the same for each run after.
        only_before: number of samples of the first side that were left out.
        only_after: number of samples of the second side that were left out.
    """

    classes: ClassMatch
    targets_N: Integers
    before_predictions_SN: Integers
    after_predictions_SN: Integers
    only_before: int
    only_after: int

    @property
    def before_SN(self) -> NDArray[np.bool_]:
        """Whether each run before is right."""
        return self.before_predictions_SN == self.targets_N

    @property
    def after_SN(self) -> NDArray[np.bool_]:
        """Whether each run after is right."""
        return self.after_predictions_SN == self.targets_N


def match_classes(before: Audit, after: Audit, rename: Mapping[str, str] | None = None) -> ClassMatch:
    """Match classes by name; ``rename`` maps names of the first side to names of the second.

    Raises:
        ValueError: if no class is on both sides, or ``rename`` names an unknown class or makes two classes one.
    """
    rename = dict(rename or {})
    old, new = before.class_names, after.class_names
    for source, target in rename.items():
        if source not in old:
            raise ValueError(f"rename: {source!r} is not a class of {before.name!r}: write OLD=NEW.")
        if target not in new:
            raise ValueError(f"rename: {target!r} is not a class of {after.name!r}: write OLD=NEW.")
    renamed = [rename.get(name, name) for name in old]
    if len(set(renamed)) < len(renamed):
        twice = next(name for name in renamed if renamed.count(name) > 1)
        raise ValueError(f"rename: {before.name!r} would have two classes named {twice!r}.")
    present = set(new)
    names = tuple(name for name in renamed if name in present)
    if not names:
        raise ValueError(
            f"{before.name!r} and {after.name!r} cannot be compared: they have no class names in common, "
            f"{old[0]!r} is in only one of them; rename classes with rename (--rename OLD=NEW)."
        )
    known, seen_before, seen_after = set(renamed), {rename.get(name, name) for name in _seen(before)}, _seen(after)
    return ClassMatch(
        names=names,
        added=tuple(name for name in new if name not in known or name in seen_after - seen_before),
        removed=tuple(
            name
            for name, own in zip(old, renamed, strict=True)
            if own not in present or own in seen_before - seen_after
        ),
        renamed=rename,
    )


def class_positions(audit: Audit, classes: ClassMatch, *, first_side: bool, predicted: bool = False) -> Integers:
    """Return the position of each sample's class in ``classes.names``; -1 if only one side has the class.

    Args:
        audit: audit of one side.
        classes: matched classes.
        first_side: whether the audit is of the first side.
        predicted: return the positions of predicted classes instead of true ones.
    """
    rename = classes.renamed if first_side else {}
    position = {name: i for i, name in enumerate(classes.names)}
    position_K = np.array([position.get(rename.get(name, name), -1) for name in audit.class_names])
    return position_K[audit.samples.predictions if predicted else audit.samples.targets]


def match_samples(
    befores: Sequence[Audit], afters: Sequence[Audit], rename: Mapping[str, str] | None = None, *, hint: str = ""
) -> MatchedSamples:
    """Match samples by ``index`` if all audits have it, otherwise by position.

    Args:
        befores: runs of the first side.
        afters: runs of the second side.
        rename: class names of the first side → names of the second.
        hint: advice that ends the message if samples do not match.

    Raises:
        ValueError: if samples cannot be matched, or have different labels.
    """
    first = befores[0]
    classes = match_classes(first, afters[0], rename)
    sides = [(audit, True) for audit in befores] + [(audit, False) for audit in afters]
    for audit, is_first in sides:
        reference = first if is_first else afters[0]
        if set(audit.class_names) != set(reference.class_names) and _seen(audit) != _seen(reference):
            raise ValueError(f"{_between(reference, audit)}: the class names of their test samples differ.")
    rows = _common_rows([audit for audit, _ in sides], hint)
    targets_AN = np.stack(
        [
            class_positions(audit, classes, first_side=is_first)[own]
            for (audit, is_first), own in zip(sides, rows, strict=True)
        ]
    )
    kept = (targets_AN >= 0).all(axis=0)
    corrected = f"; if labels were corrected, {hint.removeprefix('; ')}" if hint else ""
    for (audit, _), own, targets_N in zip(sides, rows, targets_AN, strict=True):
        differ = np.flatnonzero(kept & (targets_N != targets_AN[0]))
        if len(differ):
            at = int(differ[0])
            labels = (classes.names[targets_AN[0][at]], classes.names[targets_N[at]])
            conflict = _conflict([(first, int(rows[0][at])), (audit, int(own[at]))], labels, len(differ))
            raise ValueError(f"{_between(first, audit)}: {conflict}{corrected}.")
    if not kept.any():
        raise ValueError(f"{_between(first, afters[0])}: no common sample belongs to a common class{hint}.")
    predictions = [
        class_positions(audit, classes, first_side=is_first, predicted=True)[own][kept]
        for (audit, is_first), own in zip(sides, rows, strict=True)
    ]
    n_matched = int(kept.sum())
    return MatchedSamples(
        classes=classes,
        targets_N=targets_AN[0][kept],
        before_predictions_SN=np.stack(predictions[: len(befores)]),
        after_predictions_SN=np.stack(predictions[len(befores) :]),
        only_before=len(first.samples.targets) - n_matched,
        only_after=len(afters[0].samples.targets) - n_matched,
    )


def _conflict(places: Sequence[tuple[Audit, int]], labels: tuple[str, str], count: int) -> str:
    """Describe samples with different labels by the first, a row in two audits."""
    name = next((name for audit, row in places if (name := audit.samples.id_of(row))), None)
    place = f"with id {name}" if name else f"at position {places[0][1]}"
    if count == 1:
        found = f"the sample {place} has different labels"
    else:
        found = f"{count:,} samples have different labels, the first {place}"
    unmatched = all(audit.samples.index is None for audit, _ in places)
    advice = "audit the same samples in the same order, or give sample ids (index, --key)"
    return f"{found} ({labels[0]!r} and {labels[1]!r}): {advice if unmatched else 'give both the same labels'}"


def _common_rows(audits: Sequence[Audit], hint: str) -> list[NDArray[Any]]:
    """Rows of each audit, in the same order of samples."""
    first = audits[0]
    ids = [audit.samples.index for audit in audits]
    known = [index for index in ids if index is not None]
    if len(known) == len(ids):
        common = known[0]
        for index in known[1:]:
            common = np.intersect1d(common, index, assume_unique=True)
        if not len(common):
            raise ValueError(f"{_between(first, audits[-1])}: their index values have no sample in common{hint}.")
        return [np.searchsorted(index, common) for index in known]  # samples are sorted by index
    for other in audits[1:]:
        sizes = len(first.samples.targets), len(other.samples.targets)
        if sizes[0] != sizes[1]:
            raise ValueError(
                f"{_between(first, other)}: their test sets have {sizes[0]} and {sizes[1]} samples but no sample ids "
                f"to match them by: save index, or name a column of ids with --key{hint}."
            )
    for audit in audits:
        own = audit.samples.index
        if own is not None and len(own) and own[-1] - own[0] + 1 != len(own):  # no positions, but other ids
            raise ValueError(
                f"{_between(first, audits[-1])}: {audit.name!r} has sample ids and others have none, so samples "
                f"cannot be matched: save index in all of them{hint}."
            )
    return [np.arange(len(first.samples.targets))] * len(audits)


def _seen(audit: Audit) -> set[str]:
    return {entry.name for entry in audit.classes if entry.support}


def _between(first: Audit, other: Audit) -> str:
    return f"{first.name!r} and {other.name!r} cannot be compared"
