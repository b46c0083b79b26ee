"""A memory of recent features, used as additional positives if classes outnumber the batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from classgap.state.buffers import write


class FeatureBank(nn.Module):
    """A first-in-first-out queue of detached features with labels, equal on every process.

    The number of features is taken from the first batch or from a loaded ``state_dict``, which must have ``width``
    features if it is given. Empty entries have the label -1.

    >>> bank = FeatureBank(3)
    >>> bank.update(torch.tensor([[1.0], [2.0]]), torch.tensor([0, 1]))
    >>> bank.update(torch.tensor([[3.0], [4.0]]), torch.tensor([0, 1]))
    >>> bank.features.flatten().tolist(), bank.labels.tolist()
    ([4.0, 2.0, 3.0], [1, 1, 0])
    """

    features: Tensor
    labels: Tensor
    cursor: Tensor

    def __init__(self, size: int, width: int | None = None) -> None:
        super().__init__()
        self.size = size
        self.required_width = width
        self.register_buffer("features", torch.zeros(size, 0))
        self.register_buffer("labels", torch.full((size,), -1))
        self.register_buffer("cursor", torch.zeros((), dtype=torch.long))

    @property
    def width(self) -> int | None:
        """Number of features, once it is known."""
        return self.features.shape[1] or None

    def append_to(self, features_ND: Tensor, labels_N: Tensor) -> tuple[Tensor, Tensor]:
        """Append the queue to a batch."""
        if self.width is None:
            return features_ND, labels_N
        features = torch.cat([features_ND, self.features.to(features_ND.dtype)])
        return features, torch.cat([labels_N, self.labels])

    @torch.no_grad()
    def update(self, features_ND: Tensor, labels_N: Tensor, finite: Tensor | None = None) -> None:
        """Add a batch and drop the oldest entries, unless ``finite`` is False."""
        if self.width is None:
            with torch.inference_mode(False):  # a tensor made in inference mode could never be trained on
                self.features = torch.zeros(
                    self.size, features_ND.shape[1], dtype=self.features.dtype, device=self.features.device
                )
        if not torch.compiler.is_compiling():  # samples without a class must not displace others
            kept_N = (labels_N >= 0).nonzero().squeeze(1)
            features_ND, labels_N = features_ND.index_select(0, kept_N), labels_N.index_select(0, kept_N)
        features_ND, labels_N = features_ND[-self.size :], labels_N[-self.size :]
        steps = torch.arange(len(labels_N), device=self.cursor.device)
        places_N = (self.cursor + steps) % self.size
        advance = torch.tensor(len(labels_N), device=self.cursor.device)
        if finite is not None:
            features_ND = torch.where(finite, features_ND, self.features[places_N].to(features_ND.dtype))
            labels_N = torch.where(finite, labels_N, self.labels[places_N])
            advance = torch.where(finite, advance, 0)
        write(self, "features", features_ND, places_N)
        write(self, "labels", labels_N, places_N)
        write(self, "cursor", (self.cursor + advance) % self.size)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        stored = state_dict.get(f"{prefix}features")
        fits = self.required_width is None or (
            isinstance(stored, Tensor) and stored.shape[-1] in (0, self.required_width)
        )
        if fits and isinstance(stored, Tensor) and stored.dim() == 2 and stored.shape[0] == self.size:
            self.features = self.features.new_zeros(stored.shape)
        super()._load_from_state_dict(state_dict, prefix, *args)
