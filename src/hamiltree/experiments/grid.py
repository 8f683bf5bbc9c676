"""The paper's grid search (appendix A.3): table 3's sets, five folds, and its rule of choice.

The rule: the best mean score over the folds' held-out rows, of single trees after 500 + 500
iterations of one chain (SMC: of all particles together); of equals, the best log-likelihood.
Only rows to learn from are used: the test rows stay unseen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas
from sklearn.model_selection import KFold

from ..datasets import Split
from .configurations import GRID_LENGTHS, classical_estimator
from .hyperparameters import OURS, TABLE_3, TABLE_4, grid_of
from .measures import ensemble_score, score_name, single_tree_scores
from .restarts import fitted, parameters_set
from .runner import Job
from .store import Config, Result, Store, data_digest

N_FOLDS = 5
FOLD_SEED = 1  # the authors' random_state of KFold
TIE = 1e-9
"""Scores closer than this are equal."""


@dataclass(frozen=True)
class Search:
    """The grid search of one method on one data set."""

    method: str
    split: Split
    sets: list[dict[str, float]]
    n_in_grid: int
    configs: list[Config]

    def jobs(self) -> list[Job]:
        return [Job(config, self.split, run_set) for config in self.configs]


def make_search(
    method: str, split: Split, most: int | None, seed: int = 0, shorten: int = 1
) -> Search:
    """The whole grid, or ``most`` of its sets at random; table 4's set is always among them."""
    grid = grid_of(method, split.name)
    chosen = np.arange(len(grid))
    if most is not None and most < len(grid):
        chosen = np.sort(np.random.default_rng(seed).choice(len(grid), most, replace=False))
    sets = [grid[i] for i in chosen]
    published = TABLE_4.get((method, split.name))
    if published is not None and published not in sets:
        sets.append(published)
    lengths = GRID_LENGTHS.shortened(shorten)
    configs = []
    for symbols in sets:
        estimator = classical_estimator(method, symbols, split.n_classes, lengths, seed=1)
        configs.append(
            {
                "kind": "grid",
                "dataset": split.name,
                "method": method,
                "symbols": symbols,
                "parameters": parameters_set(estimator),
                "data": data_digest(split),
            }
        )
    return Search(method, split, sets, len(grid), configs)


def run_set(config: Config, split: Split) -> Result:
    """Five fits; the held-out score and the log-likelihood of the draws, averaged."""
    scores, likelihoods = [], []
    for train, held_out in KFold(N_FOLDS, shuffle=True, random_state=FOLD_SEED).split(split.X):
        fold = replace(
            split, X=split.X[train], y=split.y[train],
            X_test=split.X[held_out], y_test=split.y[held_out],
        )  # fmt: skip
        posterior = fitted(config, fold)
        if config["method"] == "smc":
            scores.append(ensemble_score(posterior, fold.X_test, fold.y_test))
        else:
            scores.append(float(single_tree_scores(posterior, fold).mean()))
        likelihoods.append(float(np.sum(posterior.weights * posterior.log_likelihood)))
    return Result({"score": float(np.mean(scores)), "log_likelihood": float(np.mean(likelihoods))})


def sets_table(search: Search, store: Store) -> pandas.DataFrame:
    """Every set that is done, the best first."""
    done = [
        {**symbols, **result.values}
        for symbols, config in zip(search.sets, search.configs, strict=True)
        if (result := store.load(config)) is not None
    ]
    table = pandas.DataFrame(done)
    better = 1.0 if search.split.n_classes else -1.0
    rank = (better * table["score"] / TIE).round()
    order = np.lexsort((-table["log_likelihood"], -rank))
    return table.iloc[order].reset_index(drop=True)


def report(searches: Sequence[Search], store: Store) -> pandas.DataFrame:
    """One row per search: the chosen set beside table 4's, with the score of either."""
    rows = []
    for search in searches:
        table = sets_table(search, store)
        symbols = list(TABLE_3[search.method, search.split.name])
        pair = (search.method, search.split.name)
        published = None if pair in OURS else TABLE_4[pair]
        theirs = table if published is None else table[_equal(table, published)]
        rows.append(
            {
                "dataset": search.split.name,
                "method": search.method,
                "sets_tried": len(table),
                "sets_in_grid": search.n_in_grid,
                "metric": f"held-out {score_name(search.split.n_classes)}",
                "chosen": _written(table.iloc[0], symbols),
                "score": table["score"].iloc[0],
                "table_4": "none" if published is None else _written(published, symbols),
                "table_4_score": np.nan if published is None else theirs["score"].iloc[0],
                "table_4_rank": np.nan if published is None else theirs.index[0] + 1,
            }
        )
    return pandas.DataFrame(rows)


def _equal(table: pandas.DataFrame, symbols: dict[str, float]) -> pandas.Series:
    equal = [np.isclose(table[name], value) for name, value in symbols.items()]
    return pandas.Series(np.all(equal, axis=0))


def _written(values: dict[str, float] | pandas.Series, symbols: Iterable[str]) -> str:
    return ", ".join(f"{name}={values[name]:g}" for name in symbols)
