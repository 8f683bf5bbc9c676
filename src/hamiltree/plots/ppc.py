"""Do data that the model makes look like the data? Predictive checks, posterior and prior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import ArrayLike, NDArray
from scipy.stats import gaussian_kde

from ..posterior import posterior_of
from .style import INK, MUTED, clean, colour, new_axes, towards_white

if TYPE_CHECKING:
    from ..posterior import Posterior

GRID = 200
KDE_ROWS = 2000
"""Rows beyond which a density estimate only gets slower."""


def plot_ppc(
    posterior: Posterior,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    n_samples: int = 50,
    prior: bool = False,
    seed: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Predictive check: targets simulated from the model, together with the observed targets.

    Regression: density of the observed targets (dark) and of ``n_samples`` replicated sets of them
    (light). Classification: share of each class, observed (bar) and in 90% of the replicated sets
    (line, with a dot at their median). Each set comes from a single tree.

    Parameters
    ----------
    posterior : Posterior, or a fitted model
    X, y : array-like, optional
        Rows and their targets; by default the training rows.
    n_samples : int
        Number of replicated data sets.
    prior : bool
        Whether to use trees from the prior, not the posterior: a prior predictive check.
    seed : int

    Examples
    --------
    >>> from hamiltree.plots import plot_ppc
    >>> ax = plot_ppc(model)
    """
    posterior = posterior_of(posterior)
    classes = posterior.preprocessing.classes
    if X is None:
        training = posterior.data("plot_ppc")
        X = training.X
        y = training.y if classes is None else classes[training.y]
    elif y is None:
        raise ValueError("plot_ppc compares with observed targets: give y with X")
    observed = np.asarray(y)
    replicated = _replicated(posterior, X, n_samples, prior, seed)
    if observed.shape != replicated.shape[1:]:
        raise ValueError(
            f"X and y must have as many rows, got {replicated.shape[1]} and {len(observed)}"
        )
    ax = new_axes(ax, 6.0, 3.6)
    if classes is None:
        _densities(ax, observed.astype(np.float64), replicated)
    else:
        _shares(ax, observed, replicated, classes)
    clean(ax)
    return ax


def _replicated(posterior: Posterior, X: ArrayLike, n: int, prior: bool, seed: int) -> NDArray[Any]:
    """[n, row]; new observations of the rows, each set from one tree."""
    if prior:
        return posterior.sample_prior(X, n, seed, observations=True)
    out: NDArray[Any] = posterior.equally_weighted(n).sample_predictive(X, seed)[0]
    return out


def _densities(ax: Axes, observed: NDArray[Any], replicated: NDArray[Any]) -> None:
    inside = np.quantile(replicated, [0.01, 0.99])
    low, high = min(inside[0], observed.min()), max(inside[1], observed.max())
    grid = np.linspace(low - 0.08 * (high - low), high + 0.08 * (high - low), GRID)
    for place, values in enumerate(replicated):
        ax.plot(
            grid, _density(values, grid), color=towards_white(colour(0), 0.6), lw=0.6, alpha=0.6,
            zorder=1, label=None if place else "replicated",
        )  # fmt: skip
    ax.plot(grid, _density(observed, grid), color=INK, lw=2, zorder=2, label="observed")
    ax.legend(frameon=False, fontsize=8, labelcolor=INK)
    ax.set_ylim(bottom=0)
    ax.set_yticks([])
    ax.set_xlabel("target")
    ax.set_ylabel("density")


def _density(values: NDArray[Any], grid: NDArray[Any]) -> NDArray[Any]:
    own = values[:: max(1, len(values) // KDE_ROWS)]
    if len(own) < 2 or np.ptp(own) == 0:  # a point mass has no density
        return np.zeros(len(grid))
    density: NDArray[Any] = gaussian_kde(own)(grid)
    return density


def _shares(
    ax: Axes, observed: NDArray[Any], replicated: NDArray[Any], classes: NDArray[Any]
) -> None:
    places = np.arange(len(classes))
    shares = np.array([(replicated == label).mean(axis=1) for label in classes])
    low, middle, high = np.quantile(shares, [0.05, 0.5, 0.95], axis=1)
    ax.bar(
        places, [(observed == label).mean() for label in classes], width=0.6, zorder=1,
        color=[towards_white(colour(int(k)), 0.45) for k in places], label="observed",
    )  # fmt: skip
    ax.vlines(places, low, high, color=INK, lw=2, zorder=2, label="90% of the replicated sets")
    ax.plot(places, middle, "o", color=INK, markersize=5, markeredgecolor="white", zorder=3)
    ax.legend(frameon=False, fontsize=8, labelcolor=INK)
    ax.set_xticks(places, [str(label) for label in classes])
    ax.set_ylim(0, 1.15 * max(float(high.max()), 0.05))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_ylabel("share of the rows")
    ax.tick_params(axis="x", length=0, color=MUTED)
