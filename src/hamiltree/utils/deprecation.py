"""What goes away keeps working for a while, with a warning that says what to write instead.

docs/stability.md has the policy.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def warn_deprecated(old: str, new: str, *, removed_in: str, stacklevel: int = 2) -> None:
    """Warn that ``old`` will be removed in a version and that ``new`` replaces it.

    A ``FutureWarning``, which Python shows to everyone, at the line that called the caller.
    """
    warnings.warn(
        f"{old} is deprecated and will be removed in hamiltree {removed_in}: use {new}",
        FutureWarning,
        stacklevel=stacklevel + 1,
    )


def deprecated(new: str, *, removed_in: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function or method that ``new`` replaces; its docstring says so, too."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__qualname__

        @functools.wraps(function)
        def warned(*args: P.args, **kwargs: P.kwargs) -> R:
            warn_deprecated(name, new, removed_in=removed_in)
            return function(*args, **kwargs)

        first, *rest = (function.__doc__ or name).split("\n", 1)
        note = f"Deprecated: will be removed in {removed_in}. Use {new}."
        warned.__doc__ = "\n".join([first, "", note, *rest])
        return warned

    return decorate


class renamed:  # noqa: N801, used like property
    """The old name of an attribute: ``settings = renamed("configuration", removed_in="0.3.0")``."""

    def __init__(self, new: str, *, removed_in: str) -> None:
        self.new, self.removed_in = new, removed_in
        self.__doc__ = f"Deprecated: will be removed in {removed_in}. Use {new}."

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        kind = owner.__name__
        old, new = f"{kind}.{self.old}", f"{kind}.{self.new}"
        warn_deprecated(old, new, removed_in=self.removed_in)
        return getattr(instance, self.new)
