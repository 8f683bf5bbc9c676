"""``hamiltree summary``: the posterior on one screen."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
import typer

from ..posterior import Posterior
from ..posterior.describe import finding, summary_sentence
from ..posterior.judgement import MIN_DRAWS
from .screen import (
    CANNOT_JUDGE,
    CHECK_FAILED,
    Json,
    ModelFile,
    examples,
    in_options,
    load,
    out,
    print_json,
)


def mount(app: typer.Typer) -> None:
    app.command(
        epilog=examples(
            "hamiltree summary model.nc",
            "hamiltree summary model.nc --json",
            "hamiltree summary model.nc --check && echo the chains agree",
        )
    )(summary)


def summary(
    model: ModelFile,
    as_json: Json = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Exit with code 3 if the chains do not agree, and with code 4 if they have too "
            "few draws to tell.",
        ),
    ] = False,
) -> None:
    """Summarise the posterior, and say whether its chains agree."""
    posterior = load(model)
    if as_json:
        print_json(facts(posterior))
    else:
        print_summary(posterior)
    if check and not posterior.diagnose().converged:
        too_few = posterior.n_draws < MIN_DRAWS and not posterior.has_particles
        raise typer.Exit(CANNOT_JUDGE if too_few else CHECK_FAILED)


def print_summary(posterior: Posterior) -> None:
    out.print(f"{finding(posterior)}\n", markup=False)
    out.print(in_options(posterior.summary()), markup=False)  # ends with whether the chains agree


def facts(posterior: Posterior) -> dict[str, Any]:
    """The same as plain values."""
    weights = posterior.weights
    shares = np.bincount(posterior.n_leaves.ravel(), weights=weights.ravel())
    names, diagnosis = posterior.preprocessing.feature_names, posterior.diagnose()
    found: dict[str, Any] = {
        "sentence": in_options(summary_sentence(posterior)),
        "method": posterior.configuration.method.name,
        "task": "classification" if posterior.n_classes else "regression",
        "n_chains": posterior.n_chains,
        "n_draws": posterior.n_draws,
        "leaves": {str(n): float(share) for n, share in enumerate(shares) if share > 0},
        "mean_leaves": float(np.sum(weights * posterior.n_leaves)),
        "mean_depth": float(np.sum(weights * posterior.depth)),
        "mean_log_posterior": float(np.sum(weights * posterior.log_posterior)),
        "feature_inclusion": dict(zip(names, posterior.feature_inclusion().tolist(), strict=True)),
        "diagnosis": {**asdict(diagnosis), "sentence": in_options(diagnosis.sentence)},
        "seconds": posterior.info.seconds,
        "stopped": posterior.info.stopped,
    }
    if posterior.preprocessing.classes is not None:
        found["classes"] = posterior.preprocessing.classes.tolist()
    else:
        found["mean_sigma"] = float(np.sum(weights * posterior.sigma))
    if posterior.log_evidence is not None:
        found["log_evidence"] = posterior.log_evidence
        found["log_evidence_error"] = posterior.log_evidence_error
    return found
