"""Predictions of a model for new inputs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class PredictResult:
    """Predictions of a model.

    Attributes:
        logits: Scores, float32, (N, K).
        probabilities: Softmax of the logits, float32, (N, K); ``None`` if the scores of a fix are not logits.
        class_names: One name per class.
        filenames: File of each sample, if all samples are files.

    >>> result = PredictResult.from_logits(torch.tensor([[0.0, 2.0]]), ("cat", "dog"))
    >>> result.labels, result.predictions
    (('dog',), tensor([1]))
    >>> classes, probabilities = result.top_k(2)
    >>> classes
    tensor([[1, 0]])
    """

    logits: Tensor
    probabilities: Tensor | None
    class_names: tuple[str, ...]
    filenames: tuple[str, ...] | None = None

    @classmethod
    def from_logits(
        cls,
        logits_NK: Tensor,
        class_names: tuple[str, ...],
        *,
        has_probabilities: bool = True,
        filenames: tuple[str, ...] | None = None,
    ) -> PredictResult:
        """Compute probabilities in float64, and round them once."""
        probabilities_NK = logits_NK.double().softmax(dim=1).float() if has_probabilities else None
        return cls(logits_NK.float(), probabilities_NK, class_names, filenames)

    @property
    def predictions(self) -> Tensor:
        """Predicted classes, int64, (N,)."""
        return self.logits.argmax(dim=1)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the predicted classes."""
        return tuple(self.class_names[each] for each in self.predictions.tolist())

    def top_k(self, k: int) -> tuple[Tensor, Tensor]:
        """Return the k best classes of each sample, best first, (N, k), and their probabilities, or else logits.

        Raises:
            ValueError: If k is not between 1 and the number of classes.
        """
        if not 1 <= k <= len(self.class_names):
            raise ValueError(f"top_k must be between 1 and the number of classes, {len(self.class_names)}; got {k}.")
        # A stable sort breaks ties as argmax does: the first class wins.
        order_NK = self.logits.argsort(dim=1, descending=True, stable=True)[:, :k]
        scores_NK = self.logits if self.probabilities is None else self.probabilities
        return order_NK, torch.gather(scores_NK, 1, order_NK)
