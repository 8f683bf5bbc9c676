"""Simulation-based calibration of whole runs, see ``sbc.py`` (long: ``make test-long``)."""

from __future__ import annotations

import pytest

from ..reference.stats import sbc_uniformity
from .sbc import CASES, KEPT, N_BINS, ranks_of

LEVEL = 1e-4


@pytest.mark.long
@pytest.mark.parametrize(
    "case",
    CASES,
    ids=lambda c: (
        f"{c.method}-{c.h}-{c.n_classes}-{c.configuration}" + "-by-feature" * c.by_feature
    ),
)
def test_ranks_are_uniform(case, rng):
    ranks = ranks_of(case, rng, case.n_replicates)
    for name, found in ranks.items():
        assert len(found) == case.n_replicates
        test = sbc_uniformity(found, KEPT, n_bins=N_BINS, level=LEVEL)
        print(f"{case}, {case.configuration}, {name}: p = {test.p_value:.3f}")
        assert test.ok, (name, test)
