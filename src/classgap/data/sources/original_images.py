"""Images whose files are read again for random crops at full resolution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from classgap.data.sources.images import ImageFiles, read_original, try_read
from classgap.data.sources.parallel import map_in_threads

CROPS = ("stored", "original")


@dataclass(frozen=True)
class OriginalImages(ImageFiles):
    """Image files that random resized crops are taken from, as torchvision does.

    Rows are squares, as for other image files, for passes without augmentation.

    Attributes:
        stored: Decoded squares, if they fit into memory.
    """

    stored: Tensor | None = None

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        return super().__getitem__(rows) if self.stored is None else self.stored[rows]

    def map_originals(self, rows: Tensor, work: Callable[[int, Tensor], Tensor]) -> Tensor:
        """Decode the files of some rows at full size and stack the results of ``work``.

        Args:
            rows: Rows, (B,).
            work: Function of a position in ``rows`` and its image, uint8, (3, height, width).

        Raises:
            ValueError: If a file cannot be read.
        """
        wanted = rows.tolist()

        def read(position: int) -> Tensor:
            path = self.paths[wanted[position]]
            image, reason = try_read(lambda: read_original(path))
            if image is None:
                raise ValueError(f"cannot read the image {path} ({reason}); repair it, or skip it with :on_error=skip.")
            return work(position, torch.from_numpy(image.copy()))

        return torch.stack(map_in_threads(read, range(len(wanted))))
