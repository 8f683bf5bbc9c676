"""Is another version faster? Two processes, one per version, fit the same data in turns.

    OTHER=../other-checkout/src python -m benchmarks side_by_side

Each version runs with its own sources and its own compiled code. A fit is timed by the version
itself (``posterior_.info.seconds``, sampling alone), the two take turns, and what is printed is the
median of the ratios: on a noisy machine neighbours in time compare, averages do not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

HERE = Path(__file__).resolve().parent.parent / "src"
ROUNDS = 12
GOAL = 0.95

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "iris": ("iris", {"h": 0.01}),
    "iris, hmc-dfi": ("iris", {"method": "hmc-dfi"}),
    "breast cancer": ("bcw", {"h": 0.01}),
    "breast cancer, h=0": ("bcw", {"h": 0}),
    "breast cancer, cgm": ("bcw", {"method": "cgm"}),
    "breast cancer, smc": ("bcw", {"method": "smc"}),
    "diabetes, learned h": ("diabetes", {}),
    "diabetes, cgm": ("diabetes", {"method": "cgm"}),
    "diabetes, wu": ("diabetes", {"method": "wu"}),
    "CGM": ("cgm", {"h": 0.001}),
    "CGM, h=0": ("cgm", {"h": 0}),
    "CGM, explicit means": ("cgm", {"h": 0.01, "leaf_means": "explicit"}),
    "many leaves, numbers": ("friedman", {}),
    "many leaves, classes": ("clusters", {}),
}
FIELDS = {
    "classes": {"class_prior": 1.0, "likelihood": "paper", "replicas": 1},
    "numbers": {"sigma_prior": (1.5, 1.5), "replicas": 1},
}
"""The model of 0.1.0, whose defaults later versions changed."""


def run(console: Console) -> Iterator[tuple[str, str, str, bool | None]]:
    source = os.environ.get("OTHER", "")
    if not (Path(source) / "hamiltree").is_dir():
        sys.exit(
            "say where the other version is: OTHER=path/to/src python -m benchmarks side_by_side"
        )
    ours, other = start(HERE), start(Path(source).resolve())
    for name in CASES:
        for process in (ours, other):
            seconds(process, name, 0)  # compiles, or loads what was compiled
        ratios = []
        for turn in range(ROUNDS):
            order = (ours, other) if turn % 2 else (other, ours)
            took = {process: seconds(process, name, turn // 2) for process in order}
            ratios.append(took[other] / took[ours])
        ratio = median(ratios)
        console.print(f"{name}: {ratio:.2f} of {sorted(round(ratio, 2) for ratio in ratios)}")
        yield f"speed, {name}", f"{ratio:.2f} of the other's", f">= {GOAL}", ratio >= GOAL
    for process in (ours, other):
        process.kill()


def start(source: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__],
        env={**os.environ, "PYTHONPATH": str(source)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def seconds(process: subprocess.Popen[str], name: str, seed: int) -> float:
    """Of one fit in that process."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{seed} {name}\n")
    process.stdin.flush()
    for line in process.stdout:
        if line.startswith("seconds "):
            return float(line.split()[1])
    sys.exit(f"a process ended during {name!r}")


def work() -> None:
    """Fit what is asked for on standard input, with whatever version Python finds."""
    import warnings

    from sklearn.datasets import load_diabetes, load_iris, make_classification, make_friedman1

    from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
    from hamiltree.datasets import load_bcw, make_cgm

    warnings.simplefilter("ignore")
    bcw, cgm = load_bcw(), make_cgm(200, random_state=0)
    data = {
        "iris": (BayesianTreeClassifier, *load_iris(return_X_y=True)),
        "bcw": (BayesianTreeClassifier, bcw.data, bcw.target),
        "diabetes": (BayesianTreeRegressor, *load_diabetes(return_X_y=True)),
        "cgm": (BayesianTreeRegressor, cgm.data, cgm.target),
        "friedman": (
            BayesianTreeRegressor,
            *make_friedman1(1_500, noise=1.0, random_state=0),
        ),
        "clusters": (
            BayesianTreeClassifier,
            *make_classification(
                1_500, 10, n_informative=6, n_redundant=0, n_classes=4, random_state=0
            ),
        ),
    }
    for line in sys.stdin:
        seed, name = line.rstrip("\n").split(" ", 1)
        table, chosen = CASES[name]
        estimator, X, y = data[table]
        given = dict(chosen)
        if given.get("method") != "smc":
            given["n_warmup"] = 100
        method = given.pop("method", "hmc-df")
        classes = estimator is BayesianTreeClassifier
        fields = dict(FIELDS["classes" if classes else "numbers"])
        if "leaf_means" in given:
            fields["leaf_means"] = given.pop("leaf_means")
        if find_spec("hamiltree.methods"):
            from hamiltree.methods import METHODS

            kind = METHODS[method]
            given["method"] = kind(**{k: v for k, v in fields.items() if hasattr(kind, k)})
        else:  # version 0.1.0 had them on the estimator, with these defaults
            if "leaf_means" in fields:
                given["leaf_means"] = fields["leaf_means"]
            given["method"] = method
        model = estimator(n_chains=1, n_draws=500, random_state=int(seed), **given).fit(X, y)
        print("seconds", model.posterior_.info.seconds, flush=True)


if __name__ == "__main__":
    work()
