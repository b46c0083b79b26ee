"""Test samples whose labels are in doubt, by label and prediction."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from classgap.audit._types import SampleId
from classgap.audit.audit import Audit
from classgap.report.sample_numbers import predicted_classes


@dataclass(frozen=True)
class LabelCheck:
    """Samples of one class that look like ordinary samples of another.

    Attributes:
        label: index of the class they are labeled as.
        predicted: index of the class they are predicted as.
        samples: their ids, most confidently predicted first.
    """

    label: int
    predicted: int
    samples: tuple[SampleId, ...]


def label_checks(audit: Audit) -> list[LabelCheck]:
    """Return the samples whose labels are worth a second look, largest group first.

    Raises:
        ValueError: if the audit has no scores, without which no label can be in doubt.
    """
    if audit.overall.margin is None:
        raise ValueError("checking labels needs scores: pass logits or probabilities instead of predictions.")
    if not audit.settings.diagnose:
        raise ValueError("checking labels needs an audit with diagnose=True: audit the predictions again.")
    found: defaultdict[tuple[int, int], list[SampleId]] = defaultdict(list)
    predicted = predicted_classes(audit, [number for entry in audit.classes for number in entry.doubted_samples])
    for entry in audit.classes:
        for number in entry.doubted_samples:
            found[entry.index, predicted[number]].append(number)
    checks = [LabelCheck(*pair, tuple(numbers)) for pair, numbers in found.items()]
    return sorted(checks, key=lambda check: (-len(check.samples), check.label, check.predicted))
