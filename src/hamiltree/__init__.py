"""Bayesian decision trees by Hamiltonian Monte Carlo, as scikit-learn estimators."""

from .estimators import BayesianTreeClassifier, BayesianTreeRegressor, load
from .posterior import Posterior, compare

__version__ = "0.2.0"

__all__ = [
    "BayesianTreeClassifier",
    "BayesianTreeRegressor",
    "Posterior",
    "__version__",
    "compare",
    "load",
]
