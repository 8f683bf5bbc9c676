"""What the commands share: the app, two consoles, error messages, files to read and write.

Results go to standard output and everything else to standard error, so that output can be piped.
Exit codes: 0 done; 1 the input cannot be used, and a message says why; 2 wrong usage of the
command line; 3 a check was asked for and failed, 4 it could not be made; 130 Ctrl-C before there
was a result; 143 SIGTERM.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import joblib
import typer
from rich.console import Console
from typer.core import TyperGroup

from ..inputs.tables import TableError
from ..posterior import Posterior
from ..utils.json_text import json_text
from .options import as_options, flag

TRACEBACK = "HAMILTREE_TRACEBACK"
"""Environment variable; where it is set, an error shows where it was raised."""
PARAMETER = re.compile(
    r"\b(n_chains|n_warmup|n_draws|max_draws|max_seconds|target_rhat)=(\d+(?:\.\d+)?)"
)
"""What the diagnosis advises."""
CHECK_FAILED = 3
CANNOT_JUDGE = 4
STOPPED = 130

out = Console(highlight=False, soft_wrap=True)
err = Console(highlight=False, soft_wrap=True, stderr=True)

ModelFile = Annotated[Path, typer.Argument(help="Model file, written by fit.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Seed = Annotated[int, typer.Option(help="Random seed.")]


class ClearErrors(TyperGroup):
    """Commands that show errors about the input as messages, not tracebacks; exit code 1."""

    def invoke(self, ctx: Any) -> Any:
        given = [*getattr(ctx, "_protected_args", []), *ctx.args]
        try:
            # A command has the machine to itself: predictions use all cores.
            with joblib.parallel_config("threading", n_jobs=-1):
                return super().invoke(ctx)
        except BrokenPipeError:  # the reader of our output has gone, as in "| head"
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except KeyboardInterrupt as stopped:
            err.print(str(stopped) or "stopped", markup=False)
            raise typer.Exit(STOPPED) from None
        except (ValueError, OSError) as error:
            if os.environ.get(TRACEBACK):
                raise
            err.print("[bold red]error:[/bold red]", end=" ")
            err.print(_message(error), markup=False)
            if isinstance(error, TableError) and (error.options or error.instead):
                err.print("Corrected, if that is what you meant:")
                err.print(f"  {corrected(given, error)}", markup=False)
            raise typer.Exit(1) from None


app = typer.Typer(
    cls=ClearErrors,
    help="Bayesian decision trees: fit and read them, and predict with them.",
    epilog="To start: hamiltree demo. Help on a command: hamiltree fit --help.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def corrected(given: list[str], error: TableError) -> str:
    """The command that was given, with what the error says to change."""
    parts = []
    for part in given:
        option, equals, value = part.partition("=")
        if equals and option.startswith("--"):
            value = error.instead.get(value, value)
            parts.append(f"{option}={value}")
        else:
            parts.append(error.instead.get(part, part))
    return shlex.join(["hamiltree", *parts, *error.options])


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    text = str(error) or type(error).__name__
    # Errors of tables name columns and options, which must stay as they are.
    return text if isinstance(error, TableError) else as_options(text)


def examples(*lines: str) -> str:
    """The end of a command's help."""
    return "Examples:\n\n" + "\n\n".join(f"  {line}" for line in lines)


def in_options(text: str) -> str:
    """Advice that names parameters of Python, as options of the command line."""
    return PARAMETER.sub(lambda found: f"{flag(found[1])} {found[2]}", text)


def heading(text: str) -> None:
    out.print(f"\n[bold]{text}[/bold]")


def note(text: str) -> None:
    """Information that is not the result."""
    err.print(f"note: {text}", markup=False)


def print_json(value: Any) -> None:
    out.file.write(json_text(value, indent=2) + "\n")


@contextmanager
def warnings_as_notes(*ignored: type[Warning]) -> Iterator[None]:
    """Print the library's warnings as notes, once each, after the work."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for category in ignored:
            warnings.simplefilter("ignore", category)
        yield
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        note(in_options(text))


def load(model: Path) -> Posterior:
    return Posterior.load(model)


def writable(path: Path) -> Path:
    """Refuse a place that cannot be written to before any work is done."""
    if path.is_dir():
        raise IsADirectoryError(f"cannot write to {path}: it is a folder")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"cannot write to {path}: there is no folder {path.parent}")
    return path
