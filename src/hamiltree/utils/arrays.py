"""Types of arrays, and numbers spread over them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def evenly(n: int, most: int) -> IntArray:
    """At most ``most`` of the numbers 0 .. n - 1, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.int64)
