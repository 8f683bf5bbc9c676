"""``hamiltree demo``: real data, from the table to the report, in a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from ..datasets import load_bcw
from ..estimators import BayesianTreeClassifier
from ..posterior.describe import summary_sentence
from .figures import save_figure
from .screen import Seed, examples, heading, in_options, out, warnings_as_notes

NAMES: dict[str, Any] = {
    "clump_thickness": "Clump thickness",
    "cell_size": "Uniformity of cell size",
    "cell_shape": "Uniformity of cell shape",
    "adhesion": "Marginal adhesion",
    "epithelial_size": "Size of epithelial cells",
    "bare_nuclei": "Bare nuclei",
    "bland_chromatin": "Bland chromatin",
    "normal_nucleoli": "Normal nucleoli",
    "mitoses": "Mitoses",
    "target": "tumour",
}
"""What a reader of the report sees; the table's own names are those of the data set."""


def mount(app: typer.Typer) -> None:
    app.command(epilog=examples("hamiltree demo", "hamiltree demo --out somewhere --seed 1"))(demo)


def demo(
    folder: Annotated[Path, typer.Option("--out", help="Folder for the files.")] = Path(
        "demo-output"
    ),
    seed: Seed = 0,
) -> None:
    """Fit trees to biopsies of breast tumours, and show the results."""
    data = load_bcw(as_frame=True)
    labels = data.target_names[data.target]
    X, X_test, y, y_test = train_test_split(
        data.data, labels, test_size=0.3, random_state=seed, stratify=labels
    )
    out.print(
        f"Is a breast tumour malignant? {len(X)} biopsies for training and {len(X_test)} for "
        f"testing,\nwith {X.shape[1]} features graded from 1 (normal) to 10 "
        "(Breast Cancer Wisconsin, Original).\n"
    )
    model = BayesianTreeClassifier(
        h=0, target_rhat=1.01, max_draws=20_000, random_state=seed, n_jobs=-1
    )
    with warnings_as_notes(ConvergenceWarning):  # the sentence below says it
        model.fit(X, y)
    posterior = model.posterior_
    info = posterior.info
    if info.compile_seconds:
        out.print(f"Compiled the sampler in {info.compile_seconds:.1f} s (only once).")
    out.print(
        f"Sampled {posterior.weights.size:,} decision trees in {info.seconds:.1f} s, with "
        f"{posterior.n_chains} independent chains."
    )

    heading("Predictions for the test biopsies")
    interval = model.predict_interval(X_test.iloc[:1], coverage=0.9)[0, 1]
    probability = model.predict_proba(X_test.iloc[:1])[0, 1]
    out.print(f"  accuracy, all trees together  {model.score(X_test, y_test):.1%}")
    out.print(f"  accuracy, one tree at a time  {model.single_tree_score(X_test, y_test):.1%}")
    out.print(
        f"  the first biopsy              malignant with probability {probability:.3f} "
        f"(90% interval {interval[0]:.3f} to {interval[1]:.3f}); it was {y_test[0]}"
    )

    heading("Summary")
    out.print(in_options(summary_sentence(posterior)), markup=False)

    heading("The tree with the highest posterior")
    out.print(posterior.best_tree().to_text(), markup=False)

    heading("Files")
    for path, what in _write(model, X_test, y_test, folder):
        out.print(f"  {escape(str(path)):<32} {what}")


def _write(
    model: BayesianTreeClassifier, X_test: Any, y_test: Any, folder: Path
) -> list[tuple[Path, str]]:
    from ..plots import plot_leaves, plot_trace  # not while someone reads --help

    posterior = model.posterior_
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {
        "tree.png": (posterior.best_tree().plot, "this tree as a picture"),
        "leaves.png": (lambda: plot_leaves(posterior), "the number of leaves of the trees"),
        "trace.png": (lambda: plot_trace(posterior), "the chains, draw by draw"),
    }
    written = []
    for name, (draw, what) in pictures.items():
        save_figure(draw, folder / name)
        written.append((folder / name, what))
    model.save(folder / "model.nc")
    written.append((folder / "model.nc", "the model, for hamiltree summary, predict and others"))
    title = "Is a breast tumour malignant?"
    page = model.report(folder / "report.html", X_test, y_test, title=title, names=NAMES)
    written.append((page, "open in a browser: trees, their performance, predictions"))
    return written
