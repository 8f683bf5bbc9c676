"""What the next draws of a chain depend on, as named arrays, and back into a chain.

A chain declares which of its attributes it remembers (``Chain.remembers``), and a record which of
its arrays are state (``core.backend.records``): one walk over these serves every sampler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.backend.records import Record

State = dict[str, NDArray[Any]]
"""By name, such as ``state.tree.threshold``."""

Visit = Callable[[str, NDArray[Any]], NDArray[Any]]


def capture(chain: Any) -> State:
    """A copy of all that a chain would need to go on, between two calls of its ``advance``."""
    state: State = {}

    def keep(name: str, array: NDArray[Any]) -> NDArray[Any]:
        state[name] = array.copy()
        return array

    _visit_chain(chain, "", keep, {})
    return state


def restore(chain: Any, state: State) -> None:
    """Bring a chain of the same sampler to a captured state: it goes on as the other would have.

    Raises
    ------
    ValueError
        If the state is not that of such a chain.
    """
    used = set()

    def put(name: str, array: NDArray[Any]) -> NDArray[Any]:
        used.add(name)
        saved = state.get(name)
        if saved is None or saved.dtype != array.dtype or saved.ndim != array.ndim:
            raise ValueError(f"the state of a chain does not fit this sampler: {name}")
        if saved.shape != array.shape:  # particles need more room as they grow
            return saved.copy()
        array[...] = saved  # in place: compiled code and other parts of the chain hold it too
        return array

    _visit_chain(chain, "", put, {})
    # Attributes that are not remembered are in checkpoints of before chains declared what is.
    if unknown := {name for name in state if name not in used and not hasattr(chain, name)}:
        raise ValueError(f"the state of a chain has {min(unknown)}, which this sampler has not")


def _visit_chain(chain: Any, prefix: str, visit: Visit, seen: dict[int, Any]) -> None:
    for attribute in chain.remembers:
        part = getattr(chain, attribute)
        changed = _visit(part, f"{prefix}{attribute}", visit, seen)
        if changed is not part:
            setattr(chain, attribute, changed)


def _visit(part: Any, name: str, visit: Visit, seen: dict[int, Any]) -> Any:
    """The part, rebuilt only where an array in it was replaced by another.

    ``seen``: arrays that stand in several places are visited once.
    """
    if isinstance(part, bool | int | float):
        return type(part)(visit(name, np.array(part)).item())
    if isinstance(part, np.ndarray):
        if id(part) not in seen:
            seen[id(part)] = (part, visit(name, part))  # holds the array, so that its id stays its
        return seen[id(part)][1]
    if isinstance(part, np.random.Generator):
        _set_words(part, visit(name, _words_of(part)))
        return part
    if isinstance(part, Record):
        before = {field: value for field, value in part._asdict().items() if _is_state(part, field)}
        after = {
            field: _visit(value, f"{name}.{field}", visit, seen) for field, value in before.items()
        }
        same = all(after[field] is value for field, value in before.items())
        return part if same else part._replace(**after)
    if isinstance(part, list):
        for number, item in enumerate(part):
            _visit(item, f"{name}.{number}", visit, seen)
    elif part is not None:  # a chain inside a chain
        _visit_chain(part, f"{name}.", visit, seen)
    return part


def _is_state(record: Record, field: str) -> bool:
    """Whether a field is state, or a record that may have some."""
    value = getattr(record, field)
    if isinstance(value, np.ndarray):
        return record._roles[field] == "state"
    return isinstance(value, Record) and record._roles[field] != "scratch"


# ------------------------------------------------------------------ the random generator

_HALF = (1 << 64) - 1


def _words_of(rng: np.random.Generator) -> NDArray[np.uint64]:
    """State and increment of PCG64, two words each, and its buffered half word."""
    whole: Any = rng.bit_generator.state
    words = []
    for number in (whole["state"]["state"], whole["state"]["inc"]):
        words += [number >> 64, number & _HALF]
    return np.array([*words, whole["has_uint32"], whole["uinteger"]], np.uint64)


def _set_words(rng: np.random.Generator, words: NDArray[np.uint64]) -> None:
    state, inc = ((int(words[k]) << 64) | int(words[k + 1]) for k in (0, 2))
    rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": state, "inc": inc},
        "has_uint32": int(words[4]),
        "uinteger": int(words[5]),
    }
