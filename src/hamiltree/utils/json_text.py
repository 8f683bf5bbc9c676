"""JSON that every reader accepts: NaN and infinity, which JSON lacks, become null."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np


def json_text(value: Any, indent: int | None = None) -> str:
    """Nested plain values, and NumPy's, as JSON."""
    return json.dumps(plain_values(value), indent=indent, allow_nan=False, ensure_ascii=False)


def plain(value: Any) -> Any:
    """NumPy's numbers and arrays for ``json.dumps``, which asks for what it does not know."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"cannot save {value!r}: only text, numbers and lists of them can be saved")


def plain_values(value: Any) -> Any:
    """Nested values as JSON has them."""
    if isinstance(value, dict):
        return {str(key): plain_values(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain_values(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
