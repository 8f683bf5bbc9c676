"""The formula of benchmarks/optimal.py: by hand, by the library, on MAPTree's own test cases."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import beta

from benchmarks import optimal


def test_the_log_joint_by_hand():
    X = np.array([[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1]])
    y = np.array([0, 0, 1, 0])
    root = -np.log(1 - 0.95) - np.log(beta(2, 4) / beta(1, 1))
    assert optimal.negative_log_joint(None, X, y, prior=1.0) == pytest.approx(root)
    # two features vary at the root, one in each half, none in a quarter
    below = 0.95 / np.sqrt(2)
    stump = -np.log(0.95 / 2) - 2 * np.log(1 - below) - np.log(beta(3, 1) / beta(1, 1))
    stump -= np.log(beta(2, 2) / beta(1, 1))
    assert optimal.negative_log_joint((0, None, None), X, y, prior=1.0) == pytest.approx(stump)
    right = (0, None, (1, None, None))
    three = stump + np.log(1 - below) - np.log(below) + np.log(beta(2, 2) / beta(1, 1))
    three -= np.log(beta(1, 2)) + np.log(beta(2, 1))
    assert optimal.negative_log_joint(right, X, y, prior=1.0) == pytest.approx(three)
    assert optimal.negative_log_joint((2, None, None), X, y) == np.inf


def test_trees_are_read_as_their_packages_write_them(rng):
    assert optimal.of_maptree("") is None
    assert optimal.of_maptree("(3(12))") == (3, None, (12, None, None))
    assert optimal.of_maptree("((0)3(12))") == (3, (0, None, None), (12, None, None))
    X = rng.integers(0, 2, (200, 5))
    y = X[:, 1] ^ (X[:, 2] & X[:, 3])
    tree = optimal.DecisionTreeClassifier(random_state=0).fit(X, y)
    nested = optimal.of_sklearn(tree.tree_)
    assert optimal.leaves_of(nested) == tree.get_n_leaves()
    half = X[:100], y[:100], X[100:], y[100:]
    grown = optimal.DecisionTreeClassifier(max_depth=2, random_state=0).fit(*half[:2])
    own = optimal.accuracy_of(optimal.of_sklearn(grown.tree_), *half)
    assert own == pytest.approx(grown.score(*half[2:]))


def test_the_librarys_log_posterior_is_the_formulas(rng):
    X = rng.integers(0, 2, (80, 6))
    y = (X[:, 1] ^ X[:, 2]) | (rng.random(80) < 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = optimal.best_tree(X, y)[1]
    nested = optimal.of_dict(tree.to_dict())
    assert -optimal.negative_log_joint(nested, X, y) == pytest.approx(tree.log_posterior)
    assert optimal.leaves_of(nested) == tree.n_leaves > 2


@pytest.mark.long  # the default run needs no file that is not here
@pytest.mark.parametrize("case", optimal.TEST_CASES)
def test_maptrees_own_cases(case):
    """The least negative log joint, which MAPTree proves; its files are not a part of this."""
    path = optimal.TESTS / f"test_data_{case}.txt"
    if not path.is_file():
        pytest.skip(f"needs MAPTree's {path.name}: name its folder by HAMILTREE_MAPTREE_TESTS")
    prior, known = optimal.TEST_CASES[case]
    X, y = optimal.read(path)
    tree = optimal.of_dict(optimal.best_tree(X, y, prior)[1].to_dict())
    assert optimal.negative_log_joint(tree, X, y, prior) == pytest.approx(known, abs=5e-4)
