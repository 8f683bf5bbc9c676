"""Columns that hardly belong into a tree: dates, and numbers of the rows."""

from __future__ import annotations

import re

import numpy as np
import pandas

TIME = r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?"
ZONE = r"( ?(Z|UTC|[+-]\d{2}:?\d{2}))?"
DATE = r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4}))"
DATES = re.compile(rf"{DATE}([T ]+{TIME}{ZONE})?|{TIME}|-?\d+ days( .*)?")
"""Dates, times of day, and durations as pandas writes them."""
FEW = 10
"""Rows below which whole numbers in a row may be anything."""


def holds_dates(texts: pandas.Series) -> bool:
    """Whether every cell, none of which is missing, looks like a date or a time."""
    return bool(len(texts)) and all(DATES.fullmatch(text) for text in texts.unique())


def numbers_rows(cells: pandas.Series) -> bool:
    """Whether a column of float64 holds consecutive whole numbers, each once, in any order."""
    n = len(cells)
    if n < FEW or cells.isna().any() or np.isinf(cells).any() or (cells % 1 != 0).any():
        return False
    return bool(cells.max() - cells.min() == n - 1 and cells.nunique() == n)
