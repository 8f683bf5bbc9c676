"""``hamiltree tree``: one tree to read."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..posterior import Posterior
from ..posterior.describe import percent
from ..posterior.tree import Tree
from .figures import save_figure
from .screen import Json, ModelFile, examples, load, note, out, print_json, writable


class Which(StrEnum):
    best = "best"
    representative = "representative"
    shapes = "shapes"


def mount(app: typer.Typer) -> None:
    app.command(
        epilog=examples(
            "hamiltree tree model.nc",
            "hamiltree tree model.nc --which shapes",
            "hamiltree tree model.nc --which representative -o tree.png",
            "hamiltree tree model.nc --chain 0 --draw -1 --json",
            "hamiltree tree model.nc -o tree.dot",
        )
    )(tree)


def tree(
    model: ModelFile,
    which: Annotated[
        Which,
        typer.Option(
            help="The tree of highest posterior, the one whose predictions are closest to the "
            "average of all, or the best tree of each of the most probable shapes."
        ),
    ] = Which.best,
    n: Annotated[int, typer.Option("-n", help="Number of shapes.", min=1)] = 3,
    chain: Annotated[int | None, typer.Option(help="Show a single draw: its chain ...")] = None,
    draw: Annotated[int | None, typer.Option(help="... and its number; -1 is the last.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Picture (png, svg, pdf) or Graphviz text (dot)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show one tree as text, as a picture or as JSON."""
    if (chain is None) != (draw is None):
        raise typer.BadParameter("--chain and --draw go together")
    if output is not None:
        writable(output)
    posterior = load(model)
    if which is Which.shapes and chain is None:
        if output is not None:
            raise typer.BadParameter("a picture shows one tree: use --which best, or report")
        _print_shapes(posterior, n, as_json)
        return
    chosen = _chosen(posterior, which, chain, draw)
    if output is not None:
        if output.suffix == ".dot":
            output.write_text(chosen.to_graphviz() + "\n", "utf-8")
        else:
            save_figure(chosen.plot, output)
        note(f"wrote {output}")
    if as_json:
        print_json(chosen.to_dict())
    elif output is None:
        out.print(chosen.to_text(), markup=False)


def _chosen(posterior: Posterior, which: Which, chain: int | None, draw: int | None) -> Tree:
    if chain is not None and draw is not None:
        try:
            return posterior.tree(chain, draw)
        except IndexError as error:
            raise ValueError(str(error)) from None
    return posterior.best_tree() if which is Which.best else posterior.representative_tree()


def _print_shapes(posterior: Posterior, n: int, as_json: bool) -> None:
    shapes = posterior.shapes(n)
    if as_json:
        found = [
            {"probability": s.probability, "n_draws": s.n_draws, "shape": s.text} for s in shapes
        ]
        print_json([{**f, "tree": s.tree.to_dict()} for f, s in zip(found, shapes, strict=True)])
        return
    for number, shape in enumerate(shapes, start=1):
        text = f"{number}. {percent(shape.probability)} of the trees: {shape.text}"
        out.print(f"{text}\n{shape.tree.to_text()}\n", markup=False)
