"""The posterior over decision trees as scikit-learn estimators."""

from .classifier import BayesianTreeClassifier
from .files import load
from .regressor import BayesianTreeRegressor

__all__ = ["BayesianTreeClassifier", "BayesianTreeRegressor", "load"]
