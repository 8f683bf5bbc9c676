"""Jumps drawn from the prior where leaf probabilities are sampled: they are proposed, too."""

from __future__ import annotations

import numpy as np

from ..backend.jit import pointer_kernel
from ..backend.units import unit
from ..sampling import accept
from ..tree.nodes import copy_tree
from .data import CLASSES
from .hmc_steps import LABEL_JUMP
from .leaf_probabilities import propose_probabilities, take_probabilities, weigh_state
from .prior_jumps import STAY
from .target import log_posterior_as


@pointer_kernel
def jump_with_probabilities(state, plan, jump, phase, rng):
    """A jump that also proposes leaf probabilities; the state moves, or stays."""
    model, tree, proposal, tally = state.model, state.tree, state.proposal, state.tally[phase]
    weight = weigh_state(model, tree, state.work, state.log_like[0])
    before = log_posterior_as(model, CLASSES, tree, weight)
    copy_tree(tree, proposal)
    move, log_q = jump(model, proposal, plan.probs[phase], rng)
    tally[move, 1] += 1
    if move == STAY:
        tally[move, 0] += 1
        return
    if log_q == -np.inf:
        return
    weight = propose_probabilities(model, proposal, state.work, rng)
    after = log_posterior_as(model, CLASSES, proposal, weight)
    if accept(after - before + log_q, rng):
        tally[move, 0] += 1
        copy_tree(proposal, tree)
        state.log_like[0] = take_probabilities(model, tree)


@pointer_kernel
def no_label_jump(state, plan, jump, phase, rng):
    """Where informed moves change the tree, or leaves are integrated out."""


unit(jump_with_probabilities, LABEL_JUMP)
unit(no_label_jump, LABEL_JUMP)
