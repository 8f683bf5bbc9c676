"""Evidence for docs/paper.md where our numbers differ from the paper's: a minute or so.

HAMILTREE_DATA=folder python -m benchmarks.paper_checks
"""

from __future__ import annotations

import warnings

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import poisson
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import mean_squared_error
from sklearn.tree import DecisionTreeRegressor

from hamiltree.datasets import load_paper_split
from hamiltree.experiments.configurations import Lengths, classical_estimator
from hamiltree.experiments.hyperparameters import TABLE_4

SEEDS = range(1, 21)
console = Console(highlight=False, soft_wrap=True)


def cgm_errors() -> None:
    """Can a tree with WU's train error have its test error on these rows?"""
    split = load_paper_split("cgm")
    cells = {tuple(row) for row in split.X}
    unseen = sum(tuple(row) not in cells for row in split.X_test)
    console.print(
        f"CGM data ({split.source}): {len(cells)} different inputs to learn from, {unseen} test "
        "rows with an input that is not among them"
    )
    table = Table("leaves of a greedy tree", "train MSE", "test MSE", title_justify="left")
    for leaves in (6, 13, 33, len(cells)):
        tree = DecisionTreeRegressor(max_leaf_nodes=leaves, random_state=0).fit(split.X, split.y)
        errors = [
            mean_squared_error(y, tree.predict(X))
            for X, y in ((split.X, split.y), (split.X_test, split.y_test))
        ]
        table.add_row(str(leaves), *(f"{error:.4f}" for error in errors))
    console.print(table)


def wu_leaves() -> None:
    """What would 33 leaves have to gain to be as probable as 5?"""
    splits = TABLE_4["wu", "cgm"]["lambda"]
    lost = poisson.logpmf(32, splits) - poisson.logpmf(4, splits)
    gained = 400 * np.log(0.0435 / 0.042)
    console.print(
        f"\nWU, lambda = {splits}: log prior odds of 33 leaves against 5: {lost:.1f}; a train MSE "
        f"of .042 instead of our .0435 is worth at most about {gained:+.1f} with 800 rows"
    )


def smc_particles() -> None:
    """Wine: 40 particles per island against more of them."""
    split = load_paper_split("wine")
    symbols = TABLE_4["smc", "wine"]
    table = Table("SMC on Wine: particles in islands, proposal", "train", "test (sd over 20 seeds)")
    for particles, islands, proposal in (
        (200, 5, "prior"), (200, 1, "prior"), (1000, 5, "prior"), (200, 5, "posterior"),
    ):  # fmt: skip
        chosen = {**symbols, "particles": particles, "islands": islands}
        scores = []
        for seed in SEEDS:
            model = classical_estimator("smc", chosen, 3, Lengths(0, 1), seed)
            model.set_params(method__split_proposal=proposal).fit(split.X, split.y)
            scores.append([model.score(split.X, split.y), model.score(split.X_test, split.y_test)])
        (train, test), sd = np.mean(scores, axis=0), np.std(scores, axis=0, ddof=1)[1]
        what = f"{particles} in {islands}, {proposal}"
        table.add_row(what, f"{train:.3f}", f"{test:.3f} ({sd:.3f})")
    console.print(table)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        cgm_errors()
        wu_leaves()
        smc_particles()
