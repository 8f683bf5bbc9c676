"""Hashes of the draws of a fixed list of configurations, to see that a change leaves them alone.

``python -m tests.support.draws`` prints them, ``--check`` compares them with those stored in
``tests/data/draws.json``, and ``--write`` stores them. Words choose configurations by parts of
their names.

HMC-DF and HMC-DFI add up real numbers over rows in an order that depends on the processor's vectors
and on the compiler, so that their draws are compared only where both are those of the file. CGM, WU
and SMC do not, nor do hard splits with classes, which are counted: their draws must be the same
everywhere. Those of CGM, WU and SMC are also stored as version 0.1.0 made them, which ``--write``
does not touch.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
import warnings
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import llvmlite.binding
import numba
import numpy as np
from sklearn.datasets import load_diabetes, load_iris

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.datasets import load_bcw, make_cgm
from hamiltree.posterior.draws import Draws

from .configuring import parameters

STORED = Path(__file__).parents[1] / "data" / "draws.json"

SHORT = {"n_warmup": 60, "n_draws": 60}
LARGE = {"n_warmup": 10, "n_draws": 10}
PER_CLASS = {"class_prior": 1.0}
"""The default of 0.1.0, with which the draws of CGM, WU and SMC are still compared."""
PAPER = {"preset": "paper", "n_warmup": 2, "n_draws": 3}

CONFIGURATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "df-iris": ("iris", {**SHORT, "h": 0.01}),
    "df-bcw": ("bcw", {**SHORT, "h": 0.01}),
    "df-bcw-hard": ("bcw", {**SHORT, "h": 0}),
    "df-iris-learn": ("iris", {**SHORT, "h": "learn"}),
    "df-iris-auto-by": ("iris", {**SHORT, "h": "auto", "h_by_feature": True}),
    "df-diabetes-learn": ("diabetes", SHORT),
    "df-cgm-hard": ("cgm", {**SHORT, "h": 0}),
    "df-cgm-explicit": ("cgm", {**SHORT, "h": 0.01, "leaf_means": "explicit"}),
    "df-bcw-replicas": ("bcw", {**SHORT, "replicas": 3}),
    "dfi-iris": ("iris", {**SHORT, "method": "hmc-dfi"}),
    "dfi-cgm": ("cgm", {**SHORT, "method": "hmc-dfi", "h": 0.02}),
    "df-iris-paper": ("iris", {**PAPER, "adapt_steps": 30}),
    "dfi-cgm-paper": ("cgm", {**PAPER, "method": "hmc-dfi", "adapt_steps": 20}),
    "df-big-class": ("large classes", {**LARGE, "h": 0.01}),
    "df-big-reg": ("large numbers", LARGE),
    "df-big-f32": ("large classes", {**LARGE, "dtype": "float32"}),
    "cgm-bcw": ("bcw", {**SHORT, "method": "cgm", **PER_CLASS}),
    "cgm-dia-gap": ("diabetes", {**SHORT, "method": "cgm", "rule_prior": "gap"}),
    "cgm-dia-prior": (
        "diabetes",
        {**SHORT, "method": "cgm", "moves": "prior", "variance": "common"},
    ),
    "cgm-bcw-unit": ("bcw", {**SHORT, "method": "cgm", "rule_prior": "uniform01", **PER_CLASS}),
    "wu-bcw": ("bcw", {**SHORT, "method": "wu", **PER_CLASS}),
    "wu-dia": ("diabetes", {**SHORT, "method": "wu"}),
    "smc-bcw": ("bcw", {"n_draws": 300, "method": "smc", **PER_CLASS}),
    "smc-dia": ("diabetes", {"n_draws": 300, "method": "smc"}),
}
"""By name, the data and the parameters, those of the method among those of the estimator."""
EVERYWHERE = tuple(
    name
    for name in CONFIGURATIONS
    if name.startswith(("cgm-", "wu-", "smc-")) or name == "df-bcw-hard"
)
"""Draws that do not depend on the processor."""
ARRAYS = (
    "node_offset", "size", "feature", "threshold", "split_weights", "leaf", "h", "n_leaves",
    "depth", "log_likelihood", "log_posterior", "sigma",
)  # fmt: skip
"""What the hash is of, in this order."""


@cache
def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name in ("iris", "diabetes"):
        X, y = (load_iris if name == "iris" else load_diabetes)(return_X_y=True)
        return X, y
    if name in ("bcw", "cgm"):
        found = load_bcw() if name == "bcw" else make_cgm(200, random_state=0)
        return found.data, found.target
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 6))
    if name == "large classes":
        return X, (X[:, 0] + X[:, 1] ** 2 > 0.7).astype(int)
    return X, X[:, 0] + np.sin(3 * X[:, 1]) + 0.3 * rng.normal(size=9000)


def draws_of(name: str) -> Draws:
    of, values = CONFIGURATIONS[name]
    X, y = data(of)
    classes = np.issubdtype(y.dtype, np.integer)
    estimator = BayesianTreeClassifier if classes else BayesianTreeRegressor
    model = estimator(**parameters(n_chains=2, random_state=7, **values))
    # Rows in the order of the table also where some are equal, as version 0.1.0 took them.
    with patch("hamiltree.inputs.weights.MOST_REPEATED", 0):
        return model.fit(X, y).posterior_.draws


def hash_of(draws: Draws) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for name in ARRAYS:
        digest.update(np.ascontiguousarray(getattr(draws, name)).tobytes())
    return digest.hexdigest()


def place() -> dict[str, str]:
    """What the other draws depend on beside the sources."""
    processor = numba.config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    return {"numba": numba.__version__, "processor": processor}


def differences(found: Mapping[str, str], stored: Mapping[str, Any]) -> dict[str, str]:
    """What differs from the file, by configuration."""
    there = {name: stored[name] for name in place()}
    comparable = CONFIGURATIONS if there == place() else EVERYWHERE
    wanted = {name: stored["draws"].get(name) for name in comparable} | stored["as in 0.1.0"]
    return {
        name: f"{digest}, stored is {wanted[name]}"
        for name, digest in found.items()
        if name in wanted and digest != wanted[name]
    }


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.draws", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names; any of them")
    parser.add_argument("--check", action="store_true", help="compare with the stored ones")
    parser.add_argument("--write", action="store_true", help="store them")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # chains this short do not converge
    stored = json.loads(STORED.read_text("utf-8"))
    found = {}
    for name in CONFIGURATIONS:
        if options.names and not any(part in name for part in options.names):
            continue
        begun = time.perf_counter()
        found[name] = hash_of(draws_of(name))
        print(f"{name:<18} {found[name]}  {time.perf_counter() - begun:5.1f} s", flush=True)
    if options.write:
        if len(found) < len(CONFIGURATIONS):
            sys.exit("the file is of one machine: write all configurations, or none")
        text = json.dumps({**stored, **place(), "draws": found}, indent=1)
        STORED.write_text(f"{text}\n", "utf-8")
    if options.check:
        wrong = differences(found, stored)
        for name, text in wrong.items():
            print(f"{name}: {text}")
        sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
