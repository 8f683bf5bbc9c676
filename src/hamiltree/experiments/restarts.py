"""The runs behind tables 1 and 2 and the figures: one chain, or one set of particles, per seed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..core.soft.record import record_tree
from ..core.tree.record import drain
from ..datasets import Split
from ..estimators import BayesianTreeClassifier, BayesianTreeRegressor
from ..inputs.weights import sampled_order
from ..methods import chosen
from ..posterior import Posterior
from ..posterior.draws import RunInfo, collect, take
from ..running import run
from .configurations import (
    HMC,
    Estimator,
    Lengths,
    classical_estimator,
    hmc_estimator,
    lengths_of,
    presets_of,
)
from .hyperparameters import TABLE_4
from .measures import acceptance_measures, measure, single_tree_scores
from .runner import Job
from .store import Config, Result, data_digest, key_of


def restart_configs(
    splits: Iterable[Split],
    methods: Iterable[str],
    preset: str,
    restarts: int,
    shorten: int = 1,
) -> list[tuple[Config, Split]]:
    """Every run of the tables, with seeds 1, 2, ... as the authors'.

    Restart by restart, so that after the first round all that follows takes as long.
    """
    splits, methods = list(splits), list(methods)
    return [
        (_config(split, method, chosen, seed, shorten), split)
        for seed in range(1, restarts + 1)
        for split in splits
        for method in methods
        for chosen in presets_of(method, preset)
    ]


def _config(split: Split, method: str, preset: str, seed: int, shorten: int) -> Config:
    symbols = TABLE_4[method, split.name]
    lengths = lengths_of(split.name, method).shortened(shorten)
    if method in HMC:
        estimator = hmc_estimator(method, preset, symbols, split.n_classes, lengths, seed)
    else:
        # CGM and WU adapt nothing: all their iterations are drawn, and burn-in is cut afterwards.
        whole = Lengths(0, lengths.burn_in + lengths.draws)
        estimator = classical_estimator(method, symbols, split.n_classes, whole, seed)
    return {
        "kind": "restart",
        "dataset": split.name,
        "method": method,
        "preset": preset,
        "seed": seed,
        "cut": lengths.burn_in if method in ("cgm", "wu") else 0,
        "parameters": parameters_set(estimator),
        "data": data_digest(split),
        "data_source": split.source,
    }


def parameters_set(estimator: Estimator) -> dict[str, Any]:
    """What ``set_params`` makes the estimator of again; the method as its name and its fields."""
    method = chosen(estimator.method, estimator.preset)
    own = estimator.get_params(deep=False) | {"method": method.name}
    fields = method.get_params()
    return {
        **{name: value for name, value in own.items() if value is not None},
        **{f"method__{name}": value for name, value in fields.items()},
    }


def estimator_of(config: Config, split: Split) -> Estimator:
    make = BayesianTreeClassifier if split.n_classes else BayesianTreeRegressor
    return make().set_params(**config["parameters"])


def fitted(config: Config, split: Split, checkpoint: Path | None = None) -> Posterior:
    """The posterior; Ctrl-C ends the run rather than shortening it."""
    estimator = estimator_of(config, split)
    if checkpoint is not None:
        estimator.set_params(checkpoint=checkpoint)
    posterior = estimator.fit(split.X, split.y).posterior_
    if posterior.info.interrupted:
        raise KeyboardInterrupt
    return posterior


_compiled: set[tuple[str, str, bool]] = set()


def _compile(config: Config, split: Split) -> None:
    """Make, or load, the compiled code before it is timed, once per process."""
    what = (config["method"], config["preset"], split.n_classes > 0)
    if what not in _compiled:
        shortest = {"n_draws": 1} if config["method"] == "smc" else {"n_warmup": 0, "n_draws": 1}
        estimator_of(config, split).set_params(**shortest).fit(split.X, split.y)
        _compiled.add(what)


def run_restart(config: Config, split: Split, unfinished: Path | None = None) -> Result:
    """Fit and measure; CGM and WU also give their scores in burn-in.

    ``unfinished``: folder for checkpoints of algorithm 1 as written, which can take an hour per
    run; what was stopped goes on from there.
    """
    _compile(config, split)
    checkpoint = None
    if unfinished is not None and config["method"] in HMC and config["preset"] == "paper":
        unfinished.mkdir(parents=True, exist_ok=True)
        checkpoint = unfinished / f"{key_of(config)}.nc"
    posterior = fitted(config, split, checkpoint)
    cut = config["cut"]
    values, arrays = measure(_without_burn_in(posterior, cut) if cut else posterior, split)
    values |= acceptance_measures(posterior.info)
    values["seconds"] = posterior.info.seconds
    if posterior.log_evidence is not None:
        values["log_evidence"] = posterior.log_evidence
    else:
        scores = single_tree_scores(posterior, split)
        arrays["score_by_iteration"] = scores.mean(axis=1)
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    return Result(values, arrays)


def _without_burn_in(posterior: Posterior, cut: int) -> Posterior:
    draws = take(posterior.draws, np.arange(cut, posterior.n_draws))
    return Posterior(draws, posterior.info, posterior.preprocessing, posterior.configuration)


def burn_in_config(config: Config) -> Config:
    """The burn-in of an HMC run, which ``fit`` does not keep."""
    return {**config, "kind": "burn-in", "parameters": {**config["parameters"], "n_draws": 1}}


def run_burn_in(config: Config, split: Split) -> Result:
    """Run the same chain's burn-in again, this time watched: the test score of each iteration."""
    posterior = fitted(config, split)
    watched = watch_burn_in(posterior, split)
    scores = single_tree_scores(watched, split)
    return Result({}, {"score_by_iteration": scores.mean(axis=1)})


def watch_burn_in(posterior: Posterior, split: Split) -> Posterior:
    """The trees of each burn-in iteration of the one chain that made this posterior."""
    preprocessing, n_warmup = posterior.preprocessing, posterior.info.n_warmup or 0
    classes = preprocessing.classes
    target = preprocessing.y_to_model(split.y) if classes is None else split.y
    coded = target if classes is None else np.searchsorted(classes, target)
    rows = preprocessing.to_unit(split.X)
    if (order := sampled_order(split.X, split.y, None)) is not None:
        rows, coded = np.ascontiguousarray(rows[:, order]), coded[order]
    problem = run.Problem(rows, coded, posterior.n_classes)
    sampler = run.build_sampler(problem, posterior.configuration, n_warmup, 1)
    (seed,) = np.random.SeedSequence(posterior.info.seed).spawn(1)
    chain: Any = sampler.start(np.random.Generator(np.random.PCG64(seed)))
    spare = np.random.default_rng(0)  # recording may draw leaf means, not from the chain's numbers
    pieces = []
    for _ in range(n_warmup):
        chain.advance(1)
        record_tree(chain.state.model, chain.state.tree, chain.state.work, chain.block, spare)
        pieces.append(drain(chain.block))
    again = {move: counts for move, counts in chain.tally()["warmup"].items() if counts[1]}
    first = posterior.info.acceptance["warmup"]
    if again != {move: (int(a[0]), int(n[0])) for move, (a, n) in first.items() if n[0]}:
        raise RuntimeError("the watched burn-in is not the chain's own: its moves differ")
    draws, _ = collect([pieces], n_warmup, sampler.h)
    info = RunInfo({}, {}, posterior.info.seconds, posterior.info.stopped)
    return Posterior(draws, info, preprocessing, posterior.configuration)


def restart_jobs(
    configs: Iterable[tuple[Config, Split]], unfinished: Path | None = None
) -> list[Job]:
    run_one = partial(run_restart, unfinished=unfinished)
    return [Job(config, split, run_one) for config, split in configs]


def burn_in_jobs(configs: Iterable[tuple[Config, Split]]) -> list[Job]:
    return [
        Job(burn_in_config(config), split, run_burn_in)
        for config, split in configs
        if config["method"] in HMC
    ]
