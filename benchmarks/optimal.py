"""The best tree beside "optimal" trees: eleven binary data sets of the CP4IM collection, ten folds.

The log joint is MAPTree's (Sullivan, Tiwari and Thrun 2023), computed here for every tree alike
from its features alone. pystreed finds the most accurate tree of a given depth, MAPTree searches
for the tree of highest log joint until a time limit, and proves it where it ends before. Neither is
needed: what is not installed is left out.
"""

from __future__ import annotations

import importlib.util
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from scipy.special import betaln
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from hamiltree import BayesianTreeClassifier
from hamiltree.methods import CGM
from hamiltree.posterior.tree import Tree

from .markdown import Claim, Report, table

FOLDER = Path(os.environ.get("HAMILTREE_CP4IM", Path(__file__).parents[2] / "shared/data/cp4im"))
TESTS = Path(os.environ.get("HAMILTREE_MAPTREE_TESTS", FOLDER.parent / "maptree"))
N_FOLDS = int(os.environ.get("HAMILTREE_BENCH_FOLDS", "10"))
SECONDS = int(os.environ.get("HAMILTREE_BENCH_SECONDS", "3"))
"""That MAPTree and pystreed may take for a fit."""
SETS = (
    "anneal", "audiology", "australian-credit", "heart-cleveland", "hepatitis", "kr-vs-kp",
    "lymph", "primary-tumor", "tic-tac-toe", "vote", "zoo-1",
)  # fmt: skip
NAMES = tuple(os.environ.get("HAMILTREE_BENCH_SETS", ",".join(SETS)).split(","))
TEST_CASES = {"small": (1.0, 13.517), "medium": (2.5, 66.006945)}
"""MAPTree's own: Beta prior of the leaves, and the least negative log joint."""
ALPHA, BETA, PRIOR = 0.95, 0.5, 2.5
LENGTHS = {"n_chains": 4, "n_warmup": 100, "n_draws": 200}
DEPTH = 4
"""Of CART's and pystreed's trees."""
MAX_SECONDS = 2.0
ROUNDING = 1e-6

Nested = tuple[int, Any, Any] | None
"""(feature, subtree of 0, subtree of 1); None is a leaf."""


class Result(NamedTuple):
    """Of one fold by one method."""

    joint: float
    """Negative log joint of the tree."""
    accuracy: float
    leaves: int
    seconds: float
    pooled: float = float("nan")
    """Accuracy of the posterior mean."""
    proved: bool = False


def negative_log_joint(
    tree: Nested, X: np.ndarray, y: np.ndarray, prior: float = PRIOR, depth: int = 0
) -> float:
    """-log p(tree) p(y | tree), by MAPTree's prior; the features of X, and y, are 0 or 1.

    A node splits with probability .95 (1 + depth)^-.5, by one of the features that vary in it, all
    alike; it is a leaf for certain where none does. Leaves are Beta-binomial.
    """
    varying = int(np.sum(X.any(axis=0) & ~X.all(axis=0)))
    split = ALPHA * (1 + depth) ** -BETA
    if tree is None:
        ones = int(y.sum())
        likelihood = betaln(ones + prior, len(y) - ones + prior) - betaln(prior, prior)
        return float(-likelihood - (np.log1p(-split) if varying else 0.0))
    feature, left, right = tree
    side = X[:, feature] == 1
    if side.all() or not side.any():
        return float("inf")
    below = negative_log_joint(left, X[~side], y[~side], prior, depth + 1)
    below += negative_log_joint(right, X[side], y[side], prior, depth + 1)
    return float(below - np.log(split) + np.log(varying))


# ------------------------------------------------------------------ trees as nested features


def of_dict(node: dict[str, Any]) -> Nested:
    """Of ``Tree.to_dict``; yes is the side of 0."""
    if "threshold" not in node:
        return None
    return node["column"], of_dict(node["yes"]), of_dict(node["no"])


def of_maptree(text: str) -> Nested:
    """Of what MAPTree prints: a leaf is nothing, a split (left feature right)."""
    place = 0

    def subtree() -> Nested:
        nonlocal place
        if place == len(text) or text[place] != "(":
            return None
        place += 1
        left = subtree()
        start = place
        while text[place].isdigit():
            place += 1
        feature = int(text[start:place])
        right = subtree()
        place += 1
        return feature, left, right

    return subtree()


def of_sklearn(tree: Any, node: int = 0) -> Nested:
    if tree.children_left[node] < 0:
        return None
    sides = (tree.children_left[node], tree.children_right[node])
    return int(tree.feature[node]), *(of_sklearn(tree, side) for side in sides)  # type: ignore[return-value]


def of_streed(node: Any) -> Nested:
    """Of pystreed, whose left is where the feature is not."""
    if node.is_leaf_node():
        return None
    return int(node.feature), of_streed(node.left_child), of_streed(node.right_child)


def leaves_of(tree: Nested) -> int:
    return 1 if tree is None else leaves_of(tree[1]) + leaves_of(tree[2])


def accuracy_of(
    tree: Nested, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray
) -> float:
    """Of rows that each take the class that most of the training rows in their leaf have."""

    def right(tree: Nested, train: np.ndarray, test: np.ndarray) -> int:
        if tree is None:
            return int(np.sum(y_test[test] == (2 * y[train].sum() > train.sum())))
        side, side_test = X[:, tree[0]] == 1, X_test[:, tree[0]] == 1
        return right(tree[1], train & ~side, test & ~side_test) + right(
            tree[2], train & side, test & side_test
        )

    every = np.ones(len(y), bool), np.ones(len(y_test), bool)
    return right(tree, *every) / len(y_test)


# ------------------------------------------------------------------ the methods

Fold = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def result_of(tree: Nested, fold: Fold, seconds: float, **more: Any) -> Result:
    X, y, *_ = fold
    joint = negative_log_joint(tree, X, y)
    return Result(joint, accuracy_of(tree, *fold), leaves_of(tree), seconds, **more)


def best_tree(X: np.ndarray, y: np.ndarray, prior: float = PRIOR) -> tuple[Any, Tree]:
    model = BayesianTreeClassifier(
        method=CGM(rule_prior="uniform", class_prior=prior),
        alpha_split=ALPHA, beta_split=BETA, random_state=0, n_jobs=1, progress=False, **LENGTHS,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # short chains, and a search after
        warnings.filterwarnings("ignore", message=".*constant.*")
        model.fit(X, y)
    return model, model.best_tree()


def ours(fold: Fold) -> Result:
    X, y, X_test, y_test = fold
    start = time.perf_counter()
    model, tree = best_tree(X, y)
    seconds = time.perf_counter() - start
    found = result_of(of_dict(tree.to_dict()), fold, seconds, pooled=model.score(X_test, y_test))
    # the library's own log posterior is that of the formula
    assert abs(found.joint + tree.log_posterior) < ROUNDING, (found.joint, tree.log_posterior)
    return found


def maptree(fold: Fold) -> Result:
    from maptree import search

    X, y, *_ = fold
    start = time.perf_counter()
    found = search(X.astype(bool), y.astype(bool), ALPHA, BETA, (PRIOR, PRIOR), -1, SECONDS)
    seconds = time.perf_counter() - start
    proved = bool(found.lb >= found.ub - ROUNDING)
    return result_of(of_maptree(found.tree), fold, seconds, proved=proved)


def streed(fold: Fold) -> Result:
    from pystreed import STreeDClassifier

    X, y, *_ = fold
    model = STreeDClassifier(max_depth=DEPTH, time_limit=SECONDS)
    start = time.perf_counter()
    try:
        model.fit(X, y)
    except RuntimeError:  # no tree within the time
        return Result(float("nan"), float("nan"), 0, time.perf_counter() - start)
    seconds = time.perf_counter() - start
    return result_of(of_streed(model.tree_), fold, seconds)


def cart(fold: Fold) -> Result:
    X, y, *_ = fold
    start = time.perf_counter()
    model = DecisionTreeClassifier(max_depth=DEPTH, random_state=0).fit(X, y)
    return result_of(of_sklearn(model.tree_), fold, time.perf_counter() - start)


METHODS: dict[str, tuple[Callable[[Fold], Result], str | None]] = {
    "hamiltree": (ours, None),
    "MAPTree": (maptree, "maptree"),
    "pystreed": (streed, "pystreed"),
    "CART": (cart, None),
}
"""By name, with the package that it needs."""


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Features and classes of a file: a row per line, the class first."""
    data = np.loadtxt(path, dtype=np.int64)
    return data[:, 1:], data[:, 0]


# ------------------------------------------------------------------ the benchmark


def run(console: Console) -> list[Claim]:
    """Print the tables; return (claim, measured, goal, met)."""
    if not FOLDER.is_dir():
        raise SystemExit(
            f"the CP4IM data are not in {FOLDER}: name their folder by HAMILTREE_CP4IM; one file "
            "NAME.txt per data set, a row per line, the class first, all 0 or 1"
        )
    report = Report(console, "optimal")
    methods = {
        name: method
        for name, (method, package) in METHODS.items()
        if package is None or importlib.util.find_spec(package) is not None
    }
    missing = ", ".join(sorted(METHODS.keys() - methods.keys()))
    report.add(f"# CP4IM, {N_FOLDS} of 10 folds, {SECONDS} s for MAPTree and for pystreed")
    if missing:
        report.add(f"Not installed, and left out: {missing}.")
    claims = test_cases(report)
    found: dict[str, dict[str, list[Result]]] = {}
    for name in NAMES:
        X, y = read(FOLDER / f"{name}.txt")
        folds = StratifiedKFold(10, shuffle=True, random_state=84).split(X, y)
        found[name] = {method: [] for method in methods}
        for train, test in list(folds)[:N_FOLDS]:
            fold = X[train], y[train], X[test], y[test]
            for method, fit in methods.items():
                with console.status(f"{name}, {method}"):
                    found[name][method].append(fit(fold))
    claims += tell(report, found, list(methods))
    report.save(claims)
    return claims


def test_cases(report: Report) -> list[Claim]:
    """MAPTree's own, where its files are."""
    claims: list[Claim] = []
    for name, (prior, known) in TEST_CASES.items():
        path = TESTS / f"test_data_{name}.txt"
        if path.is_file():
            X, y = read(path)
            joint = negative_log_joint(of_dict(best_tree(X, y, prior)[1].to_dict()), X, y, prior)
            claim = f"least negative log joint of MAPTree's test case {name}"
            claims.append((claim, f"{joint:.6f}", f"{known}", abs(joint - known) < 1e-3))
        else:
            report.add(f"MAPTree's test case {name} is not in {TESTS}, and left out.")
    return claims


def tell(
    report: Report, found: dict[str, dict[str, list[Result]]], methods: list[str]
) -> list[Claim]:
    """Tables of means over folds."""

    def mean(results: list[Result], field: str) -> float:
        return float(np.mean([getattr(result, field) for result in results]))

    rows = [
        (name, *(f"{mean(by[method], 'joint'):.2f}" for method in methods))
        for name, by in found.items()
    ]
    report.add("## Negative log joint of the training rows, mean over folds (less is better)")
    report.add(table(("data", *methods), rows))
    if "MAPTree" in methods:
        report.add("## Folds in which the best tree beats MAPTree's, equals it, is worse")
        report.add(table(*beside_maptree(found)))
    report.add("## Accuracy on the rows left out, mean over folds")
    headings = ("data", "posterior mean", *methods)
    rows = [
        (
            name,
            f"{mean(by['hamiltree'], 'pooled'):.3f}",
            *(f"{mean(by[method], 'accuracy'):.3f}" for method in methods),
        )
        for name, by in found.items()
    ]
    columns = [[float(row[k]) for row in rows] for k in range(1, len(headings))]
    rows.append(("mean", *(f"{np.mean(column):.3f}" for column in columns)))
    report.add(table(headings, rows))
    for title, field, form in (("Leaves", "leaves", ".1f"), ("Seconds of a fit", "seconds", ".2f")):
        rows = [
            (name, *(f"{mean(by[method], field):{form}}" for method in methods))
            for name, by in found.items()
        ]
        report.add(f"## {title}, mean over folds")
        report.add(table(("data", *methods), rows))
    seconds = median(result.seconds for by in found.values() for result in by["hamiltree"])
    claims: list[Claim] = [
        ("median seconds of a fit with its best tree", f"{seconds:.2f}", f"<= {MAX_SECONDS:.0f}",
         seconds <= MAX_SECONDS),
    ]  # fmt: skip
    if "MAPTree" in methods:
        worse = [name for name, _, _, lost, *_ in beside_maptree(found)[1] if lost != "0"]
        measured = "nowhere" if not worse else ", ".join(worse)
        claim = "where the best tree has a worse log joint than MAPTree's"
        claims.append((claim, measured, "nowhere", not worse))
    return claims


def beside_maptree(
    found: dict[str, dict[str, list[Result]]],
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and rows of the comparison, fold by fold."""
    rows = []
    for name, by in found.items():
        pairs = list(zip(by["hamiltree"], by["MAPTree"], strict=True))
        gains = np.array([other.joint - one.joint for one, other in pairs])
        gains[np.abs(gains) <= ROUNDING] = 0.0
        better, worse = int(np.sum(gains > 0)), int(np.sum(gains < 0))
        proved = sum(other.proved for _, other in pairs)
        rows.append(
            (
                name, str(better), str(len(gains) - better - worse), str(worse),
                f"{max(gains.max(), 0.0):.2f}", f"{abs(min(gains.min(), 0.0)):.2f}", str(proved),
            )
        )  # fmt: skip
    return ("data", "better", "equal", "worse", "most gained", "most lost", "proved"), rows
