"""Draw the picture of README and index: ``python docs/images/why.py`` (four minutes).

How often is a patient diseased to whom a model gives a probability? Ten random halves of the
heart data: trees learn from one half and predict the other. Prints what the caption says.
"""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from make import converged, save
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from scipy import stats
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from hamiltree import BayesianTreeClassifier
from hamiltree.datasets import load_heart
from hamiltree.plots.style import FAINT, INK, MUTED, clean, colour

N_SPLITS = 10
GROUPS = np.array([0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0])
"""Bounds of the groups by predicted probability."""
LEAST = 1e-3
"""Smallest probability that counts: a leaf that says 0 would score minus infinity."""
NAMES = {
    "plain": "Plain tree (CART)",
    "pruned": "Pruned tree (CART)",
    "ours": "hamiltree, all sampled trees",
}


def main() -> None:
    matplotlib.use("Agg")
    X, y = load_heart(return_X_y=True)
    diseased = (y == "diseased").to_numpy()
    predicted: dict[str, list[np.ndarray]] = {name: [] for name in NAMES}
    happened, worst = [], 0.0
    for seed in range(N_SPLITS):
        X_train, X_test, y_train, y_test = train_test_split(
            X, diseased, test_size=0.5, random_state=seed, stratify=diseased
        )
        happened.append(y_test)
        plain = DecisionTreeClassifier(random_state=seed)
        grid = {"decisiontreeclassifier__ccp_alpha": [0.0, *np.geomspace(1e-3, 0.1, 12)]}
        pruned = GridSearchCV(on_numbers(plain), grid, scoring="neg_log_loss")
        ours = converged(BayesianTreeClassifier, X_train, y_train)
        worst = max(worst, *ours.posterior_.diagnose().rhat.values())
        for name, model in (("plain", on_numbers(plain)), ("pruned", pruned)):
            predicted[name].append(model.fit(X_train, y_train).predict_proba(X_test)[:, 1])
        predicted["ours"].append(ours.predict_proba(X_test)[:, 1])
    draw({k: np.concatenate(v) for k, v in predicted.items()}, np.concatenate(happened))
    save("why", **{"R-hat": f"{worst:.4f}"})


def on_numbers(tree: DecisionTreeClassifier):
    """CART takes no text columns: they become columns of 0 and 1, and missing cells medians."""
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        (SimpleImputer(strategy="median"), make_column_selector(dtype_include="number")),
        sparse_threshold=0,
    )
    return make_pipeline(encoder, tree)


def draw(predicted: dict[str, np.ndarray], happened: np.ndarray) -> None:
    _, axes = plt.subplots(1, 3, figsize=(10, 3.9), sharey=True, layout="constrained")
    for k, (ax, (name, title)) in enumerate(zip(axes, NAMES.items(), strict=True)):
        p = predicted[name]
        loss = log_loss(happened, np.clip(p, LEAST, 1 - LEAST))
        accuracy = accuracy_score(happened, p > 0.5)
        print(f"{title}: log loss {loss:.2f}, accuracy {accuracy:.3f}")
        reliability(ax, p, happened, colour((5, 1, 0)[k]))
        ax.set_title(title, loc="left", weight="bold")
        ax.text(
            0.97, 0.05, f"log loss {loss:.2f}\naccuracy {accuracy:.0%}", ha="right",
            color=INK, size=10, transform=ax.transAxes,
        )  # fmt: skip
    axes[1].set_xlabel("predicted probability of heart disease")
    axes[0].set_ylabel("share that was diseased")


def reliability(ax: Axes, p: np.ndarray, happened: np.ndarray, of_model: str) -> None:
    """A dot per group of predictions, as large as the group, with a 90% interval."""
    ax.plot([0, 1], [0, 1], color=MUTED, lw=0.8, ls=(0, (4, 3)), zorder=1)
    group = np.clip(np.searchsorted(GROUPS, p, side="right") - 1, 0, len(GROUPS) - 2)
    for k in np.unique(group):
        chosen = group == k
        n, hits, x = chosen.sum(), happened[chosen].sum(), p[chosen].mean()
        low, high = stats.beta.ppf([0.05, 0.95], hits + 0.5, n - hits + 0.5)
        ax.vlines(x, low, high, color=of_model, lw=1.5, zorder=2)
        size = 500 * n / len(p) + 12
        ax.scatter(x, hits / n, s=size, color=of_model, edgecolor="white", lw=0.8, zorder=3)
        if n >= 0.15 * len(p) and abs(x - hits / n) > 0.1:
            text = f"says {x:.0%}:\n{hits / n:.0%} were"
            left = x > 0.5
            ax.annotate(
                text, (x, hits / n), (-13 if left else 13, 0), textcoords="offset points",
                ha="right" if left else "left", va="center", color=INK, size=9,
                bbox={"fc": "white", "ec": "none", "pad": 1.0}, zorder=4,
            )  # fmt: skip
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axis.set_ticks(np.linspace(0, 1, 6))
    ax.grid(color=FAINT, lw=0.4)
    ax.set(xlim=(-0.06, 1.06), ylim=(-0.06, 1.06), aspect="equal")
    clean(ax)


if __name__ == "__main__":
    main()
