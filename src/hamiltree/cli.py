"""The command line; ``hamiltree --help`` says what there is."""

from __future__ import annotations

import platform
import time
import warnings
from pathlib import Path
from typing import Annotated

import numba
import numpy as np
import typer
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from . import __version__
from .datasets import load_bcw
from .estimators import BayesianTreeClassifier
from .experiments.cli import app as paper
from .posterior import Posterior
from .tree import Tree

app = typer.Typer(
    help="Bayesian decision trees by Hamiltonian Monte Carlo.",
    no_args_is_help=True,
    add_completion=False,
)
app.add_typer(paper, name="paper")
console = Console(highlight=False, soft_wrap=True)


@app.command()
def version() -> None:
    """Print the versions of hamiltree, Python and numba."""
    console.print(
        f"hamiltree {__version__} (Python {platform.python_version()}, numba {numba.__version__})"
    )


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the plots.")] = Path("demo-output"),
    seed: Annotated[int, typer.Option(help="Seed of the split and of the sampler.")] = 0,
) -> None:
    """Fit trees to biopsies of breast tumours, and show what the posterior knows."""
    data = load_bcw(as_frame=True)
    labels = data.target_names[data.target]
    X, X_test, y, y_test = train_test_split(
        data.data, labels, test_size=0.3, random_state=seed, stratify=labels
    )
    console.print(
        f"Breast Cancer Wisconsin (Original): {len(X)} biopsies to learn from, {len(X_test)} to "
        f"test on, {X.shape[1]} features graded 1 to 10."
    )
    model = BayesianTreeClassifier(random_state=seed, n_jobs=-1)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the summary ends with its sentence
        model.fit(X, y)
    console.print(f"Sampled in {time.perf_counter() - started:.1f} s.\n")
    posterior = model.posterior_
    console.print(posterior.summary(), markup=False)

    _heading("On biopsies it has not seen")
    interval = model.predict_interval(X_test.iloc[:1], coverage=0.9)[0, 1]
    probability = model.predict_proba(X_test.iloc[:1])[0, 1]
    console.print(f"accuracy, all trees together   {model.score(X_test, y_test):.3f}")
    console.print(f"accuracy, one tree at a time   {model.single_tree_score(X_test, y_test):.3f}")
    console.print(
        f"the first one                  malignant with probability {probability:.3f} "
        f"(90 % interval {interval[0]:.3f} to {interval[1]:.3f}); it was {y_test[0]}"
    )

    best = np.unravel_index(posterior.log_posterior.argmax(), posterior.log_posterior.shape)
    tree = posterior.tree(int(best[0]), int(best[1]))
    _heading("The most probable of the sampled trees")
    console.print(tree.to_text(), markup=False)

    _heading("Pictures")
    for path in _save_plots(posterior, tree, out):
        console.print(f"{path}", markup=False)


def _save_plots(posterior: Posterior, tree: Tree, out: Path) -> list[Path]:
    # Loading matplotlib takes a second, which no other command should wait for.
    import matplotlib
    import matplotlib.pyplot as plt

    from .plots import plot_leaves, plot_trace

    matplotlib.use("Agg")
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, draw in {
        "tree": tree.plot,
        "leaves": lambda: plot_leaves(posterior),
        "trace": lambda: plot_trace(posterior),
    }.items():
        draw()
        path = out / f"{name}.png"
        plt.savefig(path, dpi=150)
        plt.close()
        paths.append(path)
    return paths


def _heading(text: str) -> None:
    console.print(f"\n[bold]{text}[/bold]")
