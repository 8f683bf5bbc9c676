"""The informed moves one by one: their ratios, their choices, and the densities of their rules.

Ratios against ``reference/proposals.py``, which tries all ways from one tree to another and scores
every cut without short cuts. Exactly one way may lead there, and exactly one back.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from hamiltree.core.moves.propose import ENTRIES, NAMES, move_of
from hamiltree.core.scan import data as scan_data
from hamiltree.core.scan.groups import groups_by_column
from hamiltree.core.scan.proposals import MODE_COLUMNS, MODE_PRIOR, prepare
from hamiltree.core.scan.rows import MARKED, NEW_LEAF, UNMARKED, mark_rows
from hamiltree.core.scan.sweep import sweep_any_groups, sweep_hard_groups
from hamiltree.core.tree.nodes import (
    DELETABLE,
    PRUNABLE,
    TRANSPOSABLE,
    count_kind,
    n_leaves,
    right_child,
)
from hamiltree.samplers.common import KNOWN_MOVES

from ...reference.model import Leaf, Prior, Split
from ...reference.proposals import Proposals, at, paths
from ...reference.scan import LEAN, Scan
from ...support.core_trees import MAX_LEAVES
from ...support.informed_battery import BACK, PRIOR, Bench, copy_of, pair

LEVEL = 1e-4
METHODS = ["hmc-df", "hmc-dfi"]
# all columns scanned as soft; the one of few values, twice, the second time in regression, too,
# whose wider splits have scans that see leaf means; none, but projections are; all hard
SOFTNESS = [0.2, 0.1, 0.018, 0.002, 0.0]


@pytest.mark.parametrize("n_classes", [3, 0])
@pytest.mark.parametrize("h", SOFTNESS)
@pytest.mark.parametrize("method", METHODS)
def test_ratio(method, h, n_classes, rng):
    bench = Bench.build(method, h, n_classes, rng)
    check_ratios(bench, n_trees=30)


@pytest.mark.parametrize("n_classes", [3, 0])
def test_ratio_without_tables(n_classes, rng, monkeypatch):
    """Large data have no tables of scores."""
    monkeypatch.setattr(scan_data, "TABLE_ROWS", 0)
    bench = Bench.build("hmc-df", 0.2, n_classes, rng)
    tables = bench.compiled.tables
    assert tables.by_rows.shape[1] == tables.by_fifths.shape[1] == 1
    check_ratios(bench, n_trees=10)


@pytest.mark.parametrize("n_classes", [3, 0])
def test_hard_cuts_have_the_scores_of_the_loop_for_all_cuts(n_classes, rng):
    """To the bit: cells, scores and thresholds, for subtrees on both sides and for new leaves."""
    bench = Bench.build("hmc-df", 0.0, n_classes, rng)
    scan, n_cells = bench.compiled, 0
    for _ in range(30):
        tree = bench.tree(n_splits=4)
        bench.use(tree)
        for left, right in ((1, right_child(tree, 0)), (NEW_LEAF, NEW_LEAF)):
            prepare(bench.proposals.scanner, tree, 0, left, right)
            for f in range(len(scan.data.n_levels)):
                mark_rows(scan, MARKED)
                groups = groups_by_column(scan, f)
                mark_rows(scan, UNMARKED)
                found = []
                for sweep in (sweep_hard_groups, sweep_any_groups):
                    hard = () if sweep is sweep_hard_groups else (0.0, True)
                    cells = sweep(scan, 0, groups, *hard, 2, False)
                    of = scan.cells
                    arrays = (of.low, of.high, of.weight, of.threshold)
                    found.append(np.stack([a[2:cells].copy() for a in arrays]))
                np.testing.assert_array_equal(*found)
                n_cells += found[0].shape[1]
    assert n_cells > 100


def test_moves_of_a_sweep(rng):
    """An entry stands for a move and its reverse alike, and rare moves are equally rare."""
    assert set(ENTRIES) == set(KNOWN_MOVES)
    n = 6000
    expected = {"grow": ("grow", "prune"), "insert": ("insert", "delete")}
    for name, entry in ENTRIES.items():
        found = Counter(move_of(entry, rng) for _ in range(n))
        if name == "rare":
            counts = [found[NAMES.index(m)] for m in ("regrow", "transpose", "relocate")]
            counts.append(found[-1] / 3)
        else:
            counts = [found[NAMES.index(m)] for m in expected.get(name, (name,))]
        total = n if name != "rare" else sum(counts)
        assert sum(counts) == pytest.approx(total)
        assert stats.chisquare(counts).pvalue > LEVEL if len(counts) > 1 else counts == [n]


def check_ratios(bench, n_trees):
    moved: Counter[str] = Counter()
    for k in range(n_trees):
        tree = bench.tree(n_splits=k % 7)
        for move in NAMES:
            mode = MODE_COLUMNS if bench.rng.random() < 0.5 else MODE_PRIOR
            new, log_q = bench.propose(move, tree, mode)
            if log_q == -np.inf:
                continue
            before, after = pair(tree, new)
            if before == after:  # a leaf was regrown to a leaf
                assert move == "regrow"
                assert log_q == pytest.approx(0.0, abs=1e-12)
                continue
            proposals = Proposals(bench.scan(tree), mode == MODE_COLUMNS)
            (forth,) = proposals.ways(move, before, after)
            (back,) = proposals.ways(BACK.get(move, move), after, before)
            expected = back.log_density - forth.log_density
            assert log_q == pytest.approx(expected, abs=bench.rounding), (move, k)
            moved[move] += 1
    assert set(moved) == set(NAMES), moved


# ------------------------------------------------------------------ choices


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("move", [m for m in NAMES if m != "regrow"])
def test_choices_have_their_probabilities(move, method, rng):
    """Nodes, sides and coins of a move on one tree, as often as the reference says."""
    bench = Bench.build(method, 0.0, 3, rng)
    tree = bench.tree(6)
    while not has_every_move(tree):
        tree = bench.tree(6)
    proposals = Proposals(None)
    seen: Counter[tuple] = Counter()
    probability = {}
    for _ in range(600):
        new, log_q = bench.propose(move, tree, MODE_PRIOR)
        assert log_q > -np.inf
        (way,) = proposals.ways(move, *pair(tree, new))
        seen[way.label] += 1
        probability[way.label] = np.exp(way.log_choice)
    rest = 1 - sum(probability.values())
    assert rest > -1e-12
    observed = list(seen.values())
    expected = [600 * probability[label] for label in seen]
    if rest > 1e-9:  # labels that did not come up
        observed, expected = [*observed, 0], [*expected, 600 * rest]
    assert stats.chisquare(observed, expected).pvalue > LEVEL


def has_every_move(tree) -> bool:
    """With two candidates at least, but for transpose, which has its coins."""
    return (
        count_kind(tree, TRANSPOSABLE) >= 1
        and count_kind(tree, DELETABLE) >= 2
        and count_kind(tree, PRUNABLE) >= 2
    )


@pytest.mark.parametrize("method", METHODS)
def test_regrow_draws_what_its_density_says(method, rng):
    """From a lone root: the mean of 1 / q over trees of a shape is the volume of their rules.

    The prior would rather stop, the data would rather split.
    """
    bench = Bench.build(method, 0.1, 2, rng, replace(PRIOR, alpha_split=0.3), separable=True)
    root = bench.tree(0)
    proposals = Proposals(bench.scan(root))
    n = 500
    volume = 3.0 if method == "hmc-df" else 0.5  # of one rule: 3 columns, or the simplex
    inverse: dict[int, list[float]] = {1: [], 2: [], 3: []}
    for _ in range(n):
        new, _ = bench.propose("regrow", root, MODE_COLUMNS)
        if n_leaves(new) in inverse:
            (way,) = proposals.ways("regrow", *pair(root, new))
            inverse[n_leaves(new)].append(np.exp(-way.log_rules))
    for leaves, shapes in {1: 1, 2: 1, 3: 2}.items():
        x = np.zeros(n)
        x[: len(inverse[leaves])] = inverse[leaves]
        z = (x.mean() - shapes * volume ** (leaves - 1)) / (x.std() / np.sqrt(n))
        assert abs(z) < stats.norm.isf(LEVEL / 6), (leaves, z)


def test_limits_on_leaves(rng):
    bench = Bench.build("hmc-df", 0.1, 3, rng, replace(PRIOR, min_leaves=3))
    largest = bench.tree(MAX_LEAVES - 1)
    smallest = bench.tree(2)
    for move in ("grow", "insert"):
        assert bench.propose(move, largest, MODE_PRIOR)[1] == -np.inf
    for move in ("prune", "delete"):
        assert bench.propose(move, smallest, MODE_PRIOR)[1] == -np.inf
    for tree in (largest, smallest):
        for _ in range(30):
            new, log_q = bench.propose("regrow", tree, MODE_COLUMNS)
            assert log_q == -np.inf or 3 <= n_leaves(new) <= MAX_LEAVES


def test_a_lone_root_has_no_other_move(rng):
    bench = Bench.build("hmc-df", 0.1, 3, rng)
    for move in NAMES:
        _, log_q = bench.propose(move, bench.tree(0), MODE_PRIOR)
        assert (log_q > -np.inf) == (move in ("grow", "regrow"))


# ------------------------------------------------------------------ rules


def test_density_by_hand():
    """Two rows, two classes, one column: between them 1/4, outside 1/6, each half of the range."""
    scan = Scan(np.array([[0.25], [0.75]]), np.array([0, 1]), 2, 0.0, Prior())
    share = 0.5 / 4 / (0.5 / 4 + 0.5 / 6)
    cells = scan.column(0, np.ones(2, bool), Leaf(), Leaf())
    assert np.exp(cells.log_density(0.5)) == pytest.approx(0.95 * share / 0.5 + 0.05)
    assert np.exp(cells.log_density(0.1)) == pytest.approx(0.95 * (1 - share) / 0.5 + 0.05)


@pytest.mark.parametrize("mode", [MODE_PRIOR, MODE_COLUMNS], ids=["prior", "columns"])
@pytest.mark.parametrize("n_classes", [3, 0])
@pytest.mark.parametrize("h", [0.2, 0.0])
@pytest.mark.parametrize("method", METHODS)
def test_a_drawn_rule_has_the_density_found_on_the_way_back(method, h, n_classes, mode, rng):
    """To the last bit: both ways are one piece of arithmetic."""
    bench = Bench.build(method, h, n_classes, rng)
    for k in range(40):
        tree = bench.tree(1 + k % 5)
        node = 0 if k % 2 else int(rng.choice([i for i in range(9) if tree.size[i] > 1] or [0]))
        kept = (node + 1, right_child(tree, node)) if k % 3 else (-1, -1)
        bench.weigh(tree, node, *kept, mode, rule_of=-1)
        new = copy_of(tree)
        forth = bench.draw(new, node, mode)
        _, back = bench.weigh(new, node, *kept, mode, rule_of=node)
        assert back == forth


@pytest.mark.parametrize("n_classes", [3, 0])
@pytest.mark.parametrize("h", SOFTNESS)
def test_densities_of_rules_add_up_to_one(h, n_classes, rng):
    bench = Bench.build("hmc-df", h, n_classes, rng)
    for n_splits in (0, 1, 3):
        tree = bench.tree(n_splits)
        node = int(rng.integers(tree.n_nodes[0]))
        inside = tree.size[node] > 1
        kept = (node + 1, right_child(tree, node)) if inside else (-1, -1)
        cells = cells_of(bench, tree, node, inside)
        total = 0.0
        probe = copy_of(tree)
        for f, column in enumerate(cells):
            for low, high in zip(column.low, column.high, strict=True):
                probe.feature[node], probe.threshold[node] = f, 0.5 * (low + high)
                _, log_density = bench.weigh(probe, node, *kept, MODE_PRIOR, rule_of=node)
                total += (high - low) * np.exp(log_density)
        assert total == pytest.approx(1.0, abs=bench.rounding)


def cells_of(bench, tree, node, inside):
    """The reference's cells of all columns of a node, with its sides kept or as new leaves."""
    reference, _ = pair(tree, tree)
    path = paths(reference)[node]
    below = at(reference, path)
    sides = (below.left, below.right) if inside and isinstance(below, Split) else (Leaf(), Leaf())
    scan = bench.scan(tree)
    cells, _, _ = scan.columns(scan.reaching(reference, path), *sides)
    return cells


@pytest.mark.parametrize("h", [0.2, 0.0])
@pytest.mark.parametrize("mode", [MODE_PRIOR, MODE_COLUMNS], ids=["prior", "columns"])
def test_densities_of_projected_thresholds_add_up_to_one(mode, h, rng):
    """HMC-DFI: summed over the threshold's cells, the density of the weights is left."""
    bench = Bench.build("hmc-dfi", h, 3, rng)
    tree = bench.tree(2)
    everyone = np.ones(len(bench.X), bool)
    for _ in range(4):
        tree.weights[0] = rng.dirichlet(np.ones(3))
        scan = bench.scan(tree)
        cells = scan.projection(tree.weights[0], everyone, Leaf(), Leaf())
        total = 0.0
        for low, high in zip(cells.low, cells.high, strict=True):
            tree.threshold[0] = 0.5 * (low + high)
            _, log_density = bench.weigh(tree, 0, -1, -1, mode, rule_of=0)
            total += (high - low) * np.exp(log_density)
        concentrations, share = weights_law(scan, everyone, mode)
        density = [stats.dirichlet.pdf(tree.weights[0], a) for a in concentrations]
        assert total == pytest.approx(share @ density, rel=1e-9)


def weights_law(scan, rows, mode):
    """Concentrations of the Dirichlets that weights are drawn from, and their shares."""
    prior = np.full((1, 3), PRIOR.weight)
    if mode == MODE_PRIOR:
        return prior, np.ones(1)
    return prior + LEAN * np.eye(3), scan.columns(rows, Leaf(), Leaf())[1]


@pytest.mark.parametrize("mode", [MODE_PRIOR, MODE_COLUMNS], ids=["prior", "columns"])
def test_weights_are_drawn_by_their_density(mode, rng):
    bench = Bench.build("hmc-dfi", 0.1, 3, rng)
    tree = bench.tree(1)
    rows = np.ones(len(bench.X), bool)
    concentrations, share = weights_law(bench.scan(tree), rows, mode)
    bench.weigh(tree, 0, -1, -1, mode, rule_of=-1)
    drawn = []
    for _ in range(1500):
        bench.draw(tree, 0, mode)
        drawn.append(tree.weights[0].copy())
    for f in range(3):
        marginal = [stats.beta(a[f], a.sum() - a[f]) for a in concentrations]
        quantile = share @ [law.cdf(np.array(drawn)[:, f]) for law in marginal]
        assert stats.kstest(quantile, "uniform").pvalue > LEVEL, f


@pytest.mark.parametrize("h", [0.2, 0.0])
def test_rules_are_drawn_by_their_density(h, rng):
    """Columns by their shares, and thresholds uniform under their distribution function.

    Classes that a column tells apart: the shares that ignore the data then matter.
    """
    bench = Bench.build("hmc-df", h, 2, rng, separable=True)
    tree = bench.tree(2)
    cells = cells_of(bench, tree, 0, inside=False)
    _, share, _ = bench.scan(tree).columns(np.ones(len(bench.X), bool), Leaf(), Leaf())
    below = []
    for column in cells:
        middle = 0.5 * (column.low + column.high)
        mass = [
            w * np.exp(column.log_density(t)) for w, t in zip(column.width, middle, strict=True)
        ]
        below.append(np.concatenate([[0.0], np.cumsum(mass)]))
    bench.weigh(tree, 0, -1, -1, MODE_PRIOR, rule_of=-1)
    drawn, quantile = [], []
    for _ in range(2000):
        bench.draw(tree, 0, MODE_PRIOR)
        f = int(tree.feature[0])
        edges = np.append(cells[f].low, 1.0)
        drawn.append(f)
        quantile.append(np.interp(tree.threshold[0], edges, below[f]))
    assert stats.chisquare(np.bincount(drawn, minlength=3), 2000 * share).pvalue > LEVEL
    assert stats.kstest(quantile, "uniform").pvalue > LEVEL
