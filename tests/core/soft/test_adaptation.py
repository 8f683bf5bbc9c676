"""Stan's windows, the paper's h schedule, dual averaging."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hamiltree.core.soft.adaptation import (
    AVERAGER,
    COUNT,
    LOG_STEP,
    LOG_STEP_BAR,
    end_window,
    freeze,
    h_schedule,
    make_tuning,
    restart_averager,
    update_averager,
    window_masks,
    windows,
)


def test_windows_of_500_are_those_of_stan():
    # 0-74, 75-99, 100-149, 150-249, 250-449, 450-499
    assert windows(500).tolist() == [75, 100, 150, 250, 450]
    assert windows(1000).tolist() == [75, 100, 150, 250, 450, 950]
    slow, end = window_masks(500)
    assert np.flatnonzero(end).tolist() == [99, 149, 249, 449]
    assert np.flatnonzero(slow)[[0, -1]].tolist() == [75, 449]


@pytest.mark.parametrize("n", [0, 1, 2, 5, 19, 20, 21, 50, 100, 149, 150, 151, 300, 777])
def test_short_warm_ups_are_defined(n):
    slow, end = window_masks(n)
    assert slow.sum() == 0 if n < 20 else end.sum() >= 1
    schedule = h_schedule(n, 0.2, 0.01)
    assert schedule.shape == (n,)
    if n >= 2:
        assert schedule[0] == 0.2
        assert schedule[-1] == 0.01
        assert (np.diff(schedule) <= 0).all()


def test_h_schedule_of_500():
    """Moves on 75 <= t <= 349 and reaches h_final exactly."""
    h = h_schedule(500, 0.1, 0.001)
    assert (h[:76] == 0.1).all()
    assert h[76] < 0.1
    assert h[348] > 0.001
    assert (h[349:] == 0.001).all()
    np.testing.assert_allclose(np.diff(h[75:350]), (0.001 - 0.1) / 274)
    assert (h_schedule(500, 0.02, 0.02) == 0.02).all()


def test_dual_averaging_finds_the_step_of_a_known_curve():
    """accept(step) = exp(-step) crosses 0.8 at step = -log 0.8."""
    averager = np.zeros(AVERAGER)
    restart_averager(averager, 1.0)
    for _ in range(2000):
        update_averager(averager, math.exp(-math.exp(averager[LOG_STEP])), 0.8)
    assert math.exp(averager[LOG_STEP_BAR]) == pytest.approx(-math.log(0.8), rel=0.05)


def test_sizes_that_were_never_adapted_take_the_nearest():
    tuning = make_tuning(10, 1)
    for splits, step in ((2, 0.3), (7, 0.05)):
        restart_averager(tuning.averager[splits], step)
        tuning.averager[splits, COUNT] = 50
    tuning.averager[4] = tuning.averager[2]
    tuning.averager[4, [LOG_STEP_BAR, COUNT]] = math.log(9.0), 2  # visited, but too rarely
    freeze(tuning)
    np.testing.assert_allclose(
        tuning.frozen, [0.3, 0.3, 0.3, 0.3, 0.3, 0.05, 0.05, 0.05, 0.05, 0.05]
    )
    untouched = make_tuning(3, 1)
    freeze(untouched)
    assert (untouched.frozen > 0).all()


def test_masses_come_from_the_moves_of_the_window():
    tuning = make_tuning(4, 1)
    tuning.squares[0, 1], tuning.moves[0, 1] = 200.0, 400.0
    end_window(tuning)
    assert tuning.scale[0, 1] == pytest.approx((200.0 + 5e-3) / 405.0)
    assert tuning.scale[1, 1] == 1.0  # nothing seen, nothing changed
    assert tuning.moves.sum() == 0
