"""``hamiltree paper``: the paper's tables and figures, its grid search, and repeated splits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..datasets import PAPER_DATASETS, MissingDataError, Split, load_paper_split
from . import render
from .configurations import HMC, METHODS
from .grid import Search, make_search, report, sets_table
from .restarts import burn_in_jobs, restart_configs, restart_jobs
from .runner import StoppedError, complete
from .splits import difference_lines, split_jobs, splits_table, summary_of_splits
from .store import Config, Store
from .tables import agreement_table, collect, runs_table, summary_table

app = typer.Typer(
    help="Reproduce the experiments of the RJHMC-Tree paper (arXiv:2312.01577).",
    no_args_is_help=True,
)
console = Console(highlight=False, soft_wrap=True)
PRESETS = ("exact", "paper", "both")

Methods = Annotated[str, typer.Option(help=f"Any of {','.join(METHODS)}.")]
Datasets = Annotated[str, typer.Option(help=f"Any of {','.join(PAPER_DATASETS)}.")]
Restarts = Annotated[int, typer.Option(min=1, help="Runs per method and data set, seeds 1, 2, ...")]
Preset = Annotated[str, typer.Option(help="HMC's sampler: exact, paper (slow) or both.")]
Jobs = Annotated[int, typer.Option(help="Runs at a time; -1 for one per core.")]
Out = Annotated[Path, typer.Option(help="Folder for results; a stopped run resumes from it.")]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder with NAME_train.csv and NAME_test.csv, or raisin.zip.",
                 envvar="HAMILTREE_DATA"),
]  # fmt: skip
Shorten = Annotated[int, typer.Option(min=1, help="Divide all run lengths, for a quick look.")]

ALL_METHODS = ",".join(METHODS)
ALL_DATASETS = ",".join(PAPER_DATASETS)
OUT = Path("paper-output")


@app.command()
def tables(
    methods: Methods = ALL_METHODS,
    datasets: Datasets = ALL_DATASETS,
    restarts: Restarts = 10,
    preset: Preset = "exact",
    jobs: Jobs = -1,
    out: Out = OUT,
    data_dir: DataDir = None,
    shorten: Shorten = 1,
) -> None:
    """Tables 1 and 2 next to the paper's numbers, and measures that it does not report."""
    with _opened(out) as store:
        configs = _restart_configs(methods, datasets, data_dir, preset, restarts, shorten)
        complete(restart_jobs(configs, out / "unfinished"), store, jobs, console, "runs")
        runs = collect(configs, store)
        summary = summary_table(runs)
        agreement = agreement_table(runs, summary)
        written = [
            _write(out / "runs.csv", runs_table(runs).to_csv(index=False)),
            _write(out / "tables.csv", summary.to_csv(index=False)),
            _write(out / "agreement.csv", agreement.to_csv(index=False)),
        ]
    titles = render.headings(render.columns_of(summary))
    further = [*render.FURTHER_METRICS, *render.acceptance_metrics(summary)]
    for name, metrics, caption in (
        ("tables", render.PAPER_METRICS, "Comparison of methods, ours and the paper's."),
        ("further", further, "Measures that the paper does not report."),
    ):
        written += _publish(out, name, render.lines_of(summary, metrics), titles, caption)
    within = int(agreement["within_one_se"].sum())
    console.print(
        f"{within} of {len(agreement)} test figures are within one standard error of the paper's "
        "(agreement.csv)"
    )
    _list(written)


@app.command()
def figures(
    methods: Methods = ALL_METHODS,
    datasets: Datasets = ALL_DATASETS,
    restarts: Restarts = 10,
    preset: Preset = "exact",
    jobs: Jobs = -1,
    out: Out = OUT,
    data_dir: DataDir = None,
    shorten: Shorten = 1,
) -> None:
    """Figures 3 to 5, from the runs of the tables; missing runs are made."""
    # Loading matplotlib takes a second, which no other command should wait for.
    import matplotlib

    from . import figures as plots

    matplotlib.use("Agg")
    with _opened(out) as store:
        configs = _restart_configs(methods, datasets, data_dir, preset, restarts, shorten)
        complete(restart_jobs(configs, out / "unfinished"), store, jobs, console, "runs")
        complete(burn_in_jobs(configs), store, jobs, console, "burn-ins")
        runs = collect(configs, store)
        names = list(dict.fromkeys(split.name for _, split in configs))
        panels = {name: plots.series_of(runs, name, store) for name in names}
    written: list[Path] = []
    if "cgm" in panels:
        synthetic = panels.pop("cgm")
        written += plots.save(plots.plot_leaf_counts(synthetic), out, "figure3-leaves-cgm")
        written += plots.save(plots.plot_cgm_error(synthetic), out, "figure4-error-cgm")
    if panels:
        written += plots.save(plots.plot_real_accuracy(panels), out, "figure5-accuracy-real")
    _list(written)


@app.command()
def grid(
    methods: Methods = "cgm,wu,smc",
    datasets: Datasets = ALL_DATASETS,
    most: Annotated[
        int, typer.Option(min=1, help="Most sets of a grid to try, at random if it has more.")
    ] = 300,
    seed: Annotated[int, typer.Option(help="Seed of that choice.")] = 0,
    jobs: Jobs = -1,
    out: Out = OUT,
    data_dir: DataDir = None,
    shorten: Shorten = 1,
) -> None:
    """The grid search of table 3, and the chosen sets next to those of table 4."""
    classical = tuple(method for method in METHODS if method not in HMC)
    with _opened(out) as store:
        searches = [
            make_search(method, split, most, seed, shorten)
            for split in _splits(datasets, data_dir)
            for method in _chosen(methods, classical, "method")
        ]
        for search in searches:
            what = f"sets of {search.method.upper()} on {search.split.name}"
            complete(search.jobs(), store, jobs, console, what)
        written = [_write_sets(search, store, out) for search in searches]
        found = report(searches, store)
        written.append(_write(out / "grid.csv", found.to_csv(index=False)))
    for row in found.itertuples():
        tried = f"{row.sets_tried} of {row.sets_in_grid} sets"
        console.print(
            f"\n[bold]{row.method.upper()} on {row.dataset}[/bold], {tried}, {row.metric}"
        )
        console.print(f"  chosen   {row.score:.4f}  {row.chosen}")
        if row.table_4 != "none":
            rank = f"rank {row.table_4_rank:.0f}"
            console.print(f"  table 4  {row.table_4_score:.4f}  {row.table_4}  ({rank})")
    _list(written)


def _write_sets(search: Search, store: Store, out: Path) -> Path:
    name = f"grid-{search.method}-{search.split.name}.csv"
    return _write(out / name, sets_table(search, store).to_csv(index=False))


@app.command()
def splits(
    methods: Methods = ALL_METHODS,
    datasets: Datasets = ALL_DATASETS,
    number: Annotated[int, typer.Option(min=2, help="Random splits per data set.")] = 20,
    chains: Annotated[int, typer.Option(min=1, help="Chains per fit.")] = 4,
    jobs: Jobs = -1,
    out: Out = OUT,
    data_dir: DataDir = None,
    shorten: Shorten = 1,
) -> None:
    """The comparison over many splits, with a pruned CART and a random forest."""
    with _opened(out) as store:
        chosen = _chosen(methods, METHODS, "method")
        work = split_jobs(_splits(datasets, data_dir), chosen, number, chains, shorten)
        complete(work, store, jobs, console, "fits")
        table = splits_table(work, store)
    summary = summary_of_splits(table)
    written = [
        _write(out / "splits.csv", table.to_csv(index=False)),
        _write(out / "splits-summary.csv", summary.to_csv(index=False)),
    ]
    columns = render.columns_of(summary)
    titles = render.headings(columns)
    metrics = [*render.PAPER_METRICS, *render.FURTHER_METRICS]
    caption = f"Means (sd) over {number} splits."
    written += _publish(out, "splits", render.lines_of(summary, metrics), titles, caption)
    lines = difference_lines(summary, columns)
    caption = "Differences (standard error), bold beyond two standard errors."
    written += _publish(out, "splits-differences", lines, titles, caption)
    _list(written)


# ------------------------------------------------------------------ what the commands share


@contextmanager
def _opened(out: Path) -> Iterator[Store]:
    """The store; Ctrl-C and wrong input end the command with a message."""
    try:
        store = Store(out)
        try:
            yield store
        finally:
            store.close()
    except StoppedError as stopped:
        console.print(str(stopped), markup=False)
        raise typer.Exit(130) from None
    except (OSError, ValueError) as error:
        console.print(f"[red]error:[/red] {error}")
        raise typer.Exit(1) from None


def _chosen(text: str, known: Sequence[str], what: str) -> list[str]:
    """The names in a list with commas, in the usual order."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise typer.BadParameter(
            f"unknown {what} {', '.join(unknown) or repr(text)}: there are {', '.join(known)}"
        )
    return [name for name in known if name in names]


def _restart_configs(
    methods: str, datasets: str, data_dir: Path | None, preset: str, restarts: int, shorten: int
) -> list[tuple[Config, Split]]:
    """The runs of tables and figures."""
    names = _chosen(methods, METHODS, "method")
    (chosen,) = _chosen(preset, PRESETS, "preset")
    return restart_configs(_splits(datasets, data_dir), names, chosen, restarts, shorten)


def _splits(datasets: str, data_dir: Path | None) -> list[Split]:
    """The data; what is missing is said, and the rest runs."""
    splits, missing = [], []
    for name in _chosen(datasets, PAPER_DATASETS, "data set"):
        try:
            splits.append(load_paper_split(name, data_dir))
        except MissingDataError as error:
            missing.append(str(error))
            console.print(f"[red]without {name}:[/red] {error}")
    if not splits:
        raise MissingDataError("there is no data set left to run")
    for split in splits:
        console.print(
            f"{split.name}: {len(split.y)} rows to learn from, {len(split.y_test)} to test on "
            f"({split.source})"
        )
    return splits


def _publish(
    out: Path, name: str, lines: Sequence[render.Line], titles: Sequence[str], caption: str
) -> list[Path]:
    """Show a table, and write it as Markdown and as LaTeX."""
    if not lines:
        return []
    console.print(render.to_terminal(lines, titles, caption, console.width), soft_wrap=True)
    return [
        _write(out / f"{name}.md", render.to_markdown(lines, titles)),
        _write(out / f"{name}.tex", render.to_latex(lines, titles, caption)),
    ]


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _list(paths: Iterable[Path]) -> None:
    console.print("\nwritten:")
    for path in paths:
        console.print(f"  {path}", markup=False)
