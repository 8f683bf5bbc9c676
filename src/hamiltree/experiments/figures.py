"""The paper's figures 3 to 5, from the runs behind the tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ..plots.style import INK, clean, colour, towards_white
from ..utils.arrays import FloatArray
from .configurations import HMC, METHODS
from .render import headings
from .restarts import burn_in_config
from .store import Store
from .tables import Run

TITLES = {
    "cgm": "CGM (synthetic)",
    "bcw": "Breast Cancer Wisconsin",
    "iris": "Iris",
    "wine": "Wine",
    "raisin": "Raisin",
}
TRUE_LEAVES = 5
WIDTH = 6.9
"""Inches; the text width of a two-column page."""


@dataclass(frozen=True)
class Series:
    """All restarts of one method on one data set, as the figures need them."""

    method: str
    preset: str
    burn_in: int
    scores: FloatArray
    """[restart, iteration] test score of the tree, burn-in included; SMC: [restart, 1]."""
    leaves: FloatArray
    """[restart, draw] after burn-in, with its weights."""
    weights: FloatArray

    @property
    def colour(self) -> str:
        return colour(METHODS.index(self.method))


def series_of(runs: Sequence[Run], dataset: str, store: Store) -> list[Series]:
    """In the order of the paper's tables."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if run.config["dataset"] == dataset:
            groups.setdefault((run.config["method"], run.config["preset"]), []).append(run)
    order = sorted(groups, key=lambda column: (METHODS.index(column[0]), column[1]))
    made = []
    for method, preset in order:
        members = groups[method, preset]
        parts = [_scores(run, store) for run in members]
        made.append(
            Series(
                method=method,
                preset=preset,
                burn_in=parts[0][0],
                scores=np.stack([scores for _, scores in parts]),
                leaves=np.stack([run.result.arrays["n_leaves"] for run in members]),
                weights=np.stack([run.result.arrays["weights"] for run in members]),
            )
        )
    return made


def _scores(run: Run, store: Store) -> tuple[int, FloatArray]:
    """Length of burn-in, and the test score of every iteration."""
    if run.config["method"] == "smc":
        name = "ensemble_test_acc" if run.split.n_classes else "ensemble_test_mse"
        return 0, np.array([run.result.values[name]])
    scores = run.result.arrays["score_by_iteration"]
    if run.config["method"] not in HMC:
        return run.config["cut"], scores
    watched = store.load(burn_in_config(run.config))
    if watched is None:
        raise RuntimeError("the burn-in of a run is missing from the store")
    before = watched.arrays["score_by_iteration"]
    return len(before), np.concatenate([before, scores])


def plot_leaf_counts(series: Sequence[Series]) -> Figure:
    """Figure 3: how often a draw has so many leaves; dots are the means of the restarts."""
    figure, axes = plt.subplots(
        len(series), 1, figsize=(WIDTH, 0.95 * len(series) + 0.6), sharex=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    largest = max(int(one.leaves.max()) for one in series)
    for ax, one, label in zip(axes[:, 0], series, _labels(series), strict=True):
        weights = (one.weights / one.weights.sum()).ravel()
        share = np.bincount(one.leaves.ravel().astype(int), weights, minlength=largest + 1)
        ax.bar(np.arange(len(share)), share, width=0.8, color=towards_white(one.colour, 0.55))
        means = (one.leaves * one.weights).sum(axis=1) / one.weights.sum(axis=1)
        top = 1.22 * share.max()
        ax.plot(means, np.full(len(means), 0.91 * top), "o", color=one.colour, markersize=4,
                markeredgecolor="white", markeredgewidth=0.5, clip_on=False)  # fmt: skip
        ax.axvline(TRUE_LEAVES, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
        ax.set_ylim(0, top)
        ax.set_ylabel(label, rotation=0, ha="right", va="center")
        ax.yaxis.set_major_locator(MaxNLocator(2))
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        clean(ax)
        ax.yaxis.label.set_color(one.colour)
    last = axes[-1, 0]
    last.set_xlim(0.4, largest + 0.6)
    last.xaxis.set_major_locator(MaxNLocator(integer=True))
    last.set_xlabel("number of leaves (dashed: the true tree; dots: means of the restarts)")
    return figure


def plot_cgm_error(series: Sequence[Series]) -> Figure:
    """Figure 4: test error against iterations; mean and one sd over the restarts.

    Both over a few neighbouring iterations together, here and below, so that lines can be read.
    """
    figure, ax = plt.subplots(figsize=(WIDTH, 3.6), layout="constrained")
    _plot_scores(ax, series, bin_edges(series, logarithmic=True))
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("iteration (dots: end of burn-in)")
    ax.set_ylabel("test MSE of one tree")
    _legend(figure, ax, series)
    return figure


def plot_real_accuracy(panels: Mapping[str, Sequence[Series]]) -> Figure:
    """Figure 5: the same with accuracies, one panel per data set."""
    rows = -(-len(panels) // 2)
    figure, axes = plt.subplots(
        rows, min(2, len(panels)), figsize=(WIDTH, 2.5 * rows + 0.4), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    for ax, (dataset, series) in zip(axes.flat, panels.items(), strict=False):
        low = _plot_scores(ax, series, bin_edges(series, logarithmic=False))
        ax.set_ylim(low - 0.01, min(ax.get_ylim()[1], 1.004))
        ax.set_title(TITLES[dataset])
        ax.set_xlabel("iteration (dots: end of burn-in)")
        ax.set_ylabel("test accuracy")
    _legend(figure, axes.flat[0], next(iter(panels.values())))
    return figure


def _plot_scores(ax: Axes, series: Sequence[Series], edges: FloatArray) -> float:
    """Lines with bands; returns a lower end of the axis that leaves the first steps out."""
    lows = []
    for one, label in zip(series, _labels(series), strict=True):
        scores = one.scores
        if one.method == "smc":  # particles have no iterations: their one value, all along
            scores = np.repeat(scores, int(edges[-1]) - 1, axis=1)
        centre, mean, sd = in_bins(scores, edges)
        style = (0, (3, 1)) if one.method in HMC and one.preset == "paper" else "-"
        ax.plot(centre, mean, color=one.colour, linewidth=1.3, linestyle=style, label=label)
        ax.fill_between(
            centre, np.maximum(mean - sd, 0.9 * mean.min()), mean + sd, color=one.colour,
            alpha=0.16, linewidth=0,
        )  # fmt: skip
        if 0 < one.burn_in < scores.shape[1]:
            ax.plot(one.burn_in, np.interp(one.burn_in, centre, mean), "o", color=one.colour,
                    markersize=5, markeredgecolor="white", markeredgewidth=0.8,
                    zorder=3)  # fmt: skip
        lows.append(float(np.min((mean - sd)[centre > 0.05 * edges[-1]], initial=np.inf)))
    ax.margins(x=0.01)
    clean(ax)
    return min(lows)


def bin_edges(series: Sequence[Series], logarithmic: bool) -> FloatArray:
    """First iterations of the bins over which scores are averaged, and the end of the last."""
    n = max(one.scores.shape[1] for one in series)
    edges = np.geomspace(1, n + 1, 160) if logarithmic else np.linspace(1, n + 1, 81)
    return np.unique(np.floor(edges + 1e-9))


def in_bins(scores: FloatArray, edges: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Centres of the bins; mean and sd over all restarts and the iterations of each."""
    edges = np.append(edges[edges <= scores.shape[1]], scores.shape[1] + 1)
    parts = [scores[:, int(a) - 1 : int(b) - 1] for a, b in pairwise(edges)]
    centre = (edges[:-1] + edges[1:] - 1) / 2
    return centre, np.array([p.mean() for p in parts]), np.array([p.std() for p in parts])


def _legend(figure: Figure, ax: Axes, series: Sequence[Series]) -> None:
    handles, labels = ax.get_legend_handles_labels()
    legend = figure.legend(
        handles, labels, loc="outside upper center", ncols=len(series), frameon=False, fontsize=9,
        labelcolor=INK, handlelength=1.4,
    )  # fmt: skip
    for line in legend.get_lines():
        line.set_linewidth(2.2)


def _labels(series: Sequence[Series]) -> list[str]:
    return headings([(one.method, one.preset) for one in series])


def save(figure: Figure, out: Path, name: str) -> Iterable[Path]:
    """As PDF, for a paper, and as PNG, to look at."""
    for ending in ("pdf", "png"):
        path = out / f"{name}.{ending}"
        figure.savefig(path, dpi=200)
        yield path
    plt.close(figure)
