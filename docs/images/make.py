"""Draw the pictures of the documentation: ``python docs/images/make.py`` (half a minute)."""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor, plots
from hamiltree.datasets import load_bcw, make_cgm

HERE = Path(__file__).parent


def main() -> None:
    matplotlib.use("Agg")
    warnings.simplefilter("ignore", ConvergenceWarning)
    data = load_bcw(as_frame=True)
    X, y = data.data, data.target_names[data.target]
    biopsies = BayesianTreeClassifier(random_state=0, n_jobs=-1).fit(X, y).posterior_
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    on_part = BayesianTreeClassifier(random_state=0, n_jobs=-1).fit(X, y).posterior_
    cgm, cgm_test = make_cgm(400, random_state=0), make_cgm(120, random_state=1)
    numbers = BayesianTreeRegressor(random_state=0, n_jobs=-1).fit(cgm.data, cgm.target).posterior_
    print(biopsies.best_tree().to_text())
    biopsies.best_tree().plot()
    save("best-tree")
    plots.plot_trace(biopsies)
    save("trace")
    plots.plot_rank(biopsies)
    save("rank")
    plots.plot_leaves(biopsies)
    save("leaves")
    plots.plot_inclusion(biopsies)
    save("inclusion")
    plots.plot_thresholds(biopsies, "bare_nuclei")
    save("thresholds")
    plots.plot_partial_dependence(biopsies, "bare_nuclei")
    save("partial-dependence")
    plots.plot_similarity(biopsies)
    save("similarity")
    plots.plot_calibration(on_part, X_test, y_test)
    save("calibration")
    plots.plot_predictions(numbers, cgm_test.data, cgm_test.target)
    save("predictions")


def save(name: str) -> None:
    plt.savefig(HERE / f"{name}.png", dpi=100)
    plt.close("all")
    print(HERE / f"{name}.png")


if __name__ == "__main__":
    main()
