"""Chains on other machines: one joblib task per chain, where ``joblib.parallel_config`` sends it.

A task gets the data, the configuration and the state of its chain, and gives back draws and the new
state. It has no other input, so a task that is lost with its worker is simply run again, and the
draws are those of a run on this machine.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from ..core.tree.kinds import coded_kinds, decoded_kinds
from ..core.tree.record import Piece
from ..methods.base import Configuration, build_sampler
from ..samplers.chain_state import State, capture, restore
from ..samplers.common import Chain, Problem

ATTEMPTS = 3
"""So often in a row may workers be lost without a single chain coming back."""


def is_asked_for(n_jobs: int | None) -> bool:
    """Whether the user chose a joblib backend that does not work in this process.

    ``n_jobs=1`` keeps a fit where it is, also inside a task of somebody else's.
    """
    backend, _ = get_active_backend(prefer="threads")
    return n_jobs != 1 and not getattr(backend, "supports_sharedmem", False)


def advance_on_cluster(
    problem: Problem,
    configuration: Configuration[Any],
    n_warmup: int,
    n_particles: int,
    chains: Sequence[Chain],
    steps: Mapping[int, int],
    n_jobs: int | None,
) -> Generator[tuple[int, list[Piece], State], None, None]:
    """Advance chains by so many iterations each; what each has made, as it comes back.

    Number, draws and new state. The chains here stay where they are.
    """
    backend, _ = get_active_backend(prefer="threads")
    unordered = getattr(backend, "supports_return_generator", False)
    pool = Parallel(
        n_jobs=n_jobs,
        batch_size=1,
        pre_dispatch="all",
        return_as="generator_unordered" if unordered else "list",
    )
    # Arrays of their own, not inside an object: joblib then sends them once to each worker.
    data = (np.asarray(problem.columns), problem.y, problem.weights, coded_kinds(problem.kinds))
    plan = (problem.n_classes, configuration, n_warmup, n_particles)
    left, failures = dict(steps), 0
    own_error: Exception | None = None
    while left and own_error is None:
        try:
            tasks = [
                delayed(_advance)(*data, plan, number, capture(chains[number]), n)
                for number, n in left.items()
            ]
            with _quietly_closed(pool(tasks)) as results:
                for number, pieces, state, error in results:
                    if error is not None:
                        own_error = error
                        continue
                    del left[number]
                    failures = 0
                    yield number, pieces, state
        except Exception:  # of the engine: our own errors come back as results
            failures += 1
            if failures == ATTEMPTS:
                raise
    if own_error is not None:
        raise own_error


@contextmanager
def _quietly_closed(results: Any) -> Iterator[Any]:
    """Without joblib's warnings about tasks that it cancels because nobody waits for them."""
    try:
        yield results
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if hasattr(results, "close"):
                results.close()


def _advance(
    columns: NDArray[np.float64],
    y: NDArray[np.generic],
    weights: NDArray[np.float64] | None,
    kinds: NDArray[np.int64] | None,
    plan: tuple[int, Configuration[Any], int, int],
    number: int,
    state: State,
    n: int,
) -> tuple[int, list[Piece], State, Exception | None]:
    """On the other machine: number, draws and new state of a chain, or the chain's own error."""
    try:
        n_classes, configuration, n_warmup, n_particles = plan
        # Copies: engines share arrays that cannot be written to, which compiled code has not met.
        own_weights = None if weights is None else np.array(weights)
        own_kinds = None if kinds is None else decoded_kinds(np.array(kinds))
        problem = Problem(np.array(columns), np.array(y), n_classes, own_weights, own_kinds)
        sampler = build_sampler(problem, configuration, n_warmup, n_particles)
        chain: Any = sampler.start(np.random.Generator(np.random.PCG64(0)))
        restore(chain, state)
        pieces = chain.advance(n)
    except Exception as error:
        return number, [], {}, error
    return number, pieces, capture(chain), None
