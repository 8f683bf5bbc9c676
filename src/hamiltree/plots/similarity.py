"""Which rows the trees put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from ..posterior import posterior_of
from ..utils.arrays import FloatArray, evenly
from .style import clean, colour, legend_above, new_axes

if TYPE_CHECKING:
    from ..posterior import Posterior

ROWS = 300
TOGETHER = LinearSegmentedColormap.from_list("together", ["white", colour(4), colour(0), "#00263d"])


def plot_similarity(
    posterior: Posterior, X: ArrayLike | None = None, ax: Axes | None = None
) -> Axes:
    """Probability that two rows end in the same leaf, for each pair of rows of ``X``.

    Rows, at most 300 and evenly spaced, are ordered by hierarchical clustering, so blocks on the
    diagonal are groups that most trees agree on. Without ``X``, the training rows; the strip on
    the left then shows their classes.

    Examples
    --------
    >>> from hamiltree.plots import plot_similarity
    >>> ax = plot_similarity(model, X_test)
    """
    posterior = posterior_of(posterior)
    classes = posterior.preprocessing.classes
    if X is None:
        training = posterior.data("plot_similarity")
        chosen = evenly(len(training.y), ROWS)
        rows, codes = training.X[chosen], training.y[chosen]
    else:
        rows, codes = posterior.preprocessing.rows(X), None
        rows = rows[evenly(len(rows), ROWS)]
    together = posterior.similarity(rows)
    order = _by_cluster(together)
    ax = new_axes(ax, 5.2, 4.6)
    n = len(order)
    image = ax.imshow(
        together[np.ix_(order, order)], cmap=TOGETHER, vmin=0, vmax=1, interpolation="nearest"
    )
    if codes is not None and classes is not None:
        width = 0.03 * n
        for k, name in enumerate(classes):
            at = np.flatnonzero(codes[order] == k)
            ax.barh(
                at, width, height=1.0, left=-0.5 - 1.5 * width, color=colour(k), label=str(name)
            )
        ax.set_xlim(-0.5 - 1.5 * width, n - 0.5)
        legend_above(ax, len(classes))
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.7)
    bar.ax.spines["outline"].set_visible(False)
    bar.set_label("probability of the same leaf", size=9)
    bar.ax.tick_params(labelsize=8, length=0)
    ax.set_xlabel(f"{n} rows, ordered by similarity")
    ax.set_xticks([])
    ax.set_yticks([])
    clean(ax)
    ax.spines[:].set_visible(False)
    return ax


def _by_cluster(together: FloatArray) -> NDArray[np.intp]:
    """Rows that are often together next to each other."""
    if len(together) < 3:
        return np.arange(len(together))
    apart = 1.0 - (together + together.T) / 2
    np.fill_diagonal(apart, 0.0)
    condensed = squareform(np.maximum(apart, 0.0), checks=False)
    order: NDArray[np.intp] = leaves_list(linkage(condensed, "average", optimal_ordering=True))
    return order
