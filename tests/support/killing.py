"""Runs that are killed (SIGKILL) at random moments and go on: ``python -m tests.support.killing``.

A process of its own, which forks one child a life: the compiled code is loaded only once. A child
fits with a checkpoint that is written after every batch, so that many of the moments are while it
writes. The last child is left alone. Its draws are compared with an undisturbed run's.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import netCDF4  # noqa: F401  children need not load it
import numpy as np

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.running import chains, checkpoints

from .configuring import parameters
from .resuming import METHODS, arrays_of, data_of, same_arrays

ESTIMATORS = {"classification": BayesianTreeClassifier, "regression": BayesianTreeRegressor}
MOST_OF_A_LIFE = 0.4
"""Seconds after the first checkpoint; a child needs a tenth of one to start."""


def estimator_of(kind: str, task: str, seed: int) -> Any:
    given = parameters(**METHODS[kind], n_chains=2, max_leaves=6, n_jobs=2)
    if kind == "smc":
        return ESTIMATORS[task](**given, n_draws=3000, random_state=seed)
    return ESTIMATORS[task](**given, n_warmup=120, n_draws=1080, random_state=seed)


def hurry(batch: int) -> None:
    """Many short batches, none faster than a hundredth of a second, and a checkpoint after each."""
    checkpoints.MAX_SHARE = np.inf
    advance = chains.Chains._advance

    def slowly(self: Any, *arguments: Any) -> None:
        advance(self, *arguments)
        self.batch = batch
        time.sleep(0.01)

    chains.Chains._advance = slowly


def life(model: Any, task: str, out: Path, *, hurried: bool) -> int:
    """A child that fits; its number."""
    child = os.fork()
    if child == 0:
        try:
            if hurried:
                hurry(batch=40 if model.method == "smc" else 4)
            model.fit(*data_of(task))
            out.write_bytes(
                pickle.dumps((arrays_of(model.posterior_.draws), model.posterior_.info))
            )
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(1)
    return child


def is_alive(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def where_it_was(path: Path, model: Any) -> str:
    """What the run was doing when it was killed, as far as its files tell."""
    stage = "sampling"
    if model.method != "smc":
        done = min(checkpoints.read(path).done)
        stage = "warm-up" if done < model.n_warmup else "sampling"
    return f"{stage}, writing" if list(path.parent.glob(".*.part")) else stage


def killed_run(kind: str, task: str, kills: int, seed: int) -> dict[str, Any]:
    """Kill so often, let it end, and compare."""
    rng = np.random.default_rng(seed)
    model = estimator_of(kind, task, seed)
    whole = model.fit(*data_of(task)).posterior_
    moments: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "run.nc"), Path(folder, "draws")
        model.set_params(checkpoint=path, checkpoint_seconds=0.0)
        while moments.total() < kills:
            child = life(model, task, out, hurried=True)
            while not path.exists() and is_alive(child):
                time.sleep(0.01)
            time.sleep(rng.uniform(0, MOST_OF_A_LIFE))
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            if os.WIFEXITED(status):  # it was faster
                break
            moments[where_it_was(path, model)] += 1
        if moments.total() == kills:
            _, status = os.waitpid(life(model, task, out, hurried=False), 0)
        if os.waitstatus_to_exitcode(status) != 0:
            raise SystemExit(f"{kind}, {task}: the run did not go on after {dict(moments)}")
        draws, info = pickle.loads(out.read_bytes())
        left = sorted(p.name for p in Path(folder).iterdir())
    return {
        "kind": kind,
        "task": task,
        "kills": moments,
        "same draws": same_arrays(draws, arrays_of(whole.draws)),
        "same statistics": same_arrays(info.stats, whole.info.stats),
        "same tallies": pickle.dumps(info.acceptance) == pickle.dumps(whole.info.acceptance),
        "left": left,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", nargs="*", metavar="kind:task")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    runs = given.runs or [f"{kind}:{task}" for kind in METHODS for task in ESTIMATORS]
    warnings.simplefilter("ignore")
    for run in runs:
        kind, task = run.split(":")
        print(json.dumps(killed_run(kind, task, given.kills, given.seed)), flush=True)


if __name__ == "__main__":
    main()
