"""The methods of sampling trees. Each owns its parameters: their defaults, limits and meaning.

``BayesianTreeClassifier(method="cgm")`` is CGM with its defaults, ``method=CGM(rule_prior="gap")``
with another rule prior, and ``method=CGM.paper()`` with the authors' settings.
"""

from __future__ import annotations

from typing import Any

from .base import Method
from .cgm import CGM
from .hmc import HMCDF, HMCDFI
from .smc import SMC
from .wu import WU

__all__ = ["CGM", "HMCDF", "HMCDFI", "METHODS", "SMC", "WU", "Method"]

METHODS: dict[str, type[Method]] = {cls.name: cls for cls in (HMCDF, HMCDFI, CGM, WU, SMC)}
"""By the name that ``method=`` and files know."""
PRESETS = ("paper",)


def chosen(method: Any, preset: Any) -> Method:
    """The method that an estimator's parameters ``method`` and ``preset`` mean."""
    if preset is not None and preset not in PRESETS:
        raise ValueError(f"preset must be 'paper' or None, got {preset!r}")
    if isinstance(method, Method):
        if preset is not None and not method.is_paper:
            made = type(method).__name__
            raise ValueError(
                f"preset={preset!r} sets the parameters of a method given by name, but "
                f"method={method!r} has its own: leave preset at None, or set "
                f"method={made}.{preset}(...)"
            )
        return method
    if not isinstance(method, str) or method not in METHODS:
        names = ", ".join(repr(name) for name in METHODS)
        raise ValueError(
            f"method must be one of {names}, or an object of hamiltree.methods such as "
            f"HMCDF(replicas=6); got {method!r}"
        )
    return METHODS[method].paper() if preset == "paper" else METHODS[method]()
