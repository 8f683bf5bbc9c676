"""Comparison of models of the same rows: which predicts best, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas

from ..utils.notebook import html_of_text
from .given import posterior_of
from .loo import Loo, loo
from .posterior import Posterior

CLEAR = 4.0
"""Differences of elpd below it are small whatever their error (Sivula et al. 2020)."""


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """Several models of the same rows, the best first; prints as a table."""

    table: pandas.DataFrame
    """By name: elpd and its standard error se; elpd_diff, how much lower than the best, and
    diff_se, its standard error over rows; p, effective parameters; unreliable, rows with a large
    Pareto k."""
    loo: dict[str, Loo]
    """By name, in the order of the table."""

    @property
    def sentence(self) -> str:
        """Which models are clearly worse than the best."""
        best, *others = self.table.index
        clear: list[str] = []
        close: list[str] = []
        for name in others:
            row = self.table.loc[name]
            worse = row["elpd_diff"] < -max(CLEAR, 2 * row["diff_se"])
            (clear if worse else close).append(str(name))
        parts = []
        if clear:
            parts.append(f"{_quoted([best])} predicts better than {_quoted(clear)}")
        if close:
            parts.append(
                f"{_quoted([best, *close])} cannot be told apart: their differences are below "
                f"{CLEAR:g} or below two standard errors"
            )
        text = "; ".join(parts) + "."
        unreliable = [name for name, own in self.loo.items() if len(own.unreliable)]
        if unreliable:
            text += (
                f" Some rows have unreliable estimates for {_quoted(unreliable)}: print their "
                "loo() to see which, and what to do."
            )
        return text

    def __str__(self) -> str:
        formats = dict.fromkeys(("elpd", "se", "elpd_diff", "diff_se", "p"), "{:.1f}".format)
        return f"{self.table.to_string(formatters=formats)}\n{self.sentence}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_of_text(str(self))


def _quoted(names: Sequence[Any]) -> str:
    """Names of models, which may be several words, in a sentence."""
    *first, last = (f'"{name}"' for name in names)
    return f"{', '.join(first)} and {last}" if first else last


def compare(models: Mapping[str, Any] | Sequence[Any]) -> Comparison:
    """Compare fitted models of the same rows by leave-one-out cross-validation.

    Parameters
    ----------
    models : sequence, or mapping from names
        Fitted estimators, or their posteriors. Without names they are "model 0", "model 1", ...

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If there are fewer than two, or they were not fitted to the same targets in the same order.

    Examples
    --------
    >>> import hamiltree
    >>> comparison = hamiltree.compare({"soft splits": model, "hard splits": hard})
    >>> print(comparison)  # doctest: +ELLIPSIS
                     elpd ...
    """
    if not isinstance(models, Mapping):
        models = {f"model {number}": model for number, model in enumerate(models)}
    if len(models) < 2:
        raise ValueError(f"compare needs at least two models, got {len(models)}")
    posteriors = {str(name): posterior_of(model) for name, model in models.items()}
    first, *others = (_observed(posterior) for posterior in posteriors.values())
    for name, other in zip(list(posteriors)[1:], others, strict=True):
        if len(other) != len(first) or not np.array_equal(other, first):
            raise ValueError(
                f"{name} was not fitted to the same targets as {next(iter(posteriors))}: only "
                "models of the same rows in the same order can be compared"
            )
    found = {name: loo(posterior) for name, posterior in posteriors.items()}
    ordered = dict(sorted(found.items(), key=lambda item: _lowness(item[1].elpd)))
    best = next(iter(ordered.values()))
    rows = []
    for own in ordered.values():
        difference = own.elpd_i - best.elpd_i
        rows.append(
            {
                "elpd": own.elpd,
                "se": own.se,
                "elpd_diff": own.elpd - best.elpd,
                "diff_se": float(np.sqrt(len(difference) * difference.var())),
                "p": own.p,
                "unreliable": len(own.unreliable),
            }
        )
    return Comparison(pandas.DataFrame(rows, index=list(ordered)), ordered)


def _lowness(elpd: float) -> float:
    """For sorting: what could not be computed comes last."""
    return np.inf if np.isnan(elpd) else -elpd


def _observed(posterior: Posterior) -> Any:
    """Targets as the user gave them."""
    training, classes = posterior.data("compare"), posterior.preprocessing.classes
    return training.y if classes is None else classes[training.y]
