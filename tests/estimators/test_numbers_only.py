"""HMC-DFI, which takes numbers only: a table is what it says it is turned into.

Levels become columns of 0 and 1, and missing cells the mean of their column: the draws are those of
the same rows with this done by hand, so that what is shown of this sampler holds for tables.
"""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.methods import HMCDFI

OPTIONS = {
    "method": HMCDFI(replicas=1), "n_chains": 2, "n_warmup": 40, "n_draws": 40, "random_state": 0,
    "progress": False,
}  # fmt: skip


def table_and_numbers(rng):
    """No two rows are equal, and means and scales are exact: draws must not differ by rounding."""
    n, gone = 44, 12
    age = np.concatenate([[0, 64], 1 + rng.permutation(63)[: n - gone - 2]]) / 64
    age = rng.permutation(np.concatenate([age, np.full(gone, np.nan)]))
    sex, site = rng.choice(["female", "male"], n), rng.choice(["East", "North", "West"], n)
    site = np.where(rng.random(n) < 0.1, None, site)
    dose = np.append(rng.permutation(n - 1) / 64, 1.0)
    table = pandas.DataFrame({"age": age, "sex": sex, "site": site, "dose": dose})
    filled = np.where(np.isnan(age), np.nanmean(age), age)
    levels = [site == "East", site == "North", site == "West", table["site"].isna()]
    return table, np.column_stack([filled, sex == "male", *levels, dose]).astype(float)


@pytest.mark.parametrize("n_classes", [2, 0])
def test_a_table_is_the_numbers_it_is_turned_into(n_classes, rng):
    table, numbers = table_and_numbers(rng)
    y = 2 * numbers[:, 0] + numbers[:, 1] + 0.3 * rng.normal(size=len(table))
    if n_classes:
        y = (y > np.median(y)).astype(int)
    estimator = BayesianTreeClassifier if n_classes else BayesianTreeRegressor
    by_table = estimator(**OPTIONS).fit(table, y)
    by_hand = estimator(**OPTIONS).fit(numbers, y)
    mine, its = by_table.posterior_.draws, by_hand.posterior_.draws
    for name in ("size", "feature", "threshold", "split_weights", "leaf", "log_posterior"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(its, name), err_msg=name)
    assert mine.n_leaves.max() > 1
    predict = "predict_proba" if n_classes else "predict"
    np.testing.assert_array_equal(
        getattr(by_table, predict)(table), getattr(by_hand, predict)(numbers)
    )
