"""Cases of a slow test that take turns: the default run has each value, not all combinations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def in_turns(cases: Sequence[tuple[Any, ...]], moves: Sequence[str], period: int) -> list[Any]:
    """All cases x moves; ``len(cases) / period`` of a move in the default run, the rest long."""
    found = []
    for m, move in enumerate(moves):
        for c, case in enumerate(cases):
            values = (*case, move)
            marks = [] if (c + m) % period == 0 else [pytest.mark.long]
            found.append(pytest.param(*values, id="-".join(map(str, values)), marks=marks))
    return found
