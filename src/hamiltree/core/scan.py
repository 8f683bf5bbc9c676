"""Scores every cut of a node, and draws one in proportion: what the informed moves propose from.

A scan takes the rows of one node and two sides, each a subtree that is kept or a new leaf, and
gives every (feature, threshold) the likelihood that the tree would have there, as if splits were
hard. With soft splits a row counts in fifths: it is on the left of a cut for each of five logistic
quantiles, h apart, that lies beyond it.

These scores only propose. They may be approximate, as long as the density they define is evaluated
by the same arithmetic on the way back: then the acceptance ratio makes the move exact.

Between neighbouring values of a column, cuts send the same rows left: one cell. Its weight is its
width times the likelihood to the power of the model. A share of the draws ignores the likelihood,
so that the density is nowhere negligible. Cells reach out to 0 and 1 where the prior does: cuts
that leave a side empty carry prior mass.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .buffers import CLASSES
from .hard_rules import UNIFORM, UNIT
from .jit import inlined, kernel, never_inline
from .nodes import path_to
from .priors import TreePrior, log_threshold
from .routing import exp_clamped

FIFTHS = 5
QUANTILES = tuple(math.log(q / (1 - q)) for q in (0.1, 0.3, 0.5, 0.7, 0.9))
PRIOR_SHARE = 0.05
"""Of the draws of a feature, and of a cell within it."""
SOFT_GAP = 20.0
"""Softness matters to a column whose values are nearer to each other than so many h."""
PIECE = 1.5
"""A gap between values is cut into pieces of about so many h near its ends."""
TABLE_ROWS = 20_000
"""Up to so many rows, functions of counts are looked up in tables."""

BINS = 512
"""Cells of a projection (HMC-DFI), between the smallest and the largest value in the node."""

KNOWN, OWN = 1, 2
"""Regression leaves: noise sd known, or a variance of each leaf integrated out."""


class ScanData(NamedTuple):
    """The columns, sorted; shared by all chains."""

    columns: NDArray[np.float64]
    """[p, n]"""
    rows: NDArray[np.int32]
    """[rows]; those that are not padding."""
    order: NDArray[np.int32]
    """[p, rows]; the same sorted by each column."""
    level: NDArray[np.int32]
    """[p, n]; rank of a row's value among the distinct values of its column."""
    n_levels: NDArray[np.int64]
    """[p]"""
    value: NDArray[np.float64]
    """[p, levels]"""
    cut: NDArray[np.float64]
    """[p, levels]; midway to the next value: the threshold where the prior is over values."""
    label: NDArray[np.int32]
    """[n]; class, 0 for regression."""
    y: NDArray[np.float64]
    """[n]; target less the prior mean of a leaf; [0] for classification."""


class ScanModel(NamedTuple):
    """What scores are made of."""

    data: ScanData
    prior: TreePrior
    kind: int
    """Prior of the rules: UNIT, GAP or UNIFORM."""
    leaf: int
    """CLASSES, KNOWN or OWN."""
    class_prior: NDArray[np.float64]
    """[K]; [0] for regression."""
    mean_variance: float
    """KNOWN: prior variance of a leaf's mean."""
    worth: float
    """OWN: rows that the prior of a leaf's mean counts for."""
    shape: float
    rate: float
    h: NDArray[np.float64]
    """[p]; the model's own array."""
    power: NDArray[np.float64]
    """[1]; the model's own array."""


class ScanWork(NamedTuple):
    """Scratch of one chain."""

    rows: NDArray[np.int32]
    """[rows]; of the node."""
    n_rows: NDArray[np.int64]
    """[1]"""
    member: NDArray[np.int32]
    """[n]; 1 for rows of the node, while it is scanned; all 0 else."""
    left: NDArray[np.int32]
    """[n]; the leaf a row goes to when it goes left; leaves of the left side are numbered first."""
    right: NDArray[np.int32]
    leaf_id: NDArray[np.int64]
    """[capacity]"""
    path: NDArray[np.int64]
    """[max_leaves]"""
    n_side: NDArray[np.int64]
    """[2]; leaves of the left and the right side."""
    count: NDArray[np.int64]
    """[2, max_leaves + 1, K]; fifths of rows: as the sweep goes, and with all rows on the right."""
    total: NDArray[np.int64]
    """[2, max_leaves + 1]"""
    sums: NDArray[np.float64]
    """[2, max_leaves + 1, 2]; regression: sums of y and of its squares."""
    score: NDArray[np.float64]
    """[max_leaves + 1]; regression: of each leaf."""
    start: NDArray[np.float64]
    """[1]; score with all rows on the right."""
    group_x: NDArray[np.float64]
    """[rows]; rows that move together, in the order of the column."""
    group_cut: NDArray[np.float64]
    group_place: NDArray[np.int32]
    """[rows, 4]; left leaf, right leaf, class, rows"""
    group_sums: NDArray[np.float64]
    """[rows, 2]"""
    histogram: NDArray[np.int32]
    """[rows or more]"""
    histogram_sums: NDArray[np.float64]
    """[rows, 2] for regression"""
    low: NDArray[np.float64]
    """[cells]; a cell is [low, high)."""
    high: NDArray[np.float64]
    weight: NDArray[np.float64]
    threshold: NDArray[np.float64]
    """[cells]; where the prior is over values."""
    pointer: NDArray[np.int64]
    """[5]"""
    log_total: NDArray[np.float64]
    """[p]; log of the weight of a column."""
    share: NDArray[np.float64]
    """[p]; then the probability of drawing it."""
    log_count: NDArray[np.float64]
    """[K, 5 rows + 1]; log Gamma(c + alpha) / Gamma(alpha), or regression's tables."""
    log_size: NDArray[np.float64]
    """[5 rows + 1]"""
    sigma: NDArray[np.float64]
    """[1]; that regression's tables are for."""
    feature: NDArray[np.int64]
    """[1]; the rule drawn last, as are the next two."""
    cutpoint: NDArray[np.float64]
    """[1]"""
    weights: NDArray[np.float64]
    """[p] for HMC-DFI, [0] else."""


def make_scan_data(
    columns: NDArray[np.float64],
    rows: NDArray[np.int64],
    label: NDArray[np.int64],
    y: NDArray[np.float64],
) -> ScanData:
    p, n = columns.shape
    order = np.empty((p, len(rows)), np.int32)
    level = np.zeros((p, n), np.int32)
    values = []
    for f in range(p):
        order[f] = rows[np.argsort(columns[f, rows], kind="stable")]
        distinct, inverse = np.unique(columns[f, rows], return_inverse=True)
        level[f, rows] = inverse
        values.append(distinct)
    n_levels = np.array([len(v) for v in values], np.int64)
    value = np.zeros((p, n_levels.max()))
    cut = np.zeros_like(value)
    for f, distinct in enumerate(values):
        above = np.append(distinct[1:], np.inf)
        middle = distinct + 0.5 * (above - distinct)
        value[f, : len(distinct)] = distinct
        cut[f, : len(distinct)] = np.where(middle < above, middle, distinct)
    return ScanData(
        columns,
        rows.astype(np.int32),
        order,
        level,
        n_levels,
        value,
        cut,
        label.astype(np.int32),
        y,
    )


def make_scan_work(model: ScanModel, max_leaves: int, n_weights: int) -> ScanWork:
    data = model.data
    p, n = data.columns.shape
    rows = len(data.rows)
    classes = len(model.class_prior)
    tabled = rows if rows <= TABLE_ROWS else 0
    cells = FIFTHS * (rows + 1) if model.kind == UNIT else rows + 1
    work = ScanWork(
        rows=np.zeros(rows, np.int32),
        n_rows=np.zeros(1, np.int64),
        member=np.zeros(n, np.int32),
        left=np.zeros(n, np.int32),
        right=np.zeros(n, np.int32),
        leaf_id=np.zeros(2 * max_leaves + 1, np.int64),
        path=np.zeros(max_leaves + 1, np.int64),
        n_side=np.zeros(2, np.int64),
        count=np.zeros((2, max_leaves + 2, max(classes, 1)), np.int64),
        total=np.zeros((2, max_leaves + 2), np.int64),
        sums=np.zeros((2, max_leaves + 2, 2)),
        score=np.zeros(max_leaves + 2),
        start=np.zeros(1),
        group_x=np.zeros(rows),
        group_cut=np.zeros(rows),
        group_place=np.zeros((rows, 4), np.int32),
        group_sums=np.zeros((rows if classes == 0 else 0, 2)),
        histogram=np.zeros(max(rows, BINS + 1), np.int32),
        histogram_sums=np.zeros((rows if classes == 0 else 0, 2)),
        low=np.zeros(cells),
        high=np.zeros(cells),
        weight=np.zeros(cells),
        threshold=np.zeros(cells),
        pointer=np.zeros(FIFTHS, np.int64),
        log_total=np.zeros(p),
        share=np.zeros(p),
        log_count=np.zeros((max(classes, 1), FIFTHS * tabled + 1)),
        log_size=np.zeros(FIFTHS * tabled + 1),
        sigma=np.full(1, np.nan),
        feature=np.zeros(1, np.int64),
        cutpoint=np.zeros(1),
        weights=np.zeros(n_weights),
    )
    if classes:
        fill_class_tables(model, work)
    elif model.leaf == OWN:
        fill_own_tables(model, work)
    return work


# ------------------------------------------------------------------ scores of leaves


@inlined
def log_gamma_ratio(x, a):
    """log Gamma(x + a) / Gamma(a)"""
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
        count = work.count[0]
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


# ------------------------------------------------------------------ rows and sides


@inlined
def goes_right(data, tree, node, row):
    p = tree.weights.shape[1]
    if p == 0:
        return data.columns[tree.feature[node], row] > tree.threshold[node]
    x = 0.0
    for f in range(p):
        x += tree.weights[node, f] * data.columns[f, row]
    return x > tree.threshold[node]


@kernel
def find_rows(model, work, tree, node):
    """The rows that reach a node, as if splits were hard."""
    never_inline()
    data = model.data
    rows = work.rows
    n = data.rows.shape[0]
    for k in range(n):
        rows[k] = data.rows[k]
    length = path_to(tree, node, work.path)
    for d in range(length):
        at = work.path[d]
        child = work.path[d + 1] if d + 1 < length else node
        to_right = child != at + 1
        kept = 0
        for k in range(n):
            row = rows[k]
            rows[kept] = row
            kept += 1 if goes_right(data, tree, at, row) == to_right else 0
        n = kept
    work.n_rows[0] = n


@inlined
def number_leaves(work, tree, root):
    """Number the leaves of a subtree; returns how many. A new leaf (-1) is one."""
    if root < 0:
        return 1
    count = 0
    for i in range(root, root + tree.size[root]):
        if tree.size[i] == 1:
            work.leaf_id[i] = count
            count += 1
    return count


@inlined
def leaf_of(model, work, tree, root, row):
    if root < 0:
        return 0
    i = root
    while tree.size[i] > 1:
        i = i + 1 + tree.size[i + 1] if goes_right(model.data, tree, i, row) else i + 1
    return work.leaf_id[i]


@kernel
def set_sides(model, work, tree, left, right):
    """Where each row of the node goes on either side, and sums with all rows on the right.

    ``left`` and ``right`` are roots of subtrees of ``tree``, or -1 for a new leaf.
    """
    never_inline()
    data = model.data
    n_left = number_leaves(work, tree, left)
    n_right = number_leaves(work, tree, right)
    work.n_side[0], work.n_side[1] = n_left, n_right
    classes = work.count.shape[2]
    for leaf in range(n_left + n_right):
        work.total[1, leaf] = 0
        for m in range(classes):
            work.count[1, leaf, m] = 0
        work.sums[1, leaf, 0] = 0.0
        work.sums[1, leaf, 1] = 0.0
    for k in range(work.n_rows[0]):
        row = work.rows[k]
        to = n_left + leaf_of(model, work, tree, right, row)
        work.left[row] = leaf_of(model, work, tree, left, row)
        work.right[row] = to
        work.total[1, to] += FIFTHS
        if model.leaf == CLASSES:
            work.count[1, to, data.label[row]] += FIFTHS
        else:
            work.sums[1, to, 0] += data.y[row]
            work.sums[1, to, 1] += data.y[row] * data.y[row]
    work.start[0] = all_right(model, work)


@inlined
def all_right(model, work):
    """Put all rows on the right; returns the score of that."""
    score = 0.0
    for leaf in range(work.n_side[0] + work.n_side[1]):
        work.total[0, leaf] = work.total[1, leaf]
        if model.leaf == CLASSES:
            for m in range(work.count.shape[2]):
                c = work.count[1, leaf, m]
                work.count[0, leaf, m] = c
                score += log_class_part(model, work, m, c)
            score -= log_size_part(model, work, work.total[1, leaf])
        else:
            work.sums[0, leaf, 0] = work.sums[1, leaf, 0]
            work.sums[0, leaf, 1] = work.sums[1, leaf, 1]
            work.score[leaf] = leaf_score(model, work, leaf)
            score += work.score[leaf]
    return score


@inlined
def mark_rows(work, mark):
    for k in range(work.n_rows[0]):
        work.member[work.rows[k]] = mark


# ------------------------------------------------------------------ groups in the order of a column


@inlined
def put_place(work, g, left, right, label, rows):
    work.group_place[g, 0] = left
    work.group_place[g, 1] = right
    work.group_place[g, 2] = label
    work.group_place[g, 3] = rows


@inlined
def groups_by_row(model, work, f):
    """Every row its own group, picked from the sorted column."""
    data = model.data
    order = data.order[f]
    g = 0
    for k in range(order.shape[0]):
        row = order[k]
        if work.member[row] == 0:
            continue
        cut = data.cut[f, data.level[f, row]] if model.kind == UNIFORM else 0.0
        label = data.label[row]
        put_place(work, g, work.left[row], work.right[row], label, 1)
        work.group_x[g] = data.columns[f, row]
        work.group_cut[g] = cut
        if model.leaf != CLASSES:
            work.group_sums[g, 0] = data.y[row]
            work.group_sums[g, 1] = data.y[row] * data.y[row]
        g += 1
    return g


@inlined
def count_into_bins(model, work, level, keys):
    """Histogram of (level, left leaf, right leaf, class) over the rows of the node."""
    data = model.data
    n_left, n_right = work.n_side[0], work.n_side[1]
    classes = work.count.shape[2]
    for k in range(work.n_rows[0]):
        row = work.rows[k]
        pair = work.left[row] * n_right + work.right[row] - n_left
        key = level[row] * keys + pair * classes + data.label[row]
        work.histogram[key] += 1
        if model.leaf != CLASSES:
            work.histogram_sums[key, 0] += data.y[row]
            work.histogram_sums[key, 1] += data.y[row] * data.y[row]


@inlined
def groups_by_bin(model, work, f, keys):
    """Rows of one value, class and pair of leaves move together."""
    data = model.data
    bins = data.n_levels[f]
    for key in range(bins * keys):
        work.histogram[key] = 0
        if model.leaf != CLASSES:
            work.histogram_sums[key, 0] = 0.0
            work.histogram_sums[key, 1] = 0.0
    count_into_bins(model, work, data.level[f], keys)
    n_left, n_right = work.n_side[0], work.n_side[1]
    classes = work.count.shape[2]
    g = 0
    for b in range(bins):
        for key in range(keys):
            rows = work.histogram[b * keys + key]
            if rows == 0:
                continue
            pair = key // classes
            left, right = pair // n_right, n_left + pair % n_right
            label = key % classes
            put_place(work, g, left, right, label, rows)
            work.group_x[g] = data.value[f, b]
            work.group_cut[g] = data.cut[f, b]
            if model.leaf != CLASSES:
                work.group_sums[g, 0] = work.histogram_sums[b * keys + key, 0]
                work.group_sums[g, 1] = work.histogram_sums[b * keys + key, 1]
            g += 1
    return g


@inlined
def make_groups(model, work, f):
    keys = work.n_side[0] * work.n_side[1] * work.count.shape[2]
    if model.data.n_levels[f] * keys <= work.n_rows[0]:
        return groups_by_bin(model, work, f, keys)
    return groups_by_row(model, work, f)


# ------------------------------------------------------------------ cells of a column


@inlined
def is_soft(model, f):
    return model.h[f] * SOFT_GAP * model.data.n_levels[f] > 1.0


@inlined
def put_cell(work, c, low, high, score, threshold):
    work.low[c] = low
    work.high[c] = high
    work.weight[c] = score
    work.threshold[c] = threshold
    return c + 1


@inlined
def sweep_hard(model, work, n_groups):
    """Move the groups across one by one; a cell between neighbouring values."""
    score = work.start[0]
    everywhere = model.kind == UNIT
    before = 0.0
    cut = 0.0
    cells = 0
    g = 0
    while g < n_groups:
        x = work.group_x[g]
        if x > before and (everywhere or g > 0):
            cells = put_cell(work, cells, before, x, score, cut)
        while g < n_groups and work.group_x[g] == x:
            score += move_group(model, work, g, FIFTHS)
            cut = work.group_cut[g]
            g += 1
        before = x
    if everywhere and before < 1.0:
        cells = put_cell(work, cells, before, 1.0, score, 0.0)
    return cells


@inlined
def sweep_soft(model, work, n_groups, h):
    """The same with rows in fifths, and gaps in pieces: near a row it matters where the cut is."""
    score = work.start[0]
    for j in range(FIFTHS):
        work.pointer[j] = 0
    cells = 0
    before = 0.0
    g = 0
    while True:
        x = work.group_x[g] if g < n_groups else 1.0
        width = x - before
        if width > 0.0:
            pieces = min(int(math.ceil(width / (PIECE * h))), FIFTHS)
            edge = PIECE * h if pieces * PIECE * h < width else width / pieces
            for k in range(pieces):
                low = before + edge * k if k < 3 else x - edge * (pieces - k)
                high = x
                if k < pieces - 1:
                    high = before + edge * (k + 1) if k < 2 else x - edge * (pieces - k - 1)
                middle = 0.5 * (low + high)
                for j in range(FIFTHS):
                    beyond = middle + h * QUANTILES[j]
                    at = work.pointer[j]
                    while at < n_groups and work.group_x[at] < beyond:
                        score += move_group(model, work, at, 1)
                        at += 1
                    work.pointer[j] = at
                cells = put_cell(work, cells, low, high, score, 0.0)
        if g >= n_groups:
            return cells
        while g < n_groups and work.group_x[g] == x:
            g += 1
        before = x


@inlined
def weigh_cells(model, work, cells):
    """Scores to weights, in place; returns (top score, sum of weights, sum of widths)."""
    top = -np.inf
    for c in range(cells):
        top = max(top, work.weight[c])
    power = model.power[0]
    flat = model.prior.tau_a == 1.0 and model.prior.tau_b == 1.0
    total = 0.0
    widths = 0.0
    for c in range(cells):
        width = cell_width(model, work, c)
        weight = exp_clamped(power * (work.weight[c] - top)) * width
        if not flat and model.kind == UNIT:
            weight *= math.exp(log_threshold(model.prior, 0.5 * (work.low[c] + work.high[c])))
        work.weight[c] = weight
        total += weight
        widths += width
    return top, total, widths


@inlined
def cell_width(model, work, c):
    return 1.0 if model.kind == UNIFORM else work.high[c] - work.low[c]


@inlined
def find_cell(work, cells, threshold):
    """The cell that holds a threshold, or -1."""
    a, b = 0, cells
    while a < b:
        middle = (a + b) // 2
        if work.high[middle] > threshold:
            b = middle
        else:
            a = middle + 1
    if a == cells and cells > 0 and work.high[cells - 1] == threshold:
        a = cells - 1  # the end of the range
    if a == cells or work.low[a] > threshold:
        return -1
    return a


@inlined
def cell_density(model, work, c, total, widths):
    """Density of a draw that falls into a cell, given its column."""
    width = cell_width(model, work, c)
    share = (1.0 - PRIOR_SHARE) * work.weight[c] / total + PRIOR_SHARE * width / widths
    return share / width


@inlined
def draw_cell(model, work, cells, total, widths, rng):
    """A threshold, and its density."""
    by_width = rng.random() < PRIOR_SHARE
    u = rng.random() * (widths if by_width else total)
    c = -1
    for k in range(cells):
        part = cell_width(model, work, k) if by_width else work.weight[k]
        if part > 0.0:
            c = k
            u -= part
            if u < 0.0:
                break
    low, high = work.low[c], work.high[c]
    threshold = work.threshold[c]
    if model.kind != UNIFORM:
        threshold = low + rng.random() * (high - low)
        if not threshold < high:
            threshold = low
        threshold = min(max(threshold, 1e-15), 1.0 - 1e-15)
    return threshold, cell_density(model, work, c, total, widths)


@kernel
def sweep_column(model, work, f):
    """Cells of a column with their weights: (cells, top score, sum of weights, sum of widths)."""
    never_inline()
    groups = make_groups(model, work, f)
    all_right(model, work)
    if model.kind == UNIT and is_soft(model, f):
        cells = sweep_soft(model, work, groups, model.h[f])
    else:
        cells = sweep_hard(model, work, groups)
    top, total, widths = weigh_cells(model, work, cells)
    return cells, top, total, widths


@inlined
def groups_by_projection(model, work, weights):
    """Rows in the order of their projection, to the precision of a bin."""
    data = model.data
    n = work.n_rows[0]
    low, high = np.inf, -np.inf
    for k in range(n):
        row = work.rows[k]
        x = 0.0
        for f in range(weights.shape[0]):
            x += weights[f] * data.columns[f, row]
        work.group_cut[k] = x
        low = min(low, x)
        high = max(high, x)
    scale = BINS / (high - low) if high > low else 0.0
    for b in range(BINS + 1):
        work.histogram[b] = 0
    for k in range(n):
        work.histogram[min(int((work.group_cut[k] - low) * scale), BINS - 1) + 1] += 1
    for b in range(BINS):
        work.histogram[b + 1] += work.histogram[b]
    for k in range(n):
        row = work.rows[k]
        b = min(int((work.group_cut[k] - low) * scale), BINS - 1)
        g = work.histogram[b]
        work.histogram[b] = g + 1
        x = min(max(low + (b + 0.5) * (high - low) / BINS, 0.0), 1.0)
        put_place(work, g, work.left[row], work.right[row], data.label[row], 1)
        work.group_x[g] = x
        if model.leaf != CLASSES:
            work.group_sums[g, 0] = data.y[row]
            work.group_sums[g, 1] = data.y[row] * data.y[row]
    return n


@kernel
def sweep_projection(model, work, weights):
    """The same for the projection on weights (HMC-DFI)."""
    never_inline()
    groups = groups_by_projection(model, work, weights)
    all_right(model, work)
    h = model.h[0]
    cells = sweep_soft(model, work, groups, h) if h > 0.0 else sweep_hard(model, work, groups)
    _, total, widths = weigh_cells(model, work, cells)
    return cells, total, widths


# ------------------------------------------------------------------ a scan over all columns


@kernel
def scan(model, work, feature, threshold):
    """Weigh all columns: (log of all weight, log density of the given rule).

    ``feature`` -1 gives no rule. Rows and sides have been set. ``share`` is left to draw from;
    minus infinity for all weight means that the node has no rule at all.
    """
    never_inline()
    p = model.data.columns.shape[0]
    prior = model.prior
    mark_rows(work, 1)
    density = 0.0
    top_total = -np.inf
    available = 0.0
    for f in range(p):
        cells, top, total, widths = sweep_column(model, work, f)
        if cells == 0:
            work.log_total[f] = -np.inf
            continue
        # the prior of the rules gives a column mass 1, however its cells are spread
        work.log_total[f] = (
            prior.log_feature[f] + model.power[0] * top + math.log(total) - math.log(widths)
        )
        available += math.exp(prior.log_feature[f])
        top_total = max(top_total, work.log_total[f])
        if f == feature:
            c = find_cell(work, cells, threshold)
            if c >= 0:
                density = cell_density(model, work, c, total, widths)
    mark_rows(work, 0)
    if top_total == -np.inf:
        return -np.inf, -np.inf
    everything = 0.0
    for f in range(p):
        work.share[f] = math.exp(work.log_total[f] - top_total)
        everything += work.share[f]
    for f in range(p):
        if work.log_total[f] > -np.inf:
            by_prior = math.exp(prior.log_feature[f]) / available
            by_score = work.share[f] / everything
            work.share[f] = (1.0 - PRIOR_SHARE) * by_score + PRIOR_SHARE * by_prior
    log_density = -np.inf
    if density > 0.0:
        log_density = math.log(density) + math.log(work.share[feature])
    return top_total + math.log(everything) - math.log(available), log_density


@kernel
def draw_from_scan(model, work, rng):
    """A rule from the last scan: (feature, threshold, log density)."""
    never_inline()
    u = rng.random()
    feature = -1
    for f in range(work.share.shape[0]):
        if work.share[f] > 0.0:
            feature = f
            u -= work.share[f]
            if u < 0.0:
                break
    threshold, log_density = draw_threshold(model, work, feature, rng)
    return feature, threshold, log_density + math.log(work.share[feature])


@kernel
def draw_threshold(model, work, feature, rng):
    """A threshold given the column: (threshold, log density), which is minus infinity if none."""
    mark_rows(work, 1)
    cells, _, total, widths = sweep_column(model, work, feature)
    mark_rows(work, 0)
    if cells == 0:
        return 0.0, -np.inf
    threshold, density = draw_cell(model, work, cells, total, widths, rng)
    return threshold, math.log(density)


@kernel
def log_threshold_density(model, work, feature, threshold):
    """Log density with which ``draw_threshold`` gives a threshold."""
    mark_rows(work, 1)
    cells, _, total, widths = sweep_column(model, work, feature)
    mark_rows(work, 0)
    c = find_cell(work, cells, threshold)
    return math.log(cell_density(model, work, c, total, widths)) if c >= 0 else -np.inf
