"""Scores of leaves as rows move from one to another: marginal likelihoods, by tables of counts."""

from __future__ import annotations

import math

from .buffers import CLASSES
from .jit import inlined, kernel, never_inline
from .scan_data import FIFTHS, KNOWN, OWN, ScanModel, ScanWork, is_soft, make_scan_work


def make_scorer(model: ScanModel, max_leaves: int, n_weights: int) -> ScanWork:
    """Scratch with its tables filled."""
    work = make_scan_work(model, max_leaves, n_weights)
    if model.leaf == CLASSES:
        fill_class_tables(model, work)
    elif model.leaf == OWN:
        fill_own_tables(model, work)
    return work


@inlined
def log_gamma_ratio(x, a):
    """Log of Gamma(x + a) / Gamma(a)."""
    return math.lgamma(x + a) - math.lgamma(a)


@kernel
def fill_class_tables(model, work):
    mass = 0.0
    for m in range(model.class_prior.shape[0]):
        alpha = model.class_prior[m]
        mass += alpha
        for c in range(work.log_size.shape[0]):
            work.log_count[m, c] = log_gamma_ratio(c / FIFTHS, alpha)
    for c in range(work.log_size.shape[0]):
        work.log_size[c] = log_gamma_ratio(c / FIFTHS, mass)


@kernel
def fill_own_tables(model, work):
    """By a leaf's size: the part of its marginal that its sums have no part in."""
    for c in range(work.log_size.shape[0]):
        work.log_size[c] = own_size_part(model, c / FIFTHS)


@inlined
def own_size_part(model, rows):
    part = log_gamma_ratio(0.5 * rows, model.shape)
    return part - 0.5 * math.log1p(rows / model.worth)


@kernel
def fill_known_tables(model, work, sigma):
    """By a leaf's size: the factor of its squared sum, and the rest."""
    never_inline()
    if work.sigma[0] == sigma:
        return
    work.sigma[0] = sigma
    ratio = model.mean_variance / (sigma * sigma)
    step = FIFTHS
    for f in range(model.h.shape[0]):
        if is_soft(model, f):
            step = 1
    for c in range(0, work.log_size.shape[0], step):
        grown = 1.0 + ratio * (c / FIFTHS)
        work.log_size[c] = -0.5 * math.log(grown)
        work.log_count[0, c] = 0.5 * ratio / (sigma * sigma * grown)


@inlined
def known_score(model, work, c, total):
    if c < work.log_size.shape[0]:
        return work.log_size[c] + work.log_count[0, c] * total * total
    ratio = model.mean_variance / (work.sigma[0] * work.sigma[0])
    grown = 1.0 + ratio * (c / FIFTHS)
    scale = 0.5 * ratio / (work.sigma[0] * work.sigma[0] * grown)
    return scale * total * total - 0.5 * math.log(grown)


@inlined
def own_score(model, work, c, total, squares):
    rows = c / FIFTHS
    part = work.log_size[c] if c < work.log_size.shape[0] else own_size_part(model, rows)
    spread = max(squares - total * total / (rows + model.worth), 0.0)
    rate = model.rate + 0.5 * spread
    return part + model.shape * math.log(model.rate) - (model.shape + 0.5 * rows) * math.log(rate)


@inlined
def leaf_score(model, work, leaf):
    """Of a regression leaf, from its sums."""
    c = work.total[0, leaf]
    if model.leaf == KNOWN:
        return known_score(model, work, c, work.sums[0, leaf, 0])
    return own_score(model, work, c, work.sums[0, leaf, 0], work.sums[0, leaf, 1])


@inlined
def log_class_part(model, work, m, c):
    if c < work.log_size.shape[0]:
        return work.log_count[m, c]
    return log_gamma_ratio(c / FIFTHS, model.class_prior[m])


@inlined
def log_size_part(model, work, c):
    if c < work.log_size.shape[0]:
        return work.log_size[c]
    mass = 0.0
    for m in range(model.class_prior.shape[0]):
        mass += model.class_prior[m]
    return log_gamma_ratio(c / FIFTHS, mass)


@inlined
def move_group(model, work, g, fifths):
    """Send a group, or some fifths of it, from the right to the left; the change of the score."""
    place = work.group_place[g]
    left, right, m = place[0], place[1], place[2]
    amount = place[3] * fifths
    total = work.total[0]
    if model.leaf == CLASSES:
        count = work.members[0]
        a, b = count[left, m], count[right, m]
        p, q = total[left], total[right]
        count[left, m] = a + amount
        count[right, m] = b - amount
        total[left] = p + amount
        total[right] = q - amount
        change = log_class_part(model, work, m, a + amount) - log_class_part(model, work, m, a)
        change += log_class_part(model, work, m, b - amount) - log_class_part(model, work, m, b)
        change -= log_size_part(model, work, p + amount) - log_size_part(model, work, p)
        return change - (log_size_part(model, work, q - amount) - log_size_part(model, work, q))
    share = fifths / FIFTHS
    sums = work.sums[0]
    for s in range(2):
        part = share * work.group_sums[g, s]
        sums[left, s] += part
        sums[right, s] -= part
    total[left] += amount
    total[right] -= amount
    before = work.score[left] + work.score[right]
    work.score[left] = leaf_score(model, work, left)
    work.score[right] = leaf_score(model, work, right)
    return work.score[left] + work.score[right] - before


@inlined
def all_right(model, work):
    """Put all rows on the right; returns the score of that."""
    score = 0.0
    for leaf in range(work.n_side[0] + work.n_side[1]):
        work.total[0, leaf] = work.total[1, leaf]
        if model.leaf == CLASSES:
            for m in range(work.members.shape[2]):
                c = work.members[1, leaf, m]
                work.members[0, leaf, m] = c
                score += log_class_part(model, work, m, c)
            score -= log_size_part(model, work, work.total[1, leaf])
        else:
            work.sums[0, leaf, 0] = work.sums[1, leaf, 0]
            work.sums[0, leaf, 1] = work.sums[1, leaf, 1]
            work.score[leaf] = leaf_score(model, work, leaf)
            score += work.score[leaf]
    return score
