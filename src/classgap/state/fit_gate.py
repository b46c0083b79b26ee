"""How well the training batches are being classified: what opens MR²'s automatic strength."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from classgap.state.buffers import write


class FitGate(nn.Module):
    """A number from 0 (the model does no better than chance) to 1 (it is certain and right).

    It follows p̄, the running mean of the true class's probability, which starts at chance, 1/K:

        gate = max(0, (p̄ - 1/K) / (1 - 1/K))

    >>> gate = FitGate(num_classes=2, decay=0.5)
    >>> gate.update(torch.tensor(1.0))
    >>> gate.confidence.item(), gate.value().item()
    (0.75, 0.5)
    """

    confidence: Tensor

    def __init__(self, num_classes: int, *, decay: float) -> None:
        super().__init__()
        self.chance, self.decay = 1 / num_classes, decay
        self.register_buffer("confidence", torch.tensor(self.chance))

    @torch.no_grad()
    def update(self, mean_probability: Tensor, finite: Tensor | None = None) -> None:
        """Blend in the batch's mean probability of the true class; with ``finite`` false nothing changes."""
        new = self.decay * self.confidence + (1 - self.decay) * mean_probability.to(self.confidence.dtype)
        write(self, "confidence", new if finite is None else torch.where(finite, new, self.confidence))

    def value(self) -> Tensor:
        """The gate, 0 to 1; 0 if there is only one class, as then nothing can be told apart."""
        if self.chance == 1:
            return torch.zeros_like(self.confidence)
        return ((self.confidence - self.chance) / (1 - self.chance)).clamp(min=0)
