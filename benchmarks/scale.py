"""Seconds an iteration and peak memory as rows grow, default sampler; ``make bench-scale``.

The data are simulated from trees of twelve leaves with the default softness, so that trees of the
posterior have about as many leaves whatever the number of rows. Each fit is a process of its own:
its peak memory is what the system says, less what the same process needs before there are data.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np
from rich.console import Console

from .markdown import Claim, Report, table

ROWS = (1_000, 10_000, 100_000, 1_000_000)
FEATURES = 20
ITERATIONS = {1_000: 400, 10_000: 200, 100_000: 60, 1_000_000: 30}
"""By rows, half of them warm-up, of each of two chains in two threads."""
LARGE = (500_000, 50)
LARGE_CHAINS, LARGE_ITERATIONS = 4, 300
LEAVES, CLASSES, SOFTNESS = 12, 3, 0.01
MAX_EXPONENT = 1.05
MAX_MEMORY = 2.5
MAX_SECONDS = 300.0
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
    y = np.empty(n, np.int64 if kind == "classification" else np.float64)
    for start in range(0, n, 10_000):
        part = slice(start, start + 10_000)
        x = X[part]
        reach = np.zeros((len(x), LEAVES))
        reach[:, 0] = 1.0
        for new, (k, f, threshold) in enumerate(splits, 1):
            right = 1 / (1 + np.exp(-np.clip((x[:, f] - threshold) / SOFTNESS, -40, 40)))
            reach[:, new] = reach[:, k] * right
            reach[:, k] *= 1 - right
        if kind == "classification":
            below = np.cumsum(reach @ shares, axis=1)
            y[part] = (rng.random((len(x), 1)) > below[:, :-1]).sum(axis=1)
        else:
            y[part] = reach @ mean + 0.5 * rng.normal(size=len(x))
    return X, y


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
    from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor, run

    kind, n, p = task["kind"], task["rows"], task["features"]
    estimator = BayesianTreeClassifier if kind == "classification" else BayesianTreeRegressor
    common: dict[str, Any] = {"progress": False, "random_state": 0, "n_jobs": 2}
    common["dtype"] = task.get("dtype", "float64")
    warnings.simplefilter("ignore")
    # compiles, bins included; what that needs for itself is not the data's
    estimator(n_chains=1, n_warmup=1, n_draws=1, **common).fit(*simulate(kind, 8_200, p))
    bare = _resident()
    X, y = simulate(kind, n, p)
    reset_peak()
    spent = {"sampling": 0.0}
    advance_to = run.Chains.advance_to

    def timed(self: Any, *args: Any) -> None:
        begun = time.perf_counter()
        advance_to(self, *args)
        spent["sampling"] += time.perf_counter() - begun

    run.Chains.advance_to = timed  # type: ignore[method-assign]
    begun, processor = time.perf_counter(), time.process_time()
    half = task["iterations"] // 2
    lengths = {"n_chains": task["chains"], "n_warmup": half, "n_draws": task["iterations"] - half}
    fitted = estimator(**lengths, **common).fit(X, y)
    seconds = time.perf_counter() - begun
    rounds = -(-task["chains"] // 2)
    return {
        "seconds": seconds,
        "processor": time.process_time() - processor,
        "iteration": spent["sampling"] / task["iterations"] / rounds,
        "memory": (peak_bytes() - bare) / (X.nbytes + y.nbytes),
        "leaves": float(fitted.posterior_.n_leaves.mean()),
        "gradients": float(fitted.posterior_.stats["n_gradients"].mean()),
    }


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _measure_stochtree(task: dict[str, Any]) -> dict[str, float]:
    """Two chains' worth of its iterations in one process, one thread: seconds of one."""
    from stochtree import BARTModel

    X, y = simulate(task["kind"], task["rows"], task["features"])
    general: dict[str, Any] = {"num_threads": 1, "random_seed": 1}
    if task["kind"] == "classification":  # it has two classes, by probit
        y = (y == 0).astype(float)
        general |= {"sample_sigma2_global": False, "probit_outcome_model": True}
    n = task["iterations"]

    def sample(iterations: int) -> float:
        begun = time.perf_counter()
        BARTModel().sample(
            X_train=X,
            y_train=y,
            num_gfr=0,
            num_burnin=0,
            num_mcmc=iterations,
            general_params=general,
            mean_forest_params={"num_trees": 1, "sample_sigma2_leaf": False},
        )
        return time.perf_counter() - begun

    # what it spends before the first iteration, sorting above all, is not an iteration's
    return {"iteration": (sample(n + 1) - sample(1)) / n}


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
                other = in_a_process(who="stochtree", iterations=20, **task)["iteration"]
            lines.append(_line(n, FEATURES, found[n], other))
        report.add(f"{kind}, {FEATURES} features, 2 chains in 2 threads")
        report.add(table(HEADINGS, lines))
        for a, b in itertools.pairwise(ROWS):
            growth = found[b]["iteration"] / found[a]["iteration"]
            exponent = np.log(growth) / np.log(b / a)
            claims.append(
                (
                    f"{kind}: seconds an iteration from {a:,} to {b:,} rows grow like N^",
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
                f"{large['seconds']:.0f} s ({large['processor']:.0f} s of processor)",
                f"<= {MAX_SECONDS:.0f} s",
                large["seconds"] <= MAX_SECONDS,
            )
        )
        claims.append(_memory_claim(kind, n, p, large))
    report.save(claims)
    return claims


HEADINGS = (
    "rows x features",
    "ms an iteration",
    "µs a row",
    "leaves",
    "gradients a draw",
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
