"""CGM's informed moves: each beside the moves that draw from the prior, and all of them alone.

Those are known to be right (``test_cgm``); an iteration makes a few of them and several of the one
informed move, so that a wrong ratio of it would pull the draws away. Two judges: the exact
posterior by enumeration; and the prior of larger trees, with the likelihood switched off in the
target but not in the scans, so that proposals are as lopsided as ever.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from hamiltree import BayesianTreeClassifier
from hamiltree.core.hard.informed_sweep import attempt_informed, changed_subtree
from hamiltree.core.hard.moves import log_marginal
from hamiltree.core.hard.record import start_tree
from hamiltree.core.moves.propose import NAMES
from hamiltree.core.scan.proposals import MODE_COLUMNS, NO_RULE, draw_weighed, weigh
from hamiltree.core.scan.rows import NEW_LEAF
from hamiltree.core.tree.nodes import empty_tree, grow, relink
from hamiltree.methods import METHODS
from hamiltree.samplers import cgm
from hamiltree.samplers.common import INFORMED_MOVES, KNOWN_MOVES, Problem

from ..reference.enumerate_hard import HardPrior, Toy
from ..reference.stats import geweke
from ..support.configuring import configured, parameters
from ..support.turns import in_turns
from .hard_battery import (
    LEAVES,
    MORE_ROWS,
    assert_exact,
    assert_known,
    configuration_of,
    make_toy,
    prior_functionals,
    run_hard,
)

LEVEL = 1e-5  # of a false alarm in each test of each quantity
KINDS = ("uniform", "gap", "uniform01")
MOVES = tuple(name for name in KNOWN_MOVES if name != "rare")
BOTH_WAYS = {"grow": ("grow", "prune"), "insert": ("insert", "delete")}
FEW = {"proposals": 3, "n_draws": 8_000}


def several(move):
    """Of one move per iteration; regrow costs as much as several others."""
    return (move,) * (2 if move == "regrow" else 5)


def assert_used(info, move):
    """Often enough accepted for a wrong ratio to matter."""
    for name in BOTH_WAYS.get(move, (move,)):
        accepted, _ = info.acceptance["sampling"][name]
        assert accepted.sum() >= 200, (name, accepted)


def toy_of(kind, leaves, **prior):
    """As in ``test_cgm``: with empty leaves allowed there are too many trees of 4 leaves."""
    return make_toy(kind, leaves, max_leaves=3 if kind == "uniform01" else 4, **prior)


# ------------------------------------------------------------------ one move at a time


@pytest.mark.parametrize(
    ("kind", "leaves", "move"), in_turns(list(product(KINDS, LEAVES)), MOVES, period=9)
)
def test_posterior(kind, leaves, move, seed):
    if (kind, move) == ("uniform01", "transpose"):
        pytest.skip("needs 4 leaves, see toy_of; the prior below has them")
    toy = toy_of(kind, leaves)
    draws, info = run_hard(toy, seed=seed, informed_moves=several(move), **FEW)
    assert_used(info, move)
    assert_exact(toy, draws, level=LEVEL)


@pytest.fixture
def scans_see_the_data(monkeypatch):
    """Scans at full power, whatever the power of the likelihood in the target."""
    made = cgm.scan_model_of
    monkeypatch.setattr(cgm, "scan_model_of", lambda model: made(model)._replace(power=np.ones(1)))


@pytest.mark.usefixtures("scans_see_the_data")
@pytest.mark.parametrize(
    ("kind", "leaves", "move"),
    in_turns(list(product(KINDS, ("classes", "regression"))), MOVES, period=6),
)
def test_prior_of_larger_trees(kind, leaves, move, rng, seed):
    """Up to 9 leaves: shapes, features and thresholds."""
    prior = HardPrior(kind, alpha_split=0.9, beta_split=0.8, max_leaves=9)
    y = rng.integers(0, 3, 16) if leaves == "classes" else rng.normal(size=16)
    toy = Toy(MORE_ROWS, y, prior, LEAVES[leaves])
    draws, info = run_hard(
        toy, seed=seed, likelihood_power=0.0, informed_moves=several(move), **FEW
    )
    assert_used(info, move)
    fresh, chains = prior_functionals(rng, toy, draws, n=4_000)
    result = geweke(fresh, chains, level=LEVEL)
    assert result.ok, result


# ------------------------------------------------------------------ all of them, and nothing else


@pytest.mark.parametrize(
    ("kind", "leaves", "moves"), in_turns(list(product(KINDS, LEAVES)), ["informed"], period=4)
)
def test_posterior_by_informed_moves_alone(kind, leaves, moves, seed):
    toy = toy_of(kind, leaves)
    draws, info = run_hard(toy, seed=seed, moves=moves, n_draws=10_000)
    assert "prior grow" not in info.acceptance["sampling"]
    assert_exact(toy, draws, level=LEVEL)


@pytest.mark.usefixtures("scans_see_the_data")
@pytest.mark.parametrize("kind", KINDS)
def test_prior_by_informed_moves_alone(kind, seed):
    """The likelihood switched off but for the scans; nothing even, so that all of it matters."""
    tau = (2.0, 1.0) if kind == "uniform01" else (1.0, 1.0)  # the others have none
    toy = toy_of(kind, "regression", features=(2.0, 1.0), min_leaves=2, tau=tau)
    draws, _ = run_hard(toy, seed=seed, moves="informed", likelihood_power=0.0, n_draws=10_000)
    assert_exact(toy, draws, level=LEVEL, likelihood=False)


# ------------------------------------------------------------------ bookkeeping


@pytest.mark.parametrize("leaves", ["classes", "regression"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_chain_knows_its_tree(kind, leaves, rng):
    """What moves carry along equals what is computed from scratch, after each of many moves."""
    toy = toy_of(kind, leaves)
    toy = Toy(toy.X, toy.y, HardPrior(kind, max_leaves=8), toy.leaves)
    problem = Problem(np.ascontiguousarray(toy.X.T), toy.y, toy.n_classes)
    chain = cgm.build_cgm(problem, configuration_of(toy, moves="informed"), 0).start(rng)
    model, state = chain.model, chain.loop.state
    assert start_tree(model, state, rng)
    accepted = dict.fromkeys(NAMES, 0)
    for move in rng.integers(0, len(NAMES), 1500):
        name = NAMES[move]
        before = state.tree.feature.copy(), state.tree.threshold.copy(), state.tree.size.copy()
        changed = attempt_informed(model, state, chain.explorer, move, rng)
        accepted[name] += changed
        after = state.tree.feature, state.tree.threshold, state.tree.size
        same = all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
        assert changed != same, name
        assert_known(model, state)
    assert min(accepted.values()) >= 5, accepted


def tree_of(sizes, rules):
    tree = empty_tree(6, 0)
    tree.n_nodes[0] = len(sizes)
    tree.size[: len(sizes)] = sizes
    internal = np.flatnonzero(np.array(sizes) > 1)
    tree.feature[internal] = [f for f, _ in rules]
    tree.threshold[internal] = [t for _, t in rules]
    relink(tree)
    return tree


A, B, C, D = (0, 0.1), (1, 0.2), (2, 0.3), (3, 0.4)


@pytest.mark.parametrize(
    ("old", "new", "at"),
    [
        (([1], []), ([1], []), -1),
        (([5, 3, 1, 1, 1], [A, B]), ([5, 3, 1, 1, 1], [A, B]), -1),
        (([1], []), ([3, 1, 1], [A]), 0),
        (([3, 1, 1], [A]), ([5, 1, 3, 1, 1], [A, B]), 2),
        (([3, 1, 1], [A]), ([5, 3, 1, 1, 1], [A, B]), 1),
        (([5, 3, 1, 1, 1], [A, B]), ([5, 3, 1, 1, 1], [A, C]), 1),
        (([5, 3, 1, 1, 1], [A, B]), ([5, 3, 1, 1, 1], [C, B]), 0),
        # both children changed: their parent did
        (([7, 3, 1, 1, 3, 1, 1], [A, B, C]), ([7, 3, 1, 1, 3, 1, 1], [A, D, D]), 0),
        # equal rules below: what was pruned on the left could be taken for the right
        (([7, 3, 1, 1, 3, 1, 1], [A, B, B]), ([5, 1, 3, 1, 1], [A, B]), 1),
        (([7, 3, 1, 1, 3, 1, 1], [A, B, B]), ([5, 3, 1, 1, 1], [A, B]), 4),
        (([5, 3, 1, 1, 1], [A, A]), ([3, 1, 1], [A]), 1),
    ],
)
def test_the_changed_subtree(old, new, at):
    assert changed_subtree(tree_of(*old), tree_of(*new)) == at
    assert changed_subtree(tree_of(*new), tree_of(*old)) == at


def test_a_run_in_blocks_is_the_run_in_one_go(seed):
    toy = make_toy("gap", "regression")
    problem = Problem(np.ascontiguousarray(toy.X.T), toy.y, 0)
    pieces = []
    for blocks in ([1, 2, 100, 200], [303]):
        configuration = configuration_of(toy, moves="informed")
        chain = cgm.build_cgm(problem, configuration, 3).start(np.random.default_rng(seed))
        made = [piece for n in blocks for piece in chain.advance(n)]
        pieces.append(
            [np.concatenate([getattr(b, name) for b in made]) for name in made[0]._fields[1:]]
        )
        tried = {name: counts[1] for name, counts in chain.tally()["sampling"].items()}
        rare = sum(tried[name] for name in ("regrow", "transpose", "relocate"))
        assert sum(tried.values()) - rare == (len(INFORMED_MOVES) - 1) * 300
        assert 100 < rare < 200  # every other time
    for first, second in zip(*pieces, strict=True):
        np.testing.assert_array_equal(first, second)


def test_limits_on_leaves(seed):
    toy = make_toy("uniform", "classes", min_leaves=3, max_leaves=5)
    draws, _ = run_hard(toy, n_draws=1_000, seed=seed, moves="informed")
    assert set(np.unique(draws.n_leaves)) == {3, 4, 5}


def test_a_settled_tree_is_not_settled_again(rng):
    """Moves that give the tree itself are steps that stay."""
    toy = make_toy("uniform", "classes")
    problem = Problem(np.ascontiguousarray(toy.X.T), toy.y, toy.n_classes)
    chain = cgm.build_cgm(problem, configuration_of(toy, moves="informed"), 0).start(rng)
    state = chain.loop.state
    assert start_tree(chain.model, state, rng)
    assert state.tree.n_nodes[0] == 1
    for name in ("prune", "insert", "delete", "change", "transpose", "swap", "relocate", "rotate"):
        move = NAMES.index(name)
        assert not attempt_informed(chain.model, state, chain.explorer, move, rng)
    assert log_marginal(chain.model, state.tree, state.cells) == state.log_like[0]


# ------------------------------------------------------------------ who has them


def test_cgm_has_them_unless_told_otherwise(rng):
    X, y = rng.random((30, 2)), rng.integers(0, 2, 30)
    lengths = {"n_chains": 1, "n_warmup": 5, "n_draws": 5}
    fitted = BayesianTreeClassifier(method="cgm", **lengths).fit(X, y).posterior_
    assert fitted.configuration.method.moves == "informed"
    assert {"grow", "prune", "change", "rotate"} <= set(fitted.acceptance) <= set(NAMES)
    for options in ({"moves": "prior"}, {"preset": "paper"}):
        given = parameters(method="cgm", **options, **lengths)
        theirs = BayesianTreeClassifier(**given).fit(X, y).posterior_
        assert theirs.configuration.method.moves == "prior"
        assert set(theirs.acceptance) == set(cgm.MOVES)


@pytest.mark.parametrize("method", ["wu", "smc"])
def test_wu_and_smc_do_not_have_them(method):
    for options in ({"moves": "informed"}, {"informed_moves": ("grow",)}):
        with pytest.raises(TypeError, match=next(iter(options))):
            METHODS[method](**options)


def test_a_range_of_a_few_digits(rng):
    """Rules between neighbouring numbers just below 1: widths must not be lost to rounding."""
    x = np.append(0.0, 1.0 - 2.0**-52 * np.arange(300))
    configuration = configured(method="cgm", rule_prior="gap", moves="informed")
    problem = Problem(x[None], rng.integers(0, 2, len(x)), 2)
    chain = cgm.build_cgm(problem, configuration, 0).start(rng)
    proposals, tree = chain.explorer.proposals, empty_tree(4, 0)
    grow(tree, 0)
    tree.threshold[0] = 0.5
    everything, _ = weigh(proposals, tree, 2, NO_RULE, NEW_LEAF, NEW_LEAF, MODE_COLUMNS)
    assert np.isfinite(everything)
    log_density = draw_weighed(proposals, MODE_COLUMNS, rng)
    assert proposals.scan.cells.cutpoint[0] > 1.0 - 1e-12
    relative = np.exp(log_density) * (x.max() - np.sort(x)[1])  # to even odds over the range
    assert 0.05 <= relative <= 300
