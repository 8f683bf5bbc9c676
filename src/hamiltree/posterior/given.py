"""Functions that take a posterior also take a fitted model."""

from __future__ import annotations

from typing import Any

from .posterior import Posterior


def posterior_of(given: Any) -> Posterior:
    """The posterior of a fitted model, or the posterior itself."""
    found = getattr(given, "posterior_", given)
    if not isinstance(found, Posterior):
        kind = type(given).__name__
        raise TypeError(f"expected a fitted model or its posterior_, got {kind}: call fit first")
    return found
