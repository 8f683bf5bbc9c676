"""How a parameter is declared: its default, its limits and its description, in one place.

Estimators and methods are dataclasses whose fields are made by ``parameter``. Docstrings, error
messages and the options of the command line are all read from there.
"""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import Field, dataclass, field, fields
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

_Class = TypeVar("_Class", bound=type)

ROUNDING = 1e-8
"""Probabilities typed as decimals sum to 1 only up to rounding."""


@dataclass(frozen=True)
class Limits:
    """What a parameter may be."""

    kind: str
    """Its type, as a docstring has it."""
    wanted: str
    """What it must be, in words that follow "must be"."""
    read: Callable[[Any], Any]
    """Returns the value; a ``ValueError`` or ``TypeError`` where it is outside the limits."""

    def checked(self, name: str, value: Any) -> Any:
        """The value as plain Python has it; a ``ValueError`` that says what would be right."""
        try:
            return self.read(plain(value))
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be {self.wanted}, got {value!r}") from None


def parameter(
    default: Any,
    limits: Limits,
    text: str,
    *,
    brief: str = "",
    task: str | None = None,
    only_with: tuple[str, Any] | None = None,
    of_used: Callable[[str, Any, Sequence[int], int], Any] | None = None,
) -> Any:
    """Declare a field of an estimator or a method. None is allowed where it is the default.

    ``brief``: one line, for the options of the command line that stand first.
    ``task``: "classification" or "regression" where only that one uses it.
    ``only_with``: name and value of another field, without which this one has no effect.
    ``of_used``: for a value per column; called with name, value, the columns that are not constant
    and the number of all, it checks the value and returns that of these columns.
    """
    metadata: dict[str, Any] = {"limits": limits, "text": text, "brief": brief}
    metadata |= {"task": task, "only_with": only_with, "of_used": of_used}
    return field(default=default, metadata=metadata)


def declared(owner: Any) -> Iterator[Field[Any]]:
    """The fields that ``parameter`` made, of a dataclass or of an instance of one."""
    return (f for f in fields(owner) if "limits" in f.metadata)


def checked(owner: Any, f: Field[Any]) -> Any:
    """The value of a field, within its limits."""
    value = getattr(owner, f.name)
    if value is None and f.default is None:
        return None
    limits: Limits = f.metadata["limits"]
    return limits.checked(f.name, value)


def documented(cls: _Class) -> _Class:
    """Fill ``{parameters}`` in the docstring of a dataclass."""
    lines = []
    for f in declared(cls):
        limits, text = f.metadata["limits"], f.metadata["text"]
        lines += [f"    {f.name} : {limits.kind}, default={f.default!r}", *wrapped(text, 8)]
    cls.__doc__ = (cls.__doc__ or "").replace("    {parameters}", "\n".join(lines))
    return cls


def wrapped(text: str, indent: int) -> list[str]:
    """Lines of a docstring."""
    space = " " * indent
    return textwrap.wrap(text, 96, initial_indent=space, subsequent_indent=space)


def plain(value: Any) -> Any:
    """NumPy's values as Python's and sequences as tuples, which files and hashes need."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return tuple(value) if isinstance(value, list) else value


# ------------------------------------------------------------------ limits


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


def _number(value: Any) -> float:
    _require(not isinstance(value, bool))
    _require(isinstance(value, Real))
    _require(math.isfinite(value))
    number: float = value  # an int stays one
    return number


def _numbers(value: Any, length: int) -> tuple[float, ...]:
    _require(isinstance(value, tuple) and len(value) == length)
    return tuple(_number(v) for v in value)


def class_weights() -> Limits:
    def read(value: Any) -> Any:
        _require(value == "balanced" or isinstance(value, dict))
        return value

    return Limits("dict or str", 'a dict of numbers by label, or "balanced"', read)


def one_of(*names: str) -> Limits:
    listed = ", ".join(repr(name) for name in names[:-1]) + f" or {names[-1]!r}"

    def read(value: Any) -> Any:
        _require(isinstance(value, str) and value in names)
        return value

    return Limits("str", listed, read)


def whole(low: int, high: int | None = None) -> Limits:
    wanted = f"an integer of at least {low}"
    if high is not None:
        wanted = f"an integer between {low} and {high}"

    def read(value: Any) -> Any:
        _require(isinstance(value, Integral) and not isinstance(value, bool))
        _require(low <= value and (high is None or value <= high))
        return value

    return Limits("int", wanted, read)


def whole_or(word: str, low: int) -> Limits:
    """A whole number, or a word instead."""
    limits = whole(low)

    def read(value: Any) -> Any:
        return value if isinstance(value, str) and value == word else limits.read(value)

    return Limits("int or str", f"{limits.wanted}, or {word!r}", read)


def integer() -> Limits:
    def read(value: Any) -> Any:
        _require(isinstance(value, Integral) and not isinstance(value, bool))
        return value

    return Limits("int", "an integer", read)


def real(
    low: float, high: float = math.inf, *, low_allowed: bool = False, high_allowed: bool = False
) -> Limits:
    least = f"a number {'of at least' if low_allowed else 'above'} {low:g}"
    most = f" and {'at most' if high_allowed else 'below'} {high:g}" if high < math.inf else ""

    def read(value: Any) -> Any:
        _require(low < _number(value) < high or (low_allowed and value == low)
                 or (high_allowed and value == high))  # fmt: skip
        return value

    return Limits("float", least + most, read)


def flag() -> Limits:
    def read(value: Any) -> Any:
        _require(isinstance(value, bool))
        return value

    return Limits("bool", "True or False", read)


def pair_of_positives(wanted: str = "two positive numbers") -> Limits:
    def read(value: Any) -> Any:
        numbers = _numbers(value, 2)
        _require(min(numbers) > 0)
        return numbers

    return Limits("(float, float)", wanted, read)


def number_and_positive(wanted: str) -> Limits:
    """A pair of a location and something positive."""

    def read(value: Any) -> Any:
        numbers = _numbers(value, 2)
        _require(numbers[1] > 0)
        return numbers

    return Limits("(float, float)", wanted, read)


def positive_or_sequence(wanted: str) -> Limits:
    """A positive number, or several; how many there must be, only ``fit`` knows."""

    def read(value: Any) -> Any:
        _require(isinstance(value, tuple) or _number(value) > 0)
        return value

    return Limits("float or array", wanted, read)


def softness(*words: str) -> Limits:
    """Of splits: a number, several (``fit`` knows how many there must be), or one of the words."""
    said = "".join(f", {word!r}" for word in words)

    def read(value: Any) -> Any:
        _require(isinstance(value, tuple) or value in words or _number(value) >= 0)
        return value

    kind = "float, array or str" if words else "float or array"
    return Limits(kind, f"a number of at least 0, one per column{said}", read)


def probabilities(length: int, wanted: str) -> Limits:
    """Numbers from 0 to 1 that sum to 1, up to the rounding of decimals."""

    def read(value: Any) -> Any:
        numbers = _numbers(value, length)
        _require(min(numbers) >= 0 and abs(sum(numbers) - 1) <= ROUNDING)
        return numbers

    return Limits(f"({', '.join(['float'] * length)})", wanted, read)


def sequence(kind: str, wanted: str, of: type | tuple[type, ...]) -> Limits:
    def read(value: Any) -> Any:
        _require(isinstance(value, tuple) and all(isinstance(v, of) for v in value))
        return value

    return Limits(kind, wanted, read)


def path() -> Limits:
    def read(value: Any) -> Any:
        _require(isinstance(value, str | os.PathLike))
        return value

    return Limits("path", "a path", read)


def anything(kind: str) -> Limits:
    """Checked where it is used."""
    return Limits(kind, kind, lambda value: value)
