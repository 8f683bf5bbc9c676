"""Bayesian decision trees by Hamiltonian Monte Carlo, as scikit-learn estimators.

What the package offers is imported when it is first asked for: a process that only compiles, or
that only prints the version, does not wait for scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_FOLDERS = {
    "BayesianTreeClassifier": "estimators",
    "BayesianTreeRegressor": "estimators",
    "Posterior": "posterior",
    "compare": "posterior",
    "load": "estimators",
}
_MODULES = ("datasets", "estimators", "methods", "plots", "posterior")


def __getattr__(name: str) -> Any:
    if name in _FOLDERS:
        found = getattr(import_module(f".{_FOLDERS[name]}", __name__), name)
    elif name in _MODULES:
        found = import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
