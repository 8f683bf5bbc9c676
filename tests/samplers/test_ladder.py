"""Replica exchange by itself: rungs of a few states with known laws, and where rungs stand."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from hamiltree.core.tree.record import SCALARS, Piece
from hamiltree.posterior.evidence import evidence_of_ladder
from hamiltree.samplers.ladder import (
    AGREES,
    GAP_WANTED,
    LOWEST,
    agreeing_power,
    first_powers,
    gap_of_refused,
    gaps_of_rungs,
    place_rungs,
    refused_share,
    split_rhat,
)
from hamiltree.samplers.tempering import ROUNDS, Tempered, TemperedChain, settle

LOG_PRIOR = np.log([0.3, 0.2, 0.1, 0.15, 0.25])
LOG_LIKE = np.array([-1.0, -4.0, -5.5, -3.5, 0.5])
"""Of five states in a row: both ends are likely, and what is between them is not."""
LEVEL_Z = 4.5


class Walk:
    """A rung that steps to a neighbouring state, or stays."""

    remembers = ("rng", "state", "power")

    def __init__(self, rng: np.random.Generator, keep: bool) -> None:
        self.rng, self.keep = rng, keep
        self.state = np.zeros(1, np.int64)
        self.power = np.ones(1)

    def advance(self, n: int) -> list[Piece]:
        for _ in range(n):
            new = int(self.state[0]) + (1 if self.rng.random() < 0.5 else -1)
            if 0 <= new < len(LOG_PRIOR):
                log_ratio = self.log_density(new) - self.log_density(int(self.state[0]))
                if math.log(1.0 - self.rng.random()) < log_ratio:
                    self.state[0] = new
        if not self.keep:
            return []
        piece = {name: np.zeros((1, 0)) for name in Piece._fields}
        piece["scalars"] = np.full((1, len(SCALARS)), float(self.state[0]))
        return [Piece(**piece)]

    def log_density(self, state: int) -> float:
        return float(LOG_PRIOR[state] + self.power[0] * LOG_LIKE[state])

    def log_likelihood(self) -> float:
        return float(LOG_LIKE[self.state[0]])

    def exchanged(self) -> list[Any]:
        return [self.state]

    def after_exchange(self) -> None: ...
    def compile(self) -> None: ...
    def n_leaves(self) -> int:
        return 1 + int(self.state[0])

    def tally(self) -> dict[str, dict[str, tuple[int, int]]]:
        return {"warmup": {}, "sampling": {}}


class Walks:
    """The sampler of such rungs."""

    h = np.zeros(1)
    kernels: tuple[Any, ...] = ()

    def start(self, rng: np.random.Generator, keep: bool = True) -> Walk:
        return Walk(rng, keep)


def make_chain(seed: int, n_warmup: int = 400, n_rungs: int = 4, **values: Any) -> TemperedChain:
    rng = np.random.Generator(np.random.PCG64(seed))
    return Tempered(Walks(), n_warmup, n_rungs, **values).start(rng)


def exact(power: float) -> np.ndarray:
    log_mass = LOG_PRIOR + power * LOG_LIKE
    return np.exp(log_mass - logsumexp(log_mass))


def z_scores(indicator: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Of means of [draw, state], by the means of 40 parts."""
    parts = np.stack([part.mean(axis=0) for part in np.array_split(indicator, 40)])
    error = np.maximum(parts.std(axis=0, ddof=1), 1e-9) / math.sqrt(40)  # of a state never met
    return (parts.mean(axis=0) - truth) / error


@pytest.mark.parametrize("hottest", [None, 0.0, 0.5])
def test_every_rung_has_its_law(hottest, seed):
    chain = make_chain(seed, hottest=hottest)
    chain.advance(400)
    powers, n = chain.powers.copy(), 30_000
    log_likes = np.concatenate([piece.rungs for piece in chain.advance(n)])
    assert log_likes.shape == (n, 4)
    for k, power in enumerate(powers):
        states = np.abs(log_likes[:, k, None] - LOG_LIKE).argmin(axis=1)
        often = exact(power) > 0.002
        z = z_scores(np.eye(5)[states], exact(power))[often]
        assert np.abs(z).max() < LEVEL_Z, (power, z)
    accepted, proposed = chain.tally()["sampling"]["exchange"]
    assert proposed == 3 * n / 2
    assert accepted > 0.3 * proposed


def test_the_first_rung_crosses_by_the_others(seed):
    """Alone it changes ends a few times; with the others hundreds of times."""

    def crossings(chain: Any) -> int:
        ends = [
            state
            for _ in range(4_000)
            for piece in chain.advance(1)
            if (state := piece.scalars[0, 0]) in (0, 4)
        ]
        return sum(a != b for a, b in itertools.pairwise(ends))

    alone = crossings(Walk(np.random.default_rng(seed), keep=True))
    assert crossings(make_chain(seed, hottest=0.0)) > 5 * alone + 20


def test_evidence(seed):
    chains = [make_chain(seed + k, hottest=0.0) for k in range(2)]
    log_likes = []
    for chain in chains:
        chain.advance(400)
        log_likes.append(np.concatenate([piece.rungs for piece in chain.advance(15_000)]))
    powers = np.array([chain.powers for chain in chains])
    value, error = evidence_of_ladder(powers, np.array(log_likes))
    assert error < 0.05
    assert abs(value - logsumexp(LOG_PRIOR + LOG_LIKE)) < LEVEL_Z * error


def test_rungs_stay_after_warm_up(seed):
    chain = make_chain(seed)
    start = chain.powers.copy()
    chain.advance(400)
    powers = [float(rung.power[0]) for rung in chain.rungs]
    assert chain.settled == len(ROUNDS)
    assert powers == list(chain.powers) != list(start)
    chain.advance(2_000)
    assert [float(rung.power[0]) for rung in chain.rungs] == powers


def test_rungs_do_not_exchange_in_the_first_round(seed):
    chain = make_chain(seed)
    chain.advance(100)
    assert chain.exchanges.sum() == 0
    chain.advance(1)
    assert chain.exchanges[0, 1] > 0


def test_chains_place_their_rungs_together(seed):
    chains = [make_chain(seed + k) for k in range(3)]
    for end in chains[0].rounds:
        for chain in chains:
            chain.advance(end - chain.iteration)
            assert chain.is_due
        settle(chains)
        assert not any(chain.is_due for chain in chains)
        assert len({tuple(chain.powers) for chain in chains}) == 1


def test_blocks_do_not_matter(seed):
    one, other = make_chain(seed), make_chain(seed)
    whole = np.concatenate([piece.rungs for piece in one.advance(700)])
    parts = [piece.rungs for n in (1, 99, 100, 300, 200) for piece in other.advance(n)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_no_warm_up(seed):
    chain = make_chain(seed, n_warmup=0)
    np.testing.assert_array_equal(chain.powers, first_powers(4, None))
    chain.advance(10)
    np.testing.assert_array_equal(chain.powers, first_powers(4, None))


# ------------------------------------------------------------------ where rungs stand


def squares(powers: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Log-likelihoods [n, rungs] that are minus half a sum of 40 squares of N(0, 1 / power)."""
    return -0.5 * rng.chisquare(40, size=(n, len(powers))) / powers


def refused(powers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Share of refused exchanges between neighbours."""
    log_likes = squares(powers, 20_000, rng)
    log_ratio = -np.diff(powers) * np.diff(log_likes, axis=1)
    return 1.0 - np.exp(np.minimum(log_ratio, 0.0)).mean(axis=0)


def test_barrier_from_rungs_that_ran_apart(rng):
    """Wide apart, so that nothing would be exchanged: placed anew, all exchange equally often."""
    powers = np.geomspace(1.0, 0.05, 5)
    gaps = gaps_of_rungs(powers, squares(powers, 2_000, rng))
    needed = 1 + round(gaps.sum() / GAP_WANTED)
    new = place_rungs(powers, gaps, needed, mixes_at=0.05, hottest=None)
    assert new[-1] == pytest.approx(0.05)
    share = refused(new, rng)
    np.testing.assert_allclose(share, share.mean(), atol=0.03)
    assert 0.4 < share.mean() < 0.6


def test_barrier_from_exchanges(rng):
    """Uneven rungs become even ones, by what they refuse alone."""
    powers = np.array([1.0, 0.95, 0.6, 0.55, 0.5])
    for _ in range(2):
        gaps = gap_of_refused(refused(powers, rng))
        powers = place_rungs(powers, gaps, 5, mixes_at=0.5, hottest=0.5)
    share = refused(powers, rng)
    np.testing.assert_allclose(share, share.mean(), atol=0.03)
    assert powers[-1] == pytest.approx(0.5)


def test_gap_and_share_are_inverse():
    gaps = np.linspace(0.0, 1.5, 7)
    np.testing.assert_allclose(gap_of_refused(refused_share(gaps)), gaps, atol=1e-12)
    assert np.isfinite(gap_of_refused(np.array([1.0])))


def test_few_rungs_stay_near_and_many_go_far(rng):
    powers = np.geomspace(1.0, 0.05, 6)
    gaps = gaps_of_rungs(powers, squares(powers, 2_000, rng))

    def hot_end(n: int, mixes_at: float) -> float:
        return float(place_rungs(powers, gaps, n, mixes_at=mixes_at, hottest=None)[-1])

    assert hot_end(2, 0.1) > 0.5  # nothing would be exchanged with a rung at 0.1
    assert hot_end(5, 0.4) == pytest.approx(0.4, rel=0.01)
    assert hot_end(40, 0.4) == pytest.approx(LOWEST)


def test_power_0_is_kept(rng):
    powers = first_powers(5, 0.0)
    assert powers[-1] == 0.0
    gaps = np.array([0.9, 0.8, 1.1, 0.2])
    new = place_rungs(powers, gaps, 5, mixes_at=1.0, hottest=0.0)
    assert new[0] == 1.0
    assert new[-1] == 0.0
    assert (np.diff(new) < 0).all()


@pytest.mark.parametrize("gaps", [[0.0, 0.0], [np.nan, 0.3], [np.inf, 1.0]])
def test_where_nothing_is_known_rungs_stay(gaps):
    powers = np.array([1.0, 0.5, 0.2])
    new = place_rungs(powers, np.array(gaps), 3, mixes_at=0.3, hottest=None)
    np.testing.assert_array_equal(new, powers)


def test_the_highest_power_that_mixes():
    powers = np.array([1.0, 0.5, 0.25, 0.125])
    assert agreeing_power(powers, np.array([1.0, 1.01, 1.0, 1.0])) == 1.0
    assert agreeing_power(powers, np.array([2.0, 1.5, 1.3, 1.2])) == 0.125
    assert 0.25 < agreeing_power(powers, np.array([2.0, 1.5, 1.01, 1.0])) < 0.5
    assert agreeing_power(powers, np.array([2.0, np.inf, 1.01, 1.0])) == 0.25
    # a rung that agrees among rungs that do not is luck
    assert agreeing_power(powers, np.array([2.0, 1.01, 1.5, 1.02])) < 0.25


def test_split_rhat(rng):
    draws = rng.standard_normal((4, 400, 2))
    draws[0, :, 1] += 2.0
    found = split_rhat(draws)
    assert found[0] < 1.02
    assert found[1] > AGREES
    assert split_rhat(np.ones((2, 10, 1)))[0] == 1.0
    assert split_rhat(np.repeat([[1.0], [2.0]], 10, axis=1)[..., None])[0] == np.inf
