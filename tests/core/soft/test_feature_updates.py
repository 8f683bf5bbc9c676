"""The nudges of hard splits on their own: redraws from the prior would cover up for them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hamiltree.core.backend.jit import kernel
from hamiltree.core.sampling import accept
from hamiltree.core.soft.data import CLASSES
from hamiltree.core.soft.feature_updates import nudge_threshold, nudge_weights

from ...reference.stats import kolmogorov
from ...support.core_trees import PRIOR, random_model, random_tree

LEVEL = 1e-4
N_STEPS = 400_000


@kernel
def walk_threshold(model, tree, out, rng):
    for t in range(out.shape[0]):
        before = tree.threshold[0]
        if not accept(nudge_threshold(model, tree, 0, rng), rng):
            tree.threshold[0] = before
        out[t] = tree.threshold[0]


@kernel
def walk_weights(model, tree, kept, out, rng):
    for t in range(out.shape[0]):
        for f in range(kept.shape[0]):
            kept[f] = tree.weights[0, f]
        if not accept(nudge_weights(model, tree, 0, rng), rng):
            for f in range(kept.shape[0]):
                tree.weights[0, f] = kept[f]
        for f in range(kept.shape[0]):
            out[t, f] = tree.weights[0, f]


def test_nudged_thresholds_have_their_prior(rng):
    tree = random_tree(rng, 3, 1, oblique=False)
    model, _, _, _ = random_model(rng, CLASSES, tree, n_rows=8, n_features=3, h=0.0)
    out = np.zeros((4, N_STEPS))
    for chain in out:
        walk_threshold(model, tree, chain, rng)
    assert kolmogorov(out[:, ::20], stats.beta(*PRIOR.tau).cdf, level=LEVEL).ok


@pytest.mark.parametrize("p", [2, 4])
def test_nudged_weights_have_their_prior(p, rng):
    tree = random_tree(rng, p, 1, oblique=True)
    model, _, _, _ = random_model(rng, CLASSES, tree, n_rows=8, n_features=p, h=0.0)
    out = np.zeros((4, N_STEPS, p))
    for chain in out:
        walk_weights(model, tree, np.zeros(p), chain, rng)
    marginal = stats.beta(PRIOR.weight, (p - 1) * PRIOR.weight)
    for f in range(p):
        assert kolmogorov(out[:, ::20, f], marginal.cdf, level=LEVEL).ok
