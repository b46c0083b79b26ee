"""Array types."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
SampleId = int | str  # as the user gave it, or the row
