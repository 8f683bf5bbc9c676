"""What a chain of RJHMC-Tree is made of: its plan, its model, its state."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from ..core.backend.row_threads import BINNED_ROWS
from ..core.moves.propose import ENTRIES, NAMES, propose_informed
from ..core.scan.data import (
    CLASS_COUNTS,
    KNOWN_VARIANCE,
    UNIT,
    ScanData,
    ScanModel,
    make_scan,
    make_scan_data,
)
from ..core.scan.parts import connect_parts
from ..core.scan.proposals import Proposals, make_proposals
from ..core.scan.scores import fill_first_tables
from ..core.soft.adaptation import (
    AVERAGER,
    h_schedule,
    make_tuning,
    window_masks,
)
from ..core.soft.data import (
    CLASSES,
    COLLAPSED,
    LABELS,
    MEANS,
    Data,
    Work,
    inputs_of,
    make_leaf_prior,
    make_work,
)
from ..core.soft.feature_updates import (
    FEATURE,
    GIBBS,
    LIU,
    MH,
    NUDGE,
    REDRAW,
    keep_rules,
    make_feature_work,
    update_rules,
)
from ..core.soft.hmc_steps import (
    Plan,
    State,
)
from ..core.soft.learned_h import HPrior
from ..core.soft.nuts import make_nuts_work
from ..core.soft.prior_jumps import GROW, PRUNE, STAY
from ..core.soft.sweep import sweep_of_family
from ..core.soft.target import Model, make_model, nuts_on_tree
from ..core.tree.nodes import empty_tree
from .common import sweep_of, tree_prior_of
from .softness import H_RANGE, first_softness_of, softness_in_scans

if TYPE_CHECKING:
    from ..methods.base import Configuration
    from .rjhmc import RJHMC

MOVES = {
    "grow": GROW,
    "prune": PRUNE,
    "stay": STAY,
    "feature": FEATURE,
    "redraw": REDRAW,
    "nudge": NUDGE,
}


def sorted_columns(data: Data, configuration: Configuration[Any]) -> ScanData:
    """What the scans need of the data; of one row where nothing is scanned."""
    rows = np.concatenate(
        [np.arange(a, a + n) for a, n in zip(data.block, data.block_rows, strict=False)]
    )
    inputs = inputs_of(data)
    label = np.zeros(inputs.shape[1], np.int64)
    for b, code in enumerate(data.block_class):
        label[data.block[b] : data.block[b + 1]] = code
    if not sweep_of(configuration):
        rows = rows[:1]
    target = data.y[0]
    if data.root.size:
        target = target / np.maximum(data.root[0], 1e-300)[: len(target)]  # padding is 0
    y = target - configuration.method.mu_prior[0]
    return make_scan_data(
        inputs,
        rows,
        label,
        y,
        binned=len(rows) > BINNED_ROWS,
        projected=configuration.method.oblique,
        weights=data.weight if data.weight.size else None,
        kinds=data.kinds,
    )


HOT_NUTS_DEPTH = 3
"""Of replicas whose draws are not kept: what they are for is other trees, and a trajectory of seven
gradients moves thresholds enough for these to be exchanged."""


def make_plan(sampler: RJHMC, keep: bool) -> Plan:
    configuration, n_warmup = sampler.configuration, sampler.n_warmup
    method = configuration.method
    first, final = first_softness_of(sampler.h, configuration), sampler.h
    if (first == first[0]).all() and (final == final[0]).all():
        first, final = first[:1], final[:1]
    warm_probs = method.warmup_move_probs or method.move_probs
    steps = method.adapt_steps if method.adapt == "transition" else 0
    _, window_end = window_masks(n_warmup)
    adapt_slow, adapt_end = window_masks(steps)
    return Plan(
        index_update={"mh": MH, "liu": LIU, "gibbs": GIBBS}[method.index_update],
        double_sided=method.scheme == "double-sided",
        adapt_each=method.adapt == "transition",
        inner_steps=method.inner_steps,
        probs=np.array([warm_probs, method.move_probs], np.float64),
        biased=np.array([method.warmup_acceptance == "biased", method.acceptance == "biased"]),
        target_accept=method.target_accept,
        max_depth=sampler.max_nuts_depth if keep else min(sampler.max_nuts_depth, HOT_NUTS_DEPTH),
        leaf_rows=sampler.leaf_rows,
        n_warmup=n_warmup,
        h_warmup=h_schedule(n_warmup, first, final),
        window_end=window_end,
        h_adapt=h_schedule(steps, first, final),
        adapt_slow=adapt_slow,
        adapt_end=adapt_end,
        h_final=final.copy(),
        sweep=np.array([ENTRIES[name] for name in sweep_of(configuration)], np.int64),
        keep=keep,
        h_prior=h_prior_of(sampler),
        prior_moves=method.moves == "prior",
    )


def h_prior_of(sampler: RJHMC) -> HPrior:
    method = sampler.configuration.method
    median, sd = method.h_prior
    low, high = (math.log(end) for end in H_RANGE)
    below = [float(ndtr((end - math.log(median)) / sd)) for end in (low, high)]
    return HPrior(
        learned=sampler.learns_h,
        by_feature=method.h_by_feature,
        log_median=math.log(median),
        log_sd=float(sd),
        log_mass=math.log(below[1] - below[0]),
        log_low=low,
        log_high=high,
    )


def family_of(sampler: RJHMC) -> int:
    if sampler.n_classes:
        soft = sampler.learns_h or bool(np.any(sampler.h > 0.0))
        normalised = soft and sampler.configuration.method.likelihood == "normalised"
        return int(LABELS if normalised else CLASSES)
    return int(COLLAPSED if sampler.configuration.method.leaf_means == "collapsed" else MEANS)


def model_of(sampler: RJHMC, work: Work) -> Model:
    method, n_classes = sampler.configuration.method, sampler.n_classes
    inputs = inputs_of(sampler.data)
    class_prior = np.array(method.class_concentration(n_classes), float)
    leaf_prior = make_leaf_prior(class_prior, method.mu_prior, method.sigma_prior)
    centre = np.zeros(0)  # the paper's coordinates
    if method.oblique and method.moves == "informed":
        # rows that pad the columns are 0
        weight = sampler.data.weight
        total = inputs @ weight if weight.size else inputs.sum(axis=1)
        centre = np.clip(total / sampler.data.mass, 0.001, 0.999)
    return make_model(
        family_of(sampler),
        sampler.data,
        tree_prior_of(len(inputs), sampler.configuration, sampler.data.kinds),
        leaf_prior,
        sampler.h.copy(),  # a chain's own: it moves
        float(method.likelihood_power),
        centre.astype(np.float64),
        work,
    )


def proposals_of(sampler: RJHMC, model: Model, n_weights: int) -> Proposals:
    """What the informed moves scan; they see explicit means integrated out."""
    prior, leaves = model.leaf_prior, sampler.configuration.max_leaves
    h = model.h  # the same array: it moves with the chain's
    if model.family == LABELS and not sampler.configuration.method.oblique:
        h = softness_in_scans(sampler.h, sampler.scan_data.n_levels, sampler.data.n_rows)
    scan_model = ScanModel(
        prior=model.prior,
        kind=UNIT,
        leaf=CLASS_COUNTS if sampler.n_classes else KNOWN_VARIANCE,
        class_prior=prior.class_prior,
        class_mass=prior.class_mass,
        mean_variance=prior.mu_sd**2,
        prior_rows=1.0,  # these three are of leaves with a variance of their own
        shape=1.0,
        rate=1.0,
        h=h,
        power=model.power,
    )
    coupled = scores_leaf_means(sampler)
    scan = make_scan(sampler.scan_data, scan_model, leaves, n_weights, coupled=coupled)
    fill_first_tables(scan)
    if sampler.scan_data.code.size:
        connect_parts(scan, leaves, sampler.threads)
    return make_proposals(scan)


def scores_leaf_means(sampler: RJHMC) -> bool:
    """Whether scans of soft regression see the likelihood itself, see ``core.scan.leaf_means``."""
    configuration, large = sampler.configuration, bool(sampler.scan_data.code.size)
    soft = sampler.learns_h or bool(np.any(sampler.h > 0.0))
    scans = bool(sweep_of(configuration)) and not configuration.method.oblique and not large
    return scans and soft and sampler.n_classes == 0


def has_rule_updates(configuration: Configuration[Any]) -> bool:
    """Whether rules need their own kernels: no informed move draws the weights of hard splits."""
    oblique_hard = configuration.method.oblique and np.all(np.asarray(configuration.h) == 0.0)
    return configuration.method.moves == "prior" or bool(oblique_hard)


def make_state(sampler: RJHMC) -> State:
    configuration = sampler.configuration
    p = len(sampler.h)
    n_weights = p if configuration.method.oblique else 0
    capacity = configuration.max_leaves
    family = family_of(sampler) if sampler.n_classes else int(COLLAPSED)
    sizes = (capacity, sampler.n_classes, n_weights, family)
    work = make_work(sampler.data, *sizes, sampler.threads)
    model = model_of(sampler, work)
    largest = max(n_weights, 1) * (capacity - 1) + capacity + 1
    return State(
        model=model,
        tree=empty_tree(capacity, n_weights),
        proposal=empty_tree(capacity, n_weights),
        log_like=np.zeros(1),
        iteration=np.zeros(1, np.int64),
        tuning=make_tuning(capacity, p),
        tally=np.zeros((2, len(MOVES), 2), np.int64),
        informed_tally=np.zeros((2, len(NAMES), 2), np.int64),
        work=work,
        proposals=proposals_of(sampler, model, n_weights),
        propose=propose_informed,
        feature_work=make_feature_work(capacity, p),
        nuts_work=make_nuts_work(largest, sampler.max_nuts_depth),
        vectors=np.zeros((5, largest)),
        places=np.zeros((2, largest), np.int64),
        averager=np.zeros(AVERAGER),
        sweep=sweep_of_family(family_of(sampler)),
        nuts=nuts_on_tree,
        update_rules=update_rules if has_rule_updates(configuration) else keep_rules,
    )
