"""Coverage of ``predict_interval`` and calibration of ``predict_proba`` on simulated data.

Truth from the prior, training and new rows from the truth, many times: intervals must hold their
share of new observations (regression) or of true probabilities (classification), and labels given
a probability p must come up in a share p of the cases. Errors are judged by the replicates, which
are independent; the rows of one are not. ``pytest -s`` prints the table of docs/reading-a-tree.md.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.inputs.preprocess import Preprocessing
from hamiltree.posterior import Posterior
from hamiltree.running.run import Problem, sample

from ..reference.model import Prior, leaves, phi, sample_sigma, sample_tree, sample_y
from ..support.configuring import configured

PRIOR = Prior(alpha_split=0.7, beta_split=1.0, max_leaves=6, sigma=(3.0, 1.0))
ROWS, NEW = 40, 40
LEVEL = 1e-4  # of a false alarm per case
EDGES = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])


def fitted(estimator, X, y, n_classes, method, h, seed):
    """The estimator with a posterior given data that fill the unit interval by definition.

    ``fit`` would refuse a replicate whose labels are all alike, and the truth has such.
    """
    configuration = configured(
        method=method,
        h=h,
        alpha_split=PRIOR.alpha_split,
        beta_split=PRIOR.beta_split,
        max_leaves=PRIOR.max_leaves,
        class_prior=PRIOR.classes,
        sigma_prior=PRIOR.sigma,
    )
    problem = Problem(np.ascontiguousarray(X.T), y, n_classes)
    lengths = {"n_chains": 2, "n_warmup": 300, "n_draws": 500}
    draws, info = sample(problem, configuration, **lengths, n_jobs=1, seed=seed)
    labels = np.arange(n_classes) if n_classes else None
    scale = Preprocessing(("x0", "x1"), np.arange(2), np.zeros(2), np.ones(2), labels)
    estimator.posterior_ = Posterior(draws, info, scale, configuration)
    estimator.n_features_in_ = 2
    if n_classes:
        estimator.classes_ = labels
    return estimator


def row(name, nominal, replicates, scale=1.0):
    """Print a row of the table; returns the gap to the nominal value and its standard error."""
    found = np.array(replicates) / scale
    gap, error = found.mean() - nominal, found.std(ddof=1) / np.sqrt(len(found))
    print(f"| {name} | {nominal:.3f} | {nominal + gap:.3f} +- {error:.3f} |")
    return gap, error


def judge(gaps):
    """All gaps within the noise of their replicates."""
    limit = stats.norm.isf(LEVEL / len(gaps) / 2)
    for name, (gap, error) in gaps.items():
        assert abs(gap) <= limit * error, (name, gap, error)


def regression_intervals(method, h, rng, n_replicates):
    inside = {0.5: [], 0.9: []}
    for _ in range(n_replicates):
        X, new = rng.uniform(size=(ROWS, 2)), rng.uniform(size=(NEW, 2))
        truth, sigma = sample_tree(rng, 2, PRIOR, method=method), sample_sigma(rng, PRIOR)
        y, y_new = (sample_y(rng, truth, rows, h, sigma) for rows in (X, new))
        seed = int(rng.integers(2**31))
        model = fitted(BayesianTreeRegressor(), X, y, 0, method, h, seed)
        for coverage, shares in inside.items():
            low, high = model.predict_interval(new, coverage).T
            shares.append(np.mean((low <= y_new) & (y_new <= high)))
    return {
        coverage: row(f"interval of y, {method}, h = {h}", coverage, shares)
        for coverage, shares in inside.items()
    }


def class_intervals(method, h, n_classes, rng, n_replicates):
    inside: list[float] = []
    groups = range(len(EDGES) - 1)
    sums: dict[int, list[float]] = {k: [] for k in groups}
    predicted: dict[int, list[float]] = {k: [] for k in groups}
    for _ in range(n_replicates):
        X, new = rng.uniform(size=(ROWS, 2)), rng.uniform(size=(NEW, 2))
        truth = sample_tree(rng, 2, PRIOR, method=method)
        leaf = rng.dirichlet(np.full(n_classes, PRIOR.classes), size=len(leaves(truth)))
        p, p_new = (phi(truth, rows, h) @ leaf for rows in (X, new))
        y, y_new = ((rng.random((len(q), 1)) > q.cumsum(axis=1)).sum(axis=1) for q in (p, p_new))
        seed = int(rng.integers(2**31))
        y = np.minimum(y, n_classes - 1)  # sums of probabilities may end just below 1
        model = fitted(BayesianTreeClassifier(), X, y, n_classes, method, h, seed)
        interval = model.predict_interval(new, 0.9)[:, 0]
        inside.append(np.mean((interval[:, 0] <= p_new[:, 0]) & (p_new[:, 0] <= interval[:, 1])))
        given = model.predict_proba(new)[:, 0]
        group = np.digitize(given, EDGES[1:-1])
        for k in groups:  # sums, so that replicates with few rows in a group count little
            sums[k].append(np.sum((y_new == 0)[group == k] - given[group == k]) / NEW)
            predicted[k] += given[group == k].tolist()
    case = f"{method}, h = {h}, {n_classes} classes"
    gaps = {"interval": row(f"interval of a probability, {case}", 0.9, inside)}
    for k, own in sums.items():
        name = f"share of labels given {EDGES[k]:.1f} to {EDGES[k + 1]:.1f}, {case}"
        share = len(predicted[k]) / (len(own) * NEW)  # of all rows, in this group
        given = float(np.mean(predicted[k]))
        gaps[name] = row(name, given, given * share + np.array(own), share)
    return gaps


def test_intervals_of_numbers(rng):
    judge(regression_intervals("hmc-df", 0.1, rng, 60))


def test_intervals_and_calibration_of_probabilities(rng):
    judge(class_intervals("hmc-df", 0.0, 2, rng, 60))


@pytest.mark.long
@pytest.mark.parametrize(("method", "h"), [("hmc-df", 0.1), ("hmc-df", 0.0), ("hmc-dfi", 0.1)])
def test_intervals_of_numbers_many_times(method, h, rng):
    judge(regression_intervals(method, h, rng, 400))


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "h", "n_classes"),
    [("hmc-df", 0.0, 2), ("hmc-dfi", 0.0, 3), ("hmc-df", 0.01, 2), ("hmc-df", 0.1, 2)],
)
def test_probabilities_many_times(method, h, n_classes, rng):
    judge(class_intervals(method, h, n_classes, rng, 400))
