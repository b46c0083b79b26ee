"""What may be changed about the training split of any data set."""

from __future__ import annotations

from dataclasses import dataclass, replace

from classgap.data.corruption import check_noise, check_ratio, label_noise, long_tail
from classgap.data.dataset import Dataset
from classgap.data.splits import check_fraction, fraction


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Options that every source takes; they are applied in this order, and leave the test split alone.

    Attributes:
        fraction: share of each class that is kept.
        lt: the first class's size over the last one's, in an exponential long tail (Cao et al. 2019).
        noise: share of labels that become wrong.
        data_seed: of all three draws.
    """

    fraction: float = 1.0
    lt: float = 1.0
    noise: float = 0.0
    data_seed: int = 0

    def __post_init__(self) -> None:
        check_fraction(self.fraction)
        check_ratio(self.lt)
        check_noise(self.noise)

    def applied(self, data: Dataset) -> Dataset:
        """The data set with its training split changed, and a remark for each change."""
        train, remarks, classes = data.train, list(data.remarks), data.num_classes
        if self.fraction != 1:
            train = fraction(train, self.fraction, self.data_seed, classes)
            remarks.append(f"fraction={self.fraction:g}: {len(train)} of {len(data.train)} training samples.")
        if self.lt != 1:
            train = long_tail(train, self.lt, self.data_seed, classes)
            counts = train.counts(classes)
            remarks.append(f"lt={self.lt:g}: classes have {int(counts.max())} to {int(counts.min())} training samples.")
        if self.noise != 0:
            clean = train.targets
            train = label_noise(train, self.noise, self.data_seed, classes)
            wrong = int((train.targets != clean).sum())
            remarks.append(f"noise={self.noise:g}: {wrong} of {len(train)} training labels are wrong.")
        return replace(data, train=train, remarks=tuple(remarks))
