"""Bayesian decision trees by Hamiltonian Monte Carlo, as scikit-learn estimators."""

from .estimators import BayesianTreeClassifier, BayesianTreeRegressor
from .posterior import Posterior

__version__ = "0.1.0"

__all__ = ["BayesianTreeClassifier", "BayesianTreeRegressor", "Posterior", "__version__"]
