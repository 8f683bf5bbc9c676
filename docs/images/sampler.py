"""Draw the pictures of docs/sampler.md: ``python docs/images/sampler.py`` (a minute or two)."""

from __future__ import annotations

import warnings
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from make import save
from matplotlib.axes import Axes
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from hamiltree import BayesianTreeRegressor
from hamiltree.core.scan.proposals import draw_in_column_by_scan
from hamiltree.core.scan.rows import NEW_LEAF
from hamiltree.datasets import make_cgm
from hamiltree.methods import HMCDF
from hamiltree.plots.style import FAINT, INK, MUTED, clean, colour
from hamiltree.samplers.common import Problem
from hamiltree.samplers.rjhmc import RJHMC, RJHMCChain


def main() -> None:
    matplotlib.use("Agg")
    warnings.simplefilter("ignore", ConvergenceWarning)
    draw_soft_splits()
    draw_moves()
    draw_mixing()
    draw_scan()


# ------------------------------------------------------------------ softness


def draw_soft_splits() -> None:
    """One split at three values of h; the leaves of a tree of two splits."""
    x = np.linspace(0, 1, 1001)
    _, (one, tree) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
    for k, h in enumerate((0.1, 0.03, 0.0)):
        right = go_right(x, 0.4, h)
        one.plot(x, right, color=colour(k), label=f"h = {h:g}")
    one.set(xlabel="feature, scaled to [0, 1]", ylabel="probability of going right")
    one.set_title("one split at 0.4", loc="left")
    one.legend(frameon=False, fontsize=8)
    first, second = go_right(x, 0.35, 0.04), go_right(x, 0.7, 0.04)
    shares = [1 - first, first * (1 - second), first * second]
    tree.stackplot(x, shares, colors=[colour(k) for k in range(3)], alpha=0.75)
    for place, name in ((0.12, "leaf 1"), (0.53, "leaf 2"), (0.87, "leaf 3")):
        tree.text(place, 0.5, name, ha="center", color="white", weight="bold")
    tree.set(xlabel="feature, scaled to [0, 1]", ylabel="probability of each leaf", xlim=(0, 1))
    tree.set_title("a tree with splits at 0.35 and 0.7, h = 0.04", loc="left")
    for ax in (one, tree):
        clean(ax)
    save("soft-splits")


def go_right(x: Any, threshold: float, h: float) -> Any:
    return (x > threshold).astype(float) if h == 0 else 1 / (1 + np.exp(-(x - threshold) / h))


# ------------------------------------------------------------------ moves

Node = tuple[str, Any, Any] | str
"""A rule with what is below it, or the name of a leaf or subtree; capitals are subtrees."""

MOVES: list[tuple[str, Node, Node]] = [
    ("grow  |  prune", ("f", "1", "2"), ("f", ("*g", "+a", "+b"), "2")),
    (
        "insert  |  delete",
        ("f", "1", ("g", "2", "3")),
        ("f", "1", ("*k", "+a", ("g", "2", "3"))),
    ),
    ("change", ("f", "A", "B"), ("*g", "A", "B")),
    ("regrow", ("f", "1", ("g", "2", "3")), ("f", "1", ("*k", "+a", ("*m", "+b", "+c")))),
    (
        "transpose",
        ("f", ("g", "A", "B"), ("g'", "C", "D")),
        ("g", ("f", "A", "C"), ("*f'", "B", "D")),
    ),
    ("swap", ("f", ("g", "A", "B"), "C"), ("*g", ("*f", "A", "B"), "C")),
    ("relocate", ("f", "A", ("g", "1", "B")), ("f", ("*k", "A", "+a"), "B")),
    ("rotate", ("f", ("g", "A", "B"), "C"), ("*g", "A", ("*f", "B", "C"))),
]


def draw_moves() -> None:
    """Before and after each move; what is new or has moved is coloured."""
    _, axes = plt.subplots(3, 3, figsize=(9.5, 6.9), layout="constrained")
    for ax, (name, before, after) in zip(axes.ravel(), MOVES, strict=False):
        width = draw_tree(ax, before, 0.0)
        ax.annotate(
            "", (width + 1.7, -1), (width + 0.5, -1),
            arrowprops={"arrowstyle": "<->" if "|" in name else "->", "color": MUTED, "lw": 1.5},
        )  # fmt: skip
        end = draw_tree(ax, after, width + 2.2)
        ax.set(xlim=(end / 2 - 4.6, end / 2 + 4.6), ylim=(-3.5, 0.6))
        ax.set_title(name, color=INK, size=11, weight="bold")
        ax.axis("off")
    key = axes.ravel()[-1]
    key.axis("off")
    lines = [
        ((0.78, "f"), "a split, by its feature"),
        ((0.60, "1"), "a leaf"),
        ((0.42, "A"), "a leaf or a subtree, kept"),
        ((0.24, "*g"), "a rule from a scan, or one that\nhas moved (swap, rotate)"),
        ((0.06, "+a"), "a new leaf"),
    ]
    for (y, label), text in lines:
        draw_node(key, 0.08, y, label, split=label in ("f", "*g"), transform=key.transAxes)
        key.text(0.18, y, text, va="center", color=INK, size=9, transform=key.transAxes)
    save("moves")


def draw_tree(ax: Axes, node: Node, left: float) -> float:
    """Draw with leaves one apart from ``left`` on; returns where the last one is."""
    places: list[float] = []

    def place(node: Node, depth: int) -> float:
        if isinstance(node, str):
            x = left + len(places)
            places.append(x)
        else:
            below = [place(child, depth + 1) for child in node[1:]]
            x = sum(below) / 2
            for child in below:
                ax.plot([x, child], [-depth, -depth - 1], color=FAINT, lw=1.5, zorder=0)
        label = node if isinstance(node, str) else node[0]
        draw_node(ax, x, -depth, label, split=not isinstance(node, str))
        return x

    place(node, 0)
    return places[-1]


def draw_node(ax: Axes, x: float, y: float, label: str, *, split: bool, **options: Any) -> None:
    new = label[0] in "*+"
    subtree = not split and label.isupper()
    face = colour(1) if new else "white"
    shape = "circle" if split else "round4" if subtree else "square"
    ax.text(
        x, y, label.lstrip("*+"), ha="center", va="center", size=9, color=INK,
        bbox={"boxstyle": f"{shape},pad=0.3", "fc": face, "ec": MUTED}, **options,
    )  # fmt: skip


# ------------------------------------------------------------------ what informed moves do


def draw_mixing() -> None:
    """Leaves of four chains with either kind of move, from the same seed."""
    data = make_cgm(400, random_state=0)
    _, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True, layout="constrained")
    for ax, moves in zip(axes, ("prior", "informed"), strict=True):
        model = BayesianTreeRegressor(method=HMCDF(moves=moves), random_state=0).fit(
            data.data, data.target
        )
        for chain, leaves in enumerate(model.posterior_.n_leaves):
            ax.plot(leaves + 0.08 * (chain - 1.5), color=colour(chain), lw=1)
        rhat = model.posterior_.diagnose().rhat["n_leaves"]
        ax.set_title(f'moves="{moves}": R-hat of the leaves {rhat:.3f}', loc="left")
        ax.set(xlabel="draw, after 500 iterations of warm-up")
        clean(ax)
    axes[0].set_ylabel("number of leaves")
    save("mixing")


# ------------------------------------------------------------------ a scan


def draw_scan() -> None:
    """The cells of one column of the iris data at the root, as the sampler computes them."""
    X, y = load_iris(return_X_y=True)
    low, high = X.min(axis=0), X.max(axis=0)
    columns = np.ascontiguousarray(((X - low) / (high - low)).T)
    column, h = 2, 0.02  # petal length
    sampler = RJHMC.build(Problem(columns, y, 3), HMCDF().configured(h=h), 0)
    state = RJHMCChain(sampler, np.random.default_rng(0)).state
    proposals, tree = state.proposals, state.tree
    tree.n_nodes[0], tree.size[0], tree.feature[0] = 1, 1, column
    tree.parent[0], tree.depth[0] = -1, 0
    rng = np.random.default_rng(0)
    draw_in_column_by_scan(proposals, tree, np.int64(0), NEW_LEAF, NEW_LEAF, rng)
    work = proposals.scan.cells
    cells = int(np.argmax(work.high == 1.0)) + 1
    edges = np.append(work.low[:cells], 1.0)
    widths = np.diff(edges)
    weight = work.weight[:cells]
    score = np.log(weight / widths)  # less that of the best
    density = (0.95 * weight / weight.sum() + 0.05 * widths / widths.sum()) / widths
    _, (rows, scores, proposed) = plt.subplots(
        3, 1, figsize=(8, 5), sharex=True, height_ratios=[0.8, 2, 2], layout="constrained"
    )
    jitter = np.random.default_rng(0).uniform(-0.3, 0.3, len(y))
    for k in range(3):
        chosen = y == k
        rows.scatter(columns[column][chosen], k + jitter[chosen], s=8, color=colour(k))
    rows.set(yticks=range(3), yticklabels=load_iris().target_names)
    rows.set_title("rows of the node", loc="left")
    scores.stairs(score, edges, baseline=None, color=INK)
    scores.set(ylabel="log score", ylim=(-42, 4))  # weights are cut off at exp(-40)
    scores.set_title("score of a cut that makes two leaves", loc="left")
    proposed.stairs(density, edges, color=colour(1), fill=True)
    proposed.set(
        ylabel="density", xlabel="threshold on petal length, scaled to [0, 1]", xlim=(0, 1)
    )
    proposed.set_title("proposal density: 95% by score, 5% by the prior", loc="left")
    for ax in (rows, scores, proposed):
        clean(ax)
    save("scan")


if __name__ == "__main__":
    main()
