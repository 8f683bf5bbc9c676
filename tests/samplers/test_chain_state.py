"""A chain brought to the state of another goes on as that one does, bit for bit, at any moment."""

from __future__ import annotations

import numpy as np
import pytest

from hamiltree.core.tree.nodes import Tree
from hamiltree.methods.base import build_sampler
from hamiltree.samplers.chain_state import capture, restore
from hamiltree.samplers.common import Problem

from ..reference.model import TOYS
from ..support.configuring import configured
from ..support.resuming import METHODS, TASKS, same_arrays

N_WARMUP = 60


def sampler_of(kind: str, task: str):
    toy = TOYS[TASKS[task]]()
    problem = Problem(np.ascontiguousarray(toy.X.T), toy.y, toy.n_classes)
    values = {"max_leaves": 6, "h": 0.1, **METHODS[kind]}
    if METHODS[kind]["method"] in ("cgm", "wu", "smc"):
        del values["h"]
    configuration = configured(**values)
    return build_sampler(problem, configuration, N_WARMUP, 40)


def meaningful(state):
    """Hard trees: only splits have a rule, and only leaves a part of the likelihood.

    What stands in these places at other nodes is left over from some proposal.
    """
    found = dict(state)
    for place in [name.removesuffix("cells.log_rule") for name in state if "log_rule" in name]:
        size = state[f"{place}tree.size"]
        within = np.arange(len(size)) < state[f"{place}tree.n_nodes"][0]
        has = {"tree.threshold": size > 1, "cells.log_rule": size > 1}
        has |= {"cells.part": size == 1, "cells.spread": size == 1}
        for name, nodes in has.items():
            found[place + name] = np.where(nodes & within, state[place + name], 0.0)
    return found


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", METHODS)
def test_a_restored_chain_goes_on_as_the_other(kind, task, seed):
    sampler = sampler_of(kind, task)
    chain = sampler.start(np.random.default_rng(seed))
    # in the middle of adaptation windows, at their ends, across the end of warm-up, in sampling
    for steps in (1, 6, 13, 34, 3, 2, 3, 20):
        other = sampler.start(np.random.default_rng(seed + 1))
        other.advance(7)  # a chain that has been elsewhere
        if kind == "smc" and getattr(other, "finished", False):
            other = sampler.start(np.random.default_rng(seed + 1))
        restore(other, capture(chain))
        assert same_arrays(capture(other), capture(chain))
        one, two = chain.advance(steps), other.advance(steps)
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            assert same_arrays(a._asdict(), b._asdict())
        assert same_arrays(meaningful(capture(other)), meaningful(capture(chain)))
        assert chain.tally() == other.tally()


def test_a_state_is_a_copy_without_the_data_and_without_scratch(seed):
    sampler = sampler_of("hmc-df", "classification")
    chain = sampler.start(np.random.default_rng(seed))
    chain.advance(5)
    state = capture(chain)
    before = {name: array.copy() for name, array in state.items()}
    chain.advance(5)
    assert same_arrays(state, before)
    assert not same_arrays(state, capture(chain))
    fields = {f"state.tree.{name}" for name in Tree._fields}
    assert fields | {"rng", "state.model.h", "state.tuning.averager", "state.iteration"} <= set(
        state
    )
    assert not [name for name in state if "data" in name or "work" in name or "block" in name]


def test_the_state_of_another_sampler_is_refused(seed):
    sampler = sampler_of("hmc-df", "classification")
    other = sampler_of("cgm", "classification")
    chain = sampler.start(np.random.default_rng(seed))
    state = capture(chain)
    with pytest.raises(ValueError, match="does not fit this sampler"):
        restore(other.start(np.random.default_rng(seed)), state)
    with pytest.raises(ValueError, match="has extra, which this sampler has not"):
        restore(chain, {**state, "extra": np.zeros(1)})
    with pytest.raises(ValueError, match=r"does not fit this sampler: state\.iteration"):
        restore(chain, {**state, "state.iteration": np.zeros(1)})


@pytest.mark.parametrize("kind", METHODS)
def test_a_chain_remembers_what_it_declares(kind, seed):
    """Nothing is found by its type: how many threads help, for one, is none of its state."""
    chain = sampler_of(kind, "regression").start(np.random.default_rng(seed))
    captured = {name.partition(".")[0] for name in capture(chain)}
    assert captured == {name for name in chain.remembers if getattr(chain, name) is not None}


def test_attributes_that_older_checkpoints_have_are_left_alone(seed):
    chain = sampler_of("hmc-df replicas", "regression").start(np.random.default_rng(seed))
    restore(chain, {**capture(chain), "workers": np.array(7), "n_warmup": np.array(7)})
    assert (chain.workers, chain.n_warmup) == (1, N_WARMUP)
