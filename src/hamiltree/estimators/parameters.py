"""The parameters that both estimators share: their defaults, limits and meaning."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from ..methods import METHODS, Method, chosen
from ..methods.base import H_WORDS
from ..methods.parameters import (
    anything,
    documented,
    flag,
    integer,
    one_of,
    parameter,
    path,
    real,
    softness,
    whole,
)

MAX_DRAWS_FACTOR = 20
"""Unless max_draws says otherwise, target_rhat makes a run at most so many times n_draws long."""

RandomState = int | np.random.RandomState | None

ATTRIBUTES = """\
    posterior_ : Posterior
        All sampled trees, with predictions, diagnostics and files.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of the splits on each column.
    h_ : ndarray of shape (n_features_in_,)
        Softness per column: as given, as chosen, or the posterior mean.
    n_features_in_ : int
        Number of columns seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if the columns of X had names."""
"""What both estimators have after fit, for their docstrings."""

_Class = TypeVar("_Class", bound=type)


def documented_estimator(cls: _Class) -> _Class:
    """Fill ``{parameters}`` and ``{attributes}`` in the docstring of an estimator."""
    documented(cls)
    cls.__doc__ = (cls.__doc__ or "").replace("    {attributes}", ATTRIBUTES)
    return cls


@dataclass(kw_only=True, eq=False, repr=False)
class EstimatorParameters(BaseEstimator):
    """The parameters of both estimators; a dataclass, because ``__init__`` may only store."""

    method: str | Method = parameter(  # noqa: RUF009
        "hmc-df",
        anything("str or Method"),
        f"The sampler: one of {', '.join(METHODS)}, or an object of hamiltree.methods with its own "
        "parameters, such as HMCDF(replicas=6).",
        brief=f"Sampler: {', '.join(METHODS)}.",
    )
    preset: str | None = parameter(
        None,
        anything("str"),
        '"paper" uses the authors\' values of all parameters of a method given by name, and of '
        "the parameters that are not given here.",
        brief="paper: the authors' settings.",
    )
    h: float | Sequence[float] | str | None = parameter(
        None,
        softness(*H_WORDS),
        "HMC-DF and HMC-DFI: softness of the splits as a share of a column's range, one number or "
        'one per column; 0 for hard splits; "auto" chooses it from the spacing of the data; '
        '"learn" samples it. Default: "learn" for HMC-DF where possible, otherwise 0.01.',
        brief="Softness of splits, auto, or learn.",
    )
    alpha_split: float | None = parameter(
        None,
        real(0),
        "Prior: a node at depth d splits with probability a (1 + d)^-b, where a is alpha_split and "
        "b is beta_split. The default depends on the method.",
    )
    beta_split: float | None = parameter(
        None,
        real(0, low_allowed=True),
        "Prior: larger values make deep trees rarer; see alpha_split.",
    )
    max_leaves: int | None = parameter(
        None,
        whole(1),
        "Largest number of leaves of a tree, by default 256. It is only a safeguard: the prior "
        "should keep trees well below it.",
    )
    n_chains: int | None = parameter(
        None,
        whole(1),
        "Number of independent chains, whose agreement is checked, by default 4; SMC: islands of "
        "particles.",
    )
    n_warmup: int | None = parameter(
        None,
        whole(0),
        "Iterations per chain that adapt the sampler and are not kept, by default 500, or 200 "
        "with the authors' settings. SMC has none.",
    )
    n_draws: int | None = parameter(
        None,
        whole(1),
        "Trees kept per chain, by default 1000, or 800 with the authors' settings; SMC: "
        "particles per island.",
        brief="Trees kept per chain.",
    )
    target_rhat: float | None = parameter(
        None,
        real(1),
        "Continue beyond n_draws until every R-hat is at most this value, such as 1.01, and every "
        "effective sample size at least 400.",
        brief="Sample until R-hat is at most this.",
    )
    max_draws: int | None = parameter(
        None,
        whole(1),
        f"With target_rhat: limit of draws per chain, by default {MAX_DRAWS_FACTOR} times n_draws.",
    )
    max_seconds: float | None = parameter(
        None,
        real(0),
        "Time limit: end the run after this many seconds, compilation excluded, with the draws "
        "made by then. With target_rhat it is the only limit unless max_draws is given.",
        brief="Time limit in seconds.",
    )
    warm_start: bool = parameter(
        False,
        flag(),
        "Keep the chains, and continue those of the last fit, to a larger n_draws.",
    )
    checkpoint: str | os.PathLike[str] | None = parameter(  # noqa: RUF009
        None, path(), "File in which the run is stored; the same call then resumes it."
    )
    checkpoint_seconds: float = parameter(
        60.0,
        real(0, low_allowed=True),
        "Seconds between two checkpoints; more if writing would take over 1% of the time.",
    )
    categorical_features: Any = parameter(  # noqa: RUF009
        "from_dtype",
        anything("str, array or None"),
        'Columns that are categories: "from_dtype" for the text, category and boolean columns of '
        "a table; or names, numbers or a mask of columns; None for none. Splits on them are on "
        "sets of levels.",
    )
    dtype: str = parameter(
        "float64",
        one_of("float64", "float32"),
        '"float32" stores inputs in half the memory, rounded in both fit and predict.',
    )
    n_jobs: int | None = parameter(
        None,
        integer(),
        "Threads, for the chains in fit and for the rows in predict; -1 for all cores. None means "
        "1, unless a joblib.parallel_config context says otherwise. Results do not depend on it.",
    )
    random_state: RandomState = parameter(  # noqa: RUF009
        None, anything("int or RandomState"), "Seed of the random numbers."
    )
    progress: bool | None = parameter(
        None,
        flag(),
        "True shows a progress bar and then the diagnosis, False shows neither; None shows the bar "
        "on a terminal and in notebooks.",
    )

    def __new__(cls, *args: Any, **given: Any) -> Self:
        for name, value in given.items():
            if name not in cls.__dataclass_fields__ and (owner := _owner(name, given)):
                raise TypeError(
                    f"{name} is a parameter of the method, not of {cls.__name__}: give "
                    f"method={owner}({name}={value!r}), with {owner} from hamiltree.methods"
                )
        new: Self = super().__new__(cls)
        return new

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``method__replicas=6`` sets the parameter of the method.

        A method that is given by name is first replaced by an object.
        """
        prefix = "method__"
        own = {name: value for name, value in params.items() if not name.startswith(prefix)}
        for name in own:
            if name not in self.get_params(deep=False) and _owner(name, {}):
                raise ValueError(f"{name} is a parameter of the method: set {prefix}{name}")
        super().set_params(**own)
        fields = {n.removeprefix(prefix): v for n, v in params.items() if n.startswith(prefix)}
        if fields:
            method = self.method
            if not isinstance(method, Method):
                method = chosen(method, self.preset)
            self.method = method.set_params(**fields)
        return self


def _owner(name: str, given: dict[str, Any]) -> str:
    """The class of a method that has this parameter, the given one if it can be; or nothing."""
    owners = {key: cls for key, cls in METHODS.items() if name in cls.__dataclass_fields__}
    method = given.get("method", "hmc-df")
    chosen_name = method.name if isinstance(method, Method) else method
    if chosen_name in owners:
        return owners[chosen_name].__name__
    return next((cls.__name__ for cls in owners.values()), "")
