"""The error budget: every error assigned once to the change that would remove it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from classgap.audit._types import Integers, SampleId
from classgap.audit.diagnosis.counterfactuals import Counterfactuals, counterfactuals, removed_by
from classgap.audit.diagnosis.label_doubts import doubted_labels
from classgap.audit.io.predictions import Predictions
from classgap.audit.results import BudgetShare, ErrorBudget
from classgap.audit.stats.intervals import wilson_interval

PARTS = ("labels", "decision", "head", "representation")
MAX_SAMPLES = 30  # sample numbers that are listed per class


@dataclass(frozen=True)
class Assignment:
    """Each sample's place in the budget.

    Attributes:
        data: the predictions that were examined, all or a part.
        found: the counterfactuals.
        doubted_N: errors whose label is in doubt.
        part_N: index into ``PARTS`` of each error; -1 for correct samples and errors without an explanation.
        valid_N: errors whose prediction is one of the sample's valid labels; ``None`` if these are not given.
    """

    data: Predictions
    found: Counterfactuals
    doubted_N: NDArray[np.bool_]
    part_N: Integers
    valid_N: NDArray[np.bool_] | None = None

    @classmethod
    def from_predictions(cls, data: Predictions, seed: int) -> Assignment:
        """Try every change, and assign errors in the order of ``PARTS``."""
        found = counterfactuals(data, seed)
        doubted_N = doubted_labels(data, found)
        wrong_N = data.predictions_N != data.targets_N
        valid_N = None
        if data.valid_labels is not None:
            valid_N = wrong_N & data.valid_labels.contain(data.predictions_N)
            # Where people judged the sample, their judgment replaces the doubts of the model.
            doubted_N = valid_N | (doubted_N & ~data.valid_labels.known_N)
        # k-NN was computed only for errors that the head leaves, so -1 does not mean that it fails.
        known_N = np.zeros(len(data), dtype=np.bool_) if found.neighbors_N is None else found.neighbors_N >= 0
        lost_N = wrong_N & known_N & (found.neighbors_N != data.targets_N)
        part_N = np.full(len(data), -1, dtype=np.int64)
        removed = (doubted_N, removed_by(found.decision_N, data), removed_by(found.head_N, data), lost_N)
        for part, removed_N in reversed(list(enumerate(removed))):
            part_N[removed_N] = part
        return cls(data, found, doubted_N, part_N, valid_N)

    @property
    def errors_K(self) -> Integers:
        """Errors of each class."""
        wrong_N = self.data.predictions_N != self.data.targets_N
        return np.bincount(self.data.targets_N[wrong_N], minlength=self.data.num_classes)

    @property
    def doubted_K(self) -> Integers | None:
        """Errors of each class whose label is in doubt."""
        if self.found.decision_N is None and self.valid_N is None:
            return None
        return np.bincount(self.data.targets_N[self.doubted_N], minlength=self.data.num_classes)

    @property
    def valid_K(self) -> Integers | None:
        """Errors of each class whose prediction is valid."""
        if self.valid_N is None:
            return None
        return np.bincount(self.data.targets_N[self.valid_N], minlength=self.data.num_classes)

    @property
    def fixed_K(self) -> dict[str, Integers]:
        """Change → errors of each class that it removes, whatever else removes them."""
        changes = {"decision": self.found.decision_N, "head": self.found.head_N}
        return {
            name: np.bincount(self.data.targets_N[removed_by(changed_N, self.data)], minlength=self.data.num_classes)
            for name, changed_N in changes.items()
            if changed_N is not None
        }

    @property
    def broken_K(self) -> dict[str, Integers]:
        """Change → correct predictions of each class that it breaks."""
        return self._added(self.data.predictions_N != self.data.targets_N)[0]

    @property
    def lost_K(self) -> Integers | None:
        """Errors of each class that nothing on these features removes."""
        if self.found.head_N is None:
            return None
        lost_N = self.part_N == PARTS.index("representation")
        return np.bincount(self.data.targets_N[lost_N], minlength=self.data.num_classes)

    @property
    def available(self) -> dict[str, bool]:
        """Which parts could be examined."""
        scores, features = self.found.decision_N is not None, self.found.head_N is not None
        labels = scores or self.valid_N is not None
        return {"labels": labels, "decision": scores, "head": features, "representation": features}

    def budgets(self, confidence_level: float) -> list[ErrorBudget | None]:
        """Budget of each class; ``None`` without errors, or if only labels are known."""
        data, classes = self.data, self.data.num_classes
        wrong_N, errors_K = data.predictions_N != data.targets_N, self.errors_K
        removed = {
            part: np.bincount(data.targets_N[self.part_N == i], minlength=classes) for i, part in enumerate(PARTS)
        }
        added, elsewhere = self._added(wrong_N)
        return [
            self._budget(
                int(errors_K[k]),
                {part: int(removed[part][k]) for part in PARTS},
                {part: int(added[part][k]) for part in PARTS},
                {part: int(elsewhere[part][k]) for part in PARTS},
                confidence_level,
            )
            for k in range(classes)
        ]

    def overall(self, confidence_level: float) -> ErrorBudget | None:
        """Budget of all classes together."""
        wrong_N = self.data.predictions_N != self.data.targets_N
        added, _ = self._added(wrong_N)
        removed = {part: int((self.part_N == i).sum()) for i, part in enumerate(PARTS)}
        broken = {part: int(added[part].sum()) for part in PARTS}
        return self._budget(int(wrong_N.sum()), removed, broken, dict.fromkeys(PARTS, 0), confidence_level)

    def _added(self, wrong_N: NDArray[np.bool_]) -> tuple[dict[str, Integers], dict[str, Integers]]:
        """Correct predictions that each change breaks, by their own class and by the class they become."""
        data, zeros_K = self.data, np.zeros(self.data.num_classes, dtype=np.int64)
        added, elsewhere = dict.fromkeys(PARTS, zeros_K), dict.fromkeys(PARTS, zeros_K)
        for part, changed_N in (("decision", self.found.decision_N), ("head", self.found.head_N)):
            if changed_N is not None:
                broken_N = ~wrong_N & (changed_N != data.targets_N)
                added[part] = np.bincount(data.targets_N[broken_N], minlength=data.num_classes)
                elsewhere[part] = np.bincount(changed_N[broken_N], minlength=data.num_classes)
        return added, elsewhere

    def _budget(
        self,
        errors: int,
        removed: Mapping[str, int],
        added: Mapping[str, int],
        elsewhere: Mapping[str, int],
        confidence_level: float,
    ) -> ErrorBudget | None:
        available = self.available
        if not errors or not any(available.values()):
            return None
        shares = {
            part: BudgetShare(
                removed=removed[part],
                fraction=removed[part] / errors,
                interval=wilson_interval(removed[part], errors, confidence_level),
                added=added[part],
                added_elsewhere=elsewhere[part],
            )
            if available[part]
            else None
            for part in PARTS
        }
        explained = sum(removed[part] for part in PARTS if available[part])
        lower = self.found.head_N is not None and self.found.head_is_lower_bound
        return ErrorBudget(errors=errors, **shares, unexplained=errors - explained, lower_bound=lower)

    def listed(self, chosen_N: NDArray[np.bool_]) -> list[tuple[SampleId, ...]]:
        """Ids of the chosen samples of each class, most confidently wrong first."""
        data, confidence_N = self.data, self.found.confidence_N
        rows = np.flatnonzero(chosen_N)
        if confidence_N is not None:
            rows = rows[np.argsort(-np.nan_to_num(confidence_N[rows]), kind="stable")]
        numbers_N = np.arange(len(data)) if data.index_N is None else data.index_N
        found: list[list[SampleId]] = [[] for _ in range(data.num_classes)]
        for row in rows.tolist():
            members = found[int(data.targets_N[row])]
            if len(members) < MAX_SAMPLES:
                number = int(numbers_N[row])
                members.append(data.ids.get(number, number))
        return [tuple(members) for members in found]

    def confident_errors(self) -> list[tuple[SampleId, ...]]:
        """Errors with a calibrated confidence of at least one half, most confident first; empty without scores."""
        if self.found.confidence_N is None:
            return [()] * self.data.num_classes
        wrong_N = self.data.predictions_N != self.data.targets_N
        return self.listed(wrong_N & (self.found.confidence_N >= 0.5))
