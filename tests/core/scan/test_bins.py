"""Scans of large data, with columns in bins: densities beside the reference, and what is counted.

The rows are few and the bins fewer, so that a bin holds several rows. One column has three values,
and hence a bin for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import pytest

from hamiltree import BayesianTreeClassifier
from hamiltree.core.scan.bins import bin_columns
from hamiltree.core.scan.proposals import MODE_COLUMNS, MODE_PRIOR
from hamiltree.core.tree.kinds import MISSING, make_kinds, plain_kinds
from hamiltree.core.tree.nodes import right_child

from ...reference.model import TOYS
from ...statistical.test_informed_posterior import MOVES, assert_move_is_exact
from ...support.informed_battery import Bench, copy_of, make_binned
from ...support.turns import in_turns
from ..moves.test_informed import METHODS, SOFTNESS, cells_of, check_ratios

MAX_BINS = 4


@pytest.fixture(autouse=True)
def binned(monkeypatch):
    make_binned(monkeypatch, MAX_BINS)


@pytest.mark.parametrize("n_classes", [3, 0])
@pytest.mark.parametrize("h", SOFTNESS)
@pytest.mark.parametrize("method", METHODS)
def test_binned_ratio(method, h, n_classes, rng):
    bench = Bench.build(method, h, n_classes, rng)
    assert bench.max_bins == MAX_BINS
    check_ratios(bench, n_trees=20)


@pytest.mark.parametrize("mode", [MODE_PRIOR, MODE_COLUMNS], ids=["prior", "columns"])
@pytest.mark.parametrize("n_classes", [3, 0])
@pytest.mark.parametrize("method", METHODS)
def test_a_drawn_rule_has_the_density_found_on_the_way_back(method, n_classes, mode, rng):
    bench = Bench.build(method, 0.1, n_classes, rng)
    for k in range(20):
        tree = bench.tree(1 + k % 5)
        kept = (1, right_child(tree, 0)) if k % 2 else (-1, -1)
        bench.weigh(tree, 0, *kept, mode, rule_of=-1)
        new = copy_of(tree)
        forth = bench.draw(new, 0, mode)
        _, back = bench.weigh(new, 0, *kept, mode, rule_of=0)
        assert back == forth


@pytest.mark.parametrize("h", SOFTNESS)
def test_densities_of_binned_rules_add_up_to_one(h, rng):
    bench = Bench.build("hmc-df", h, 3, rng)
    tree = bench.tree(3)
    kept = (1, right_child(tree, 0))
    total = 0.0
    probe = copy_of(tree)
    for f, column in enumerate(cells_of(bench, tree, 0, inside=True)):
        for low, high in zip(column.low, column.high, strict=True):
            probe.feature[0], probe.threshold[0] = f, 0.5 * (low + high)
            _, log_density = bench.weigh(probe, 0, *kept, MODE_PRIOR, rule_of=0)
            total += (high - low) * np.exp(log_density)
    assert total == pytest.approx(1.0, abs=1e-9)


def test_bins_of_a_column(rng):
    """About equal in rows, ends are data, and a bin of its own for each of few values."""
    many, few = rng.random(1000), rng.choice([0.1, 0.5, 0.8], size=1000)
    columns = np.stack([many, few])
    code, grid, n_bins, n_levels = bin_columns(columns, np.arange(1000), plain_kinds(2))
    assert n_bins.tolist() == [4, 3]
    assert n_levels.tolist() == [1000, 3]
    assert np.bincount(code[0]).tolist() == [250] * 4
    assert np.isin(grid[0], many).all()
    assert grid[0, 3] == many.max()
    np.testing.assert_array_equal(grid[1, code[1]], few)
    assert (many <= grid[0, code[0]]).all()
    assert (many[code[0] > 0] > grid[0, code[0][code[0] > 0] - 1]).all()


def test_bins_of_special_columns(rng):
    """Missing cells are behind the last bin, of which there is one fewer; levels are bins."""
    many, few = rng.random(1000), rng.choice([0.1, 0.8], size=1000)
    levels = rng.integers(0, 6, 1000).astype(float)
    gone = rng.random(1000) < 0.2
    many[gone] = few[gone] = MISSING
    kinds = make_kinds([0, 0, 6], [True, True, False])
    columns = np.stack([many, few, levels])
    code, grid, n_bins, n_levels = bin_columns(columns, np.arange(1000), kinds)
    assert n_bins.tolist() == [3, 2, 6]
    assert n_levels.tolist() == [np.count_nonzero(~gone), 2, 6]
    assert (code[0, gone] == 3).all()
    assert (code[1, gone] == 2).all()
    assert (code[2] == levels).all()
    there = ~gone
    assert (many[there] <= grid[0, code[0, there]]).all()
    np.testing.assert_array_equal(grid[1, code[1, there]], few[there])


# ------------------------------------------------------------------ whole chains


@pytest.mark.parametrize(
    ("toy_name", "method", "h", "move"),
    in_turns([(name, "hmc-df", h) for name in TOYS for h in (0.1, 0.0)], MOVES, period=12),
)
def test_posterior(toy_name, method, h, move, seed, monkeypatch):
    """As in ``test_informed_posterior``, with two bins per column."""
    make_binned(monkeypatch, 2)
    assert_move_is_exact(toy_name, method, h, move, seed)


@pytest.mark.parametrize("special", [False, True])
def test_draws_do_not_depend_on_the_threads(special, rng, monkeypatch):
    """``special``: a column with missing cells, and a category."""
    monkeypatch.undo()  # so many rows are binned as it is
    X = rng.random((9_000, 3))
    y = ((X[:, 0] > 0.4) ^ (rng.random(9_000) < 0.2)).astype(int)
    table: Any = X
    if special:
        X[rng.random(9_000) < 0.1, 0] = np.nan
        site = np.array(["North", "West", "East"])[(3 * X[:, 2]).astype(int)]
        table = pandas.DataFrame({"age": X[:, 0], "dose": X[:, 1], "site": site})
    common = {"n_chains": 2, "n_warmup": 10, "n_draws": 10, "random_state": 1, "progress": False}
    one, two = (
        BayesianTreeClassifier(n_jobs=n_jobs, **common).fit(table, y).posterior_.draws
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.threshold, two.threshold)
    np.testing.assert_array_equal(one.leaf, two.leaf)
    assert one.n_leaves.max() > 1
