"""Seconds per iteration and peak memory as rows grow, default sampler; ``make bench-scale``.

The data are simulated from a tree of twelve leaves; values keep a gap to its thresholds. Without
it, rows within h of a threshold are many where rows are many, and larger trees, which cut more
sharply than one soft split can, are ever more likely: that is the model's doing (h is part of it),
and would mix the growth of trees into the growth of times.

Each fit is a process of its own. Times of an iteration are of the processor, for one chain, so that
other work on the machine does not count; memory is the system's peak of the process, less what it
needs before there are data.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Any

import numpy as np
from rich.console import Console

from .markdown import Claim, Report, table

ROWS = (1_000, 10_000, 100_000, 1_000_000)
FEATURES = 20
ITERATIONS = {1_000: 200, 10_000: 100, 100_000: 40, 1_000_000: 16}
"""By rows, half of them warm-up, of each of two chains in two threads."""
LARGE = (500_000, 50)
LARGE_CHAINS, LARGE_ITERATIONS = 4, 300
LEAVES, CLASSES = 12, 3
GAP = 0.08
"""Eight times the default h on either side."""
MAX_EXPONENT = 1.05
MAX_MEMORY = 2.5
MAX_SECONDS = 300.0
MAX_DRAWS_GB = 1.0
KINDS = ("classification", "regression")


def simulate(kind: str, n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Uniform inputs; a tree that halves its largest box, about, until it has twelve leaves."""
    rules = np.random.default_rng(5)
    boxes = [(np.zeros(p), np.ones(p))]
    splits = []  # leaf that is split, feature, threshold
    while len(boxes) < LEAVES:
        volume = [np.prod(high - low) for low, high in boxes]
        k = int(np.argmax(volume))
        low, high = boxes[k]
        f = int(rules.integers(p))
        threshold = low[f] + (high[f] - low[f]) * rules.uniform(0.35, 0.65)
        splits.append((k, f, threshold))
        left, right = high.copy(), low.copy()
        left[f] = right[f] = threshold
        boxes[k] = (low, left)
        boxes.append((right, high))
    mean = rules.normal(size=LEAVES)
    shares = rules.dirichlet(np.full(CLASSES, 0.5), LEAVES)
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    for _, f, threshold in splits:
        near = np.flatnonzero(np.abs(X[:, f] - threshold) < GAP)
        X[near, f] += np.where(X[near, f] > threshold, GAP, -GAP)
    leaf = np.zeros(n, np.int64)
    for new, (k, f, threshold) in enumerate(splits, 1):
        leaf[(leaf == k) & (X[:, f] > threshold)] = new
    if kind == "classification":
        below = np.cumsum(shares, axis=1)[:, :-1]
        return X, (rng.random((n, 1)) > below[leaf]).sum(axis=1)
    return X, mean[leaf] + 0.5 * rng.normal(size=n)


# ------------------------------------------------------------------ in a process of its own


def peak_bytes() -> int:
    """Most memory that this process ever had; ``reset_peak`` begins anew."""
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def reset_peak() -> None:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def measure(task: dict[str, Any]) -> dict[str, float]:
    """Fit, and say how long it took and how much memory beyond the bare process."""
    if task["who"] == "stochtree":
        return _measure_stochtree(task)
    if task["who"] == "draws":
        return measure_draws(task)
    from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
    from hamiltree.running import run

    kind, n, p = task["kind"], task["rows"], task["features"]
    estimator = BayesianTreeClassifier if kind == "classification" else BayesianTreeRegressor
    common: dict[str, Any] = {"progress": False, "random_state": 0}
    common["n_jobs"] = task.get("jobs", 2)
    common["dtype"] = task.get("dtype", "float64")
    warnings.simplefilter("ignore")
    # compiles, bins included; what that needs for itself is not the data's
    estimator(n_chains=1, n_warmup=1, n_draws=1, **common).fit(*simulate(kind, 8_200, p))
    bare = _resident()
    X, y = simulate(kind, n, p)
    reset_peak()
    spent = {"sampling": 0.0, "wall": 0.0}
    advance_to = run.Chains.advance_to

    def timed(self: Any, *args: Any) -> None:
        begun, started = time.process_time(), time.perf_counter()
        advance_to(self, *args)
        spent["sampling"] += time.process_time() - begun
        spent["wall"] += time.perf_counter() - started

    run.Chains.advance_to = timed  # type: ignore[method-assign]
    begun, processor = time.perf_counter(), time.process_time()
    half = task["iterations"] // 2
    lengths = {"n_chains": task["chains"], "n_warmup": half, "n_draws": task["iterations"] - half}
    fitted = estimator(**lengths, **common).fit(X, y)
    seconds = time.perf_counter() - begun
    return {
        "seconds": seconds,
        "processor": time.process_time() - processor,
        "iteration": spent["sampling"] / task["iterations"] / task["chains"],
        "wall": spent["wall"] / task["iterations"],
        "log_posterior": float(fitted.posterior_.log_posterior.sum()),
        "memory": (peak_bytes() - bare) / (X.nbytes + y.nbytes),
        "leaves": float(fitted.posterior_.n_leaves.mean()),
        "gradients": float(fitted.posterior_.stats["n_gradients"].mean()),
    }


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _measure_stochtree(task: dict[str, Any]) -> dict[str, float]:
    """Seconds of an iteration of one tree, one thread."""
    from stochtree import BARTModel

    X, y = simulate(task["kind"], task["rows"], task["features"])
    general: dict[str, Any] = {"num_threads": 1, "random_seed": 1}
    if task["kind"] == "classification":  # it has two classes, by probit
        y = (y == 0).astype(float)
        general |= {"sample_sigma2_global": False, "probit_outcome_model": True}
    n = task["iterations"]

    def sample(iterations: int) -> float:
        begun = time.process_time()
        BARTModel().sample(
            X_train=X,
            y_train=y,
            num_gfr=0,
            num_burnin=0,
            num_mcmc=iterations,
            general_params=general,
            mean_forest_params={"num_trees": 1, "sample_sigma2_leaf": False},
        )
        return time.process_time() - begun

    # what it spends before the first iteration, sorting above all, is not an iteration's
    return {"iteration": (sample(n + 1) - sample(1)) / n}


def measure_draws(task: dict[str, Any]) -> dict[str, float]:
    """Memory and file of many draws of trees with eight leaves, put together from their pieces."""
    from hamiltree import Posterior
    from hamiltree.core.tree.record import SCALARS, Piece
    from hamiltree.inputs.preprocess import learn
    from hamiltree.methods import HMCDF
    from hamiltree.posterior.draws import RunInfo, collect

    rng = np.random.default_rng(0)
    trees, chains, classes = task["draws"], task["chains"], task["classes"]
    X = rng.random((8, FEATURES))
    preprocessing = learn(X, None, classes=np.arange(classes))
    size = np.array([15, 7, 3, 1, 1, 3, 1, 1, 7, 3, 1, 1, 3, 1, 1], np.int32)
    bare = _resident()
    reset_peak()

    def piece(n: int) -> Piece:
        scalars = rng.random((n, len(SCALARS)))
        scalars[:, :2] = 8, 3
        return Piece(
            filled=np.array([n, 15 * n, 7 * n, 8 * n]),
            n_nodes=np.full(n, 15),
            size=np.tile(size, n),
            feature=rng.integers(FEATURES, size=7 * n, dtype=np.int32),
            threshold=rng.random(7 * n),
            levels=np.zeros(7 * n, np.uint64),
            weights=np.zeros((7 * n, 0)),
            leaf=rng.random((8 * n, classes)),
            h=np.zeros((n, 0)),
            rungs=np.zeros((n, 0)),
            scalars=scalars,
        )

    pieces = [[piece(250) for _ in range(trees // 250)] for _ in range(chains)]
    draws, _ = collect(pieces, trees, np.full(FEATURES, 0.01))
    peak = peak_bytes() - bare
    del pieces
    kept = sum(a.nbytes for a in vars(draws).values() if isinstance(a, np.ndarray))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trees.nc")
        info = RunInfo({"warmup": {}, "sampling": {}}, {}, 0.0, "n_draws")
        Posterior(draws, info, preprocessing, HMCDF().configured()).save(path)
        return {"kept": kept / 1e9, "peak": peak / 1e9, "file": os.path.getsize(path) / 1e9}


def in_a_process(**task: Any) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", json.dumps(task)],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


# ------------------------------------------------------------------ the benchmark


def run(console: Console) -> list[Claim]:
    report = Report(console, "scale")
    claims: list[Claim] = []
    peer = importlib.util.find_spec("stochtree") is not None
    for kind in KINDS:
        lines, found = [], {}
        for n in ROWS:
            task = {"kind": kind, "rows": n, "features": FEATURES}
            found[n] = in_a_process(who="hamiltree", chains=2, iterations=ITERATIONS[n], **task)
            other = np.nan
            if peer:
                other = in_a_process(who="stochtree", iterations=10, **task)["iteration"]
            lines.append(_line(n, FEATURES, found[n], other))
        report.add(f"{kind}, {FEATURES} features, 2 chains in 2 threads")
        report.add(table(HEADINGS, lines))
        for a, b in itertools.pairwise(ROWS):
            growth = found[b]["iteration"] / found[a]["iteration"]
            exponent = np.log(growth) / np.log(b / a)
            claims.append(
                (
                    f"{kind}: seconds per iteration from {a:,} to {b:,} rows, power of N",
                    f"{exponent:.2f}",
                    f"<= {MAX_EXPONENT}",
                    bool(exponent <= MAX_EXPONENT),
                )
            )
        claims.append(_memory_claim(kind, ROWS[-1], FEATURES, found[ROWS[-1]]))
    n, p = LARGE
    for kind in KINDS:
        task = {"who": "hamiltree", "kind": kind, "rows": n, "features": p}
        large = in_a_process(chains=LARGE_CHAINS, iterations=LARGE_ITERATIONS, **task)
        report.add(f"{kind}, {LARGE_CHAINS} chains x {LARGE_ITERATIONS} iterations, 2 threads")
        report.add(table(HEADINGS, [_line(n, p, large, np.nan)]))
        claims.append(
            (
                f"{kind}: {LARGE_CHAINS} chains x {LARGE_ITERATIONS} iterations, {n:,} x {p}",
                f"{large['seconds']:.0f} s ({large['processor']:.0f} s of processor time)",
                f"<= {MAX_SECONDS:.0f} s",
                large["seconds"] <= MAX_SECONDS,
            )
        )
        claims.append(_memory_claim(kind, n, p, large))
    many = in_a_process(who="draws", chains=10, draws=100_000, classes=CLASSES)
    claims.append(
        (
            f"10 x 100,000 trees of 8 leaves, {CLASSES} classes: kept, while gathered, in a file",
            ", ".join(f"{many[name]:.2f} GB" for name in ("kept", "peak", "file")),
            f"<= {MAX_DRAWS_GB:.0f} GB",
            max(many.values()) <= MAX_DRAWS_GB,
        )
    )
    report.save(claims)
    return claims


HEADINGS = (
    "rows x features",
    "ms per iteration",
    "µs per row",
    "leaves",
    "gradients per draw",
    "peak memory / input",
    "stochtree, ms",
    "ratio",
)


def _line(n: int, p: int, found: dict[str, float], other: float) -> list[str]:
    return [
        f"{n:,} x {p}",
        f"{1e3 * found['iteration']:.1f}",
        f"{1e6 * found['iteration'] / n:.2f}",
        f"{found['leaves']:.1f}",
        f"{found['gradients']:.0f}",
        f"{found['memory']:.2f}",
        "-" if np.isnan(other) else f"{1e3 * other:.1f}",
        "-" if np.isnan(other) else f"{found['iteration'] / other:.1f}",
    ]


def _memory_claim(kind: str, n: int, p: int, found: dict[str, float]) -> Claim:
    return (
        f"{kind}: peak memory beyond the bare process, X and y included, {n:,} x {p}",
        f"{found['memory']:.2f} times X and y",
        f"<= {MAX_MEMORY}",
        found["memory"] <= MAX_MEMORY,
    )


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
