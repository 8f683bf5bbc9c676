"""Draw the pictures of the documentation: ``python docs/images/make.py`` (two minutes).

``python docs/images/make.py seeds`` fits the tree of the first pages with six seeds one after the
other, and prints how long each ran and which shapes are the most probable.

Every picture comes from chains that agree: a fit that does not reach ``TARGET_RHAT`` ends this
program. Files say what they show: ``R-hat`` is the worst of the fit, and ``Description`` of a
picture of a tree is the same tree as text, which ``tests/test_pictures.py`` compares with the
pages.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor, plots
from hamiltree.datasets import load_heart, make_cgm

HERE = Path(__file__).parent
DPI = 200
TARGET_RHAT = 1.01
PAGES = {"h": 0, "max_draws": 100_000}
"""As on the pages."""


def main() -> None:
    matplotlib.use("Agg")
    X, y = load_heart(return_X_y=True)
    model = converged(BayesianTreeClassifier, X, y, **PAGES)
    shape = model.posterior_.shapes(1)[0]
    print(model.posterior_.summary(), shape.tree.to_text(), sep="\n")
    shape.tree.plot()
    save("tree", model, Description=shape.tree.to_text())
    plots.plot_trace(model)
    save("trace", model)
    plots.plot_rank(model)
    save("rank", model)
    plots.plot_leaves(model)
    save("leaves", model)
    plots.plot_inclusion(model)
    save("inclusion", model)
    plots.plot_thresholds(model, "st_depression")
    save("thresholds", model)
    plots.plot_partial_dependence(model, "vessels", label="diseased")
    save("partial-dependence", model)
    plots.plot_similarity(model)
    save("similarity", model)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    on_half = converged(BayesianTreeClassifier, X, y)
    plots.plot_calibration(on_half, X_test, y_test)
    save("calibration", on_half)
    train, test = make_cgm(400, random_state=0), make_cgm(120, random_state=1)
    numbers = converged(BayesianTreeRegressor, train.data, train.target)
    plots.plot_predictions(numbers, test.data, test.target)
    save("predictions", numbers)
    plots.plot_ppc(numbers)
    save("ppc", numbers)


def compare_seeds() -> None:
    """Whether another seed would have shown another tree."""
    X, y = load_heart(return_X_y=True)
    for seed in range(6):
        model = converged(BayesianTreeClassifier, X, y, **PAGES, random_state=seed)
        print(f"seed {seed}: {model.posterior_.n_draws} draws, R-hat {worst_rhat(model):.3f}")
        for shape in model.posterior_.shapes(2):
            print(f"  {shape.probability:.1%} {shape.text} {shape.tree.certainty.round(2)}")


def converged(estimator: Any, X: Any, y: Any, **parameters: Any) -> Any:
    """A fit as the pages have it; no picture is drawn of chains that disagree."""
    parameters = {"random_state": 0} | parameters
    model = estimator(target_rhat=TARGET_RHAT, **parameters).fit(X, y)
    if worst_rhat(model) > TARGET_RHAT:
        sys.exit(f"the chains do not agree:\n{model.posterior_.diagnose()}")
    return model


def worst_rhat(model: Any) -> float:
    """Of everything that ``diagnose`` compares."""
    return max(model.posterior_.diagnose().rhat.values())


def save(name: str, model: Any = None, **about: str) -> None:
    if model is not None:
        about["R-hat"] = f"{worst_rhat(model):.4f}"
    plt.savefig(HERE / f"{name}.png", dpi=DPI, metadata=about)
    plt.close("all")
    print(HERE / f"{name}.png")


if __name__ == "__main__":
    compare_seeds() if sys.argv[1:] == ["seeds"] else main()
