"""One batch of tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """This process's part of a global batch.

    Attributes:
        inputs: Augmented and normalized inputs, float32, (B, …).
        targets: Training targets: classes, int64, (B,), or after mixing soft targets, float32, (B, K).
        labels: Class of each sample, int64, (B,).
        rows: Row of each sample in the split, (B,).
        total: Samples in the global batch.
        other_view: A second augmented view of the same samples, (B, …), if ``views=2``.

    >>> import torch
    >>> targets = torch.tensor([0, 1])
    >>> batch = Batch(inputs=torch.zeros(2, 3), targets=targets, labels=targets, rows=torch.tensor([4, 7]), total=2)
    >>> len(batch), batch.inputs.shape
    (2, torch.Size([2, 3]))
    """

    inputs: Tensor
    targets: Tensor
    labels: Tensor
    rows: Tensor
    total: int
    other_view: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def map(self, function: Callable[[Tensor], Tensor]) -> Batch:
        """Apply a function to every tensor."""
        return Batch(
            function(self.inputs),
            function(self.targets),
            function(self.labels),
            function(self.rows),
            self.total,
            None if self.other_view is None else function(self.other_view),
        )
