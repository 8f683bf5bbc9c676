"""The estimators' parameters: what each may be, what it says, and what cannot be together."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .settings import (
    H_RANGE,
    H_WORDS,
    KNOWN_MOVES,
    MAX_DRAWS_FACTOR,
    METHODS,
    MOVES,
    PRESETS,
    RUN_LENGTHS,
    Settings,
    resolve,
    why_not_learned,
)

SETTING_NAMES = tuple(field.name for field in fields(Settings))
ROUNDING = 1e-8  # probabilities typed as decimals sum to 1 only up to rounding
SMALLEST_H = 1e-9  # gradients grow like 1/h; below this, h = 0 is meant
MAX_LEAVES = 32_767  # scans of large data number them in 16 bits
MAX_SPLIT_PROBABILITY = 1 - 1e-6  # of the prior: p_split = min(alpha (1 + d)^-beta, this)

_positive = Interval(Real, 0, None, closed="neither")
_not_negative = Interval(Real, 0, None, closed="left")
_count = Interval(Integral, 1, None, closed="left")
_numbers = [tuple, list, np.ndarray, None]


def _one_of(*names: str) -> list[Any]:
    return [StrOptions(set(names)), None]


CONSTRAINTS: dict[str, list[Any]] = {
    "method": [StrOptions(set(METHODS))],
    "preset": _one_of(*(name for name in PRESETS if name is not None)),
    "n_chains": [_count, None],
    "n_warmup": [Interval(Integral, 0, None, closed="left"), None],
    "n_draws": [_count, None],
    "target_rhat": [Interval(Real, 1, None, closed="neither"), None],
    "max_draws": [_count, None],
    "moves": _one_of(*MOVES),
    "alpha_split": [_positive, None],
    "beta_split": [_not_negative, None],
    "min_leaves": [_count, None],
    "max_leaves": [_count, None],
    "h": [_not_negative, StrOptions(set(H_WORDS)), *_numbers],
    "h_by_feature": ["boolean"],
    "h_prior": _numbers,
    "h_init": [_not_negative, *_numbers],
    "tau_prior": _numbers,
    "feature_prior": _numbers,
    "weight_prior": [_positive, None],
    "class_prior": [_positive, *_numbers],
    "mu_prior": _numbers,
    "sigma_prior": _numbers,
    "class_mass": [_positive, None],
    "rule_prior": _one_of("uniform", "gap", "uniform01"),
    "variance": _one_of("leaf", "common"),
    "variance_prior": _numbers,
    "mean_prior": _numbers,
    "expected_splits": [_positive, None],
    "left_share": [Interval(Real, 0, 1, closed="neither"), None],
    "proposals": [_count, None],
    "triples": [_count, None],
    "split_proposal": _one_of("posterior", "prior", "empirical"),
    "resampling": _one_of("systematic", "multinomial"),
    "ess_threshold": [Interval(Real, 0, 1, closed="both"), None],
    "min_size": [_count, None],
    "standardize": ["boolean"],
    "informed_moves": [tuple, list, None],
    "replicas": [_count, None],
    "leaf_means": _one_of("collapsed", "explicit"),
    "index_update": _one_of("gibbs", "mh", "liu"),
    "scheme": _one_of("composed", "double-sided"),
    "adapt": _one_of("warmup", "transition"),
    "inner_steps": [_count, None],
    "adapt_steps": [_count, None],
    "move_probs": _numbers,
    "warmup_move_probs": _numbers,
    "acceptance": _one_of("exact", "biased"),
    "warmup_acceptance": _one_of("exact", "biased"),
    "target_accept": [Interval(Real, 0, 1, closed="neither"), None],
    "dtype": [StrOptions({"float64", "float32"})],
    "max_nuts_depth": [Interval(Integral, 1, 20, closed="both"), None],
    "warm_start": ["boolean"],
    "checkpoint": [str, os.PathLike, None],
    "checkpoint_seconds": [_not_negative],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
    "progress": ["boolean", None],
}

DOCS: dict[str, tuple[str, str]] = {
    "method": ("str", f"The sampler: one of {', '.join(METHODS)}."),
    "preset": ("str", '"paper" fills every parameter left at None with the authors\' value.'),
    "n_chains": ("int", "Independent chains, which have to agree; SMC: islands of particles."),
    "n_warmup": ("int", "Iterations that adapt the sampler and are thrown away; SMC has none."),
    "n_draws": ("int", "Trees kept from each chain; SMC: particles of each island."),
    "target_rhat": ("float", "Go on beyond n_draws until no R-hat is above it, e.g. 1.01."),
    "max_draws": ("int", f"End there with target_rhat; None for {MAX_DRAWS_FACTOR} times n_draws."),
    "moves": ("str", f"How jumps between trees are proposed: one of {', '.join(MOVES)}."),
    "alpha_split": ("float", "Prior: a node at depth d splits with probability alpha (1+d)^-beta."),
    "beta_split": ("float", "Prior: the larger, the smaller deep trees' share. See alpha_split."),
    "min_leaves": ("int", "Smallest tree; 1 allows a tree without a split."),
    "max_leaves": ("int", "Largest tree; a guard, the prior should keep trees well below it."),
    "h": (
        "float, array or str",
        "Softness of splits, a share of a column's range, one or one a "
        'column; 0 for hard splits; "auto" from the data\'s spacing; "learn" samples it, '
        "the default of regression but for HMC-DFI, replicas and the paper's moves.",
    ),
    "h_by_feature": ("bool", 'HMC-DF: h="auto" and h="learn" have an h for each column.'),
    "h_prior": ("(float, float)", 'h="learn": median of h, and sd of log h, of its normal prior.'),
    "h_init": (
        "float or array",
        "Softness at the start of warm-up, moved to h during it; None for h.",
    ),
    "tau_prior": ("(float, float)", "Beta prior of the thresholds on the unit interval."),
    "feature_prior": ("array", "Prior weights of the input columns; None for equal weights."),
    "weight_prior": ("float", "HMC-DFI: Dirichlet concentration of a split's input weights."),
    "class_prior": ("float or array", "Dirichlet prior of a leaf's classes, one or one a class."),
    "class_mass": ("float", "Total of a leaf's Dirichlet prior, instead of class_prior."),
    "rule_prior": ("str", 'CGM\'s rules: "uniform" over a node\'s values, "gap" or "uniform01".'),
    "variance": ("str", 'CGM, WU: a noise variance of each "leaf", or one in "common".'),
    "variance_prior": ("(float, float)", "CGM, WU, SMC: inverse gamma (shape, rate), variances."),
    "mean_prior": ("(float, float)", "CGM, WU, SMC: mean of leaf means, and rows it is worth."),
    "expected_splits": ("float", "WU: mean of the Poisson prior of the number of splits."),
    "left_share": ("float", "WU: share of a node's leaves that goes left, beyond one a side."),
    "proposals": ("int", 'CGM: proposals an iteration, with moves="prior".'),
    "triples": ("int", "WU: triples of moves before, and after, the restructure of an iteration."),
    "split_proposal": ("str", 'SMC: "prior", "empirical" or, one-step optimal, "posterior".'),
    "resampling": ("str", 'SMC: "systematic" or "multinomial".'),
    "ess_threshold": ("float", "SMC: resample at this effective share of an island's particles."),
    "min_size": ("int", "SMC: a node with this many rows, or fewer, is not split."),
    "mu_prior": ("(float, float)", "Mean and sd of the leaf means' normal prior, model units."),
    "sigma_prior": ("(float, float)", "Inverse gamma prior (shape, scale) of the noise sd."),
    "standardize": ("bool", "Bring y to mean 0 and sd 1 for the model; output is in y's units."),
    "replicas": ("int", "HMC-DF, HMC-DFI: rungs of a replica exchange in each chain; 1 for none."),
    "informed_moves": ("sequence of str", "Names of an iteration's informed moves, in order."),
    "leaf_means": ("str", '"collapsed" integrates the leaf means out, "explicit" samples them.'),
    "index_update": ("str", 'HMC-DF, the features of splits: "gibbs", "mh" or "liu".'),
    "scheme": ("str", '"composed" exact kernels, or the paper\'s "double-sided" jumps.'),
    "adapt": ("str", 'NUTS adapts in the "warmup" or, as in the paper, in each "transition".'),
    "inner_steps": ("int", "NUTS steps an iteration, or on either side of a jump (k)."),
    "adapt_steps": ("int", 'Adaptation steps when adapt="transition".'),
    "move_probs": ("(float, float, float)", "Probabilities of grow, prune and stay."),
    "warmup_move_probs": ("(float, float, float)", "The same in warm-up; None for move_probs."),
    "acceptance": ("str", 'Jumps are accepted by the "exact" or the paper\'s "biased" ratio.'),
    "warmup_acceptance": ("str", "The same in warm-up."),
    "target_accept": ("float", "Acceptance statistic that the NUTS step size aims for."),
    "max_nuts_depth": (
        "int",
        "NUTS doubles its trajectory so often at most; None: by method, moves and rows.",
    ),
    "warm_start": ("bool", "Go on with the chains of the last fit, to a larger n_draws."),
    "checkpoint": ("path", "File to keep the run in while it goes on; the same call resumes it."),
    "checkpoint_seconds": ("float", "Write it so often, or less if writing took over 1 % then."),
    "dtype": (
        "str",
        '"float32" stores inputs in half the memory, rounded in fit and predict alike.',
    ),
    "n_jobs": ("int", "Threads that run the chains; -1 for all cores. The draws do not change."),
    "random_state": ("int or RandomState", "Seed of everything random."),
    "progress": ("bool", "True shows a bar and then the verdict; None a bar, on a terminal."),
}

_Estimator = TypeVar("_Estimator")


def documented(cls: type[_Estimator]) -> type[_Estimator]:
    """Fill ``{parameters}`` in a docstring: one entry a parameter, defaults read from the code."""
    lines = []
    for field in fields(cls):  # type: ignore[arg-type]
        kind, text = DOCS[field.name]
        lines += [f"    {field.name} : {kind}, default={field.default!r}", f"        {text}"]
        regression = hasattr(cls, "standardize")
        if field.default is None and (values := _preset_values(field.name, regression)):
            lines.append(f"        {values}")
    cls.__doc__ = (cls.__doc__ or "").replace("    {parameters}", "\n".join(lines))
    return cls


def _preset_values(name: str, regression: bool) -> str:
    """What None stands for, without and with the paper's preset; empty where nothing fills it."""
    plain, paper = (
        {**vars(resolve(preset, {}, regression=regression)), **RUN_LENGTHS[preset]}.get(name)
        for preset in (None, "paper")
    )
    if plain == paper:
        return "" if plain is None else f"None means {plain!r}."
    if plain is None:
        return f'With preset="paper", None means {paper!r}.'
    return f'None means {plain!r}, or {paper!r} with preset="paper".'


def check(settings: Settings, n_classes: int) -> None:
    """Refuse settings that no run can have; warn where the prior lets trees grow without end.

    ``n_classes`` is 0 for regression. Single values are already within ``CONSTRAINTS``.
    """
    for name in ("tau_prior", "sigma_prior", "variance_prior"):
        check_positive(name, getattr(settings, name), 2, "two positive numbers")
    mean, sd = _as_floats("mu_prior", settings.mu_prior, 2, "a mean and a positive sd")
    if not (np.isfinite(mean) and 0 < sd < np.inf):
        raise ValueError(f"mu_prior must be a mean and a positive sd, got {settings.mu_prior!r}")
    mean, rows = _as_floats("mean_prior", settings.mean_prior, 2, "a mean and its positive rows")
    if not (np.isfinite(mean) and 0 < rows < np.inf):
        raise ValueError(
            f"mean_prior must be a mean and its positive rows, got {settings.mean_prior!r}"
        )
    if n_classes and not isinstance(settings.class_prior, Real):
        wanted = f"a positive number, or one for each of the {n_classes} classes"
        check_positive("class_prior", settings.class_prior, n_classes, wanted)
    _check_softness(settings)
    if settings.min_leaves > settings.max_leaves:
        raise ValueError(
            f"min_leaves={settings.min_leaves} is larger than max_leaves={settings.max_leaves}"
        )
    if settings.max_leaves > MAX_LEAVES:
        raise ValueError(f"max_leaves must be at most {MAX_LEAVES}, got {settings.max_leaves}")
    if settings.scheme == "double-sided" and settings.moves != "prior":
        raise ValueError('scheme="double-sided" is the paper\'s, with its jumps: set moves="prior"')
    if settings.replicas > 1 and (
        settings.method not in ("hmc-df", "hmc-dfi") or settings.scheme != "composed"
    ):
        raise ValueError(
            'replicas needs method="hmc-df" or "hmc-dfi" with scheme="composed"; set replicas=1'
        )
    unknown = set(settings.informed_moves or ()) - set(KNOWN_MOVES)
    if unknown:
        known = ", ".join(KNOWN_MOVES)
        raise ValueError(f"informed_moves has {sorted(unknown)}; known are {known}")
    if settings.method in ("wu", "smc") and (settings.moves != "prior" or settings.informed_moves):
        raise ValueError(
            f"method={settings.method!r} has no informed moves: leave moves and informed_moves at "
            'None, or set method="cgm", which samples hard trees by informed moves'
        )
    if settings.method == "smc":
        _check_smc(settings)
    biased = "biased" in (settings.acceptance, settings.warmup_acceptance)
    if biased and settings.scheme != "double-sided":
        raise ValueError(
            "the biased acceptance compares both ends of a double-sided step: set "
            'scheme="double-sided" (or preset="paper"), or acceptance="exact"'
        )
    _check_move_probs("move_probs", settings.move_probs)
    if settings.warmup_move_probs is not None:
        _check_move_probs("warmup_move_probs", settings.warmup_move_probs)
    # Where a split must leave rows on both sides, the rows are the limit, whatever the prior says.
    rules = settings.rule_prior if settings.method == "cgm" else "uniform01"
    if settings.method not in ("wu", "smc") and rules == "uniform01":
        _warn_of_endless_growth(settings)


def _check_softness(settings: Settings) -> None:
    """Refuse an h that is not one, and what cannot be together with it."""
    oblique = settings.method == "hmc-dfi"
    for name in ("h", "h_init"):
        h = getattr(settings, name)
        if h is None or isinstance(h, str):
            continue
        values = np.atleast_1d(np.asarray(h, np.float64))
        if ((values > 0) & (values < SMALLEST_H)).any():
            raise ValueError(f"{name} must be 0 (hard splits) or at least {SMALLEST_H:g}, got {h}")
        if (values > 0).any() and (values == 0).any():
            raise ValueError(f"{name} must be all 0 (hard splits) or all positive, got {h}")
        if oblique and isinstance(h, tuple):
            raise ValueError(
                f"every split of method='hmc-dfi' weighs all columns: {name} must be one number"
            )
    if settings.h_by_feature and oblique:
        raise ValueError(
            "every split of method='hmc-dfi' weighs all columns, so that it has one h: set "
            "h_by_feature=False, or method='hmc-df'"
        )
    median, sd = _as_floats("h_prior", settings.h_prior, 2, "a median and a positive sd")
    low, high = H_RANGE
    if not (low <= median <= high and 0 < sd < np.inf):
        raise ValueError(
            f"h_prior must be a median of h between {low:g} and {high:g} and a positive sd of its "
            f"logarithm, got {settings.h_prior!r}"
        )
    if settings.h != "learn":
        return
    if reason := why_not_learned(settings):
        raise ValueError(f'h="learn" {reason}')
    start = settings.h_init
    if start is not None and not all(low <= v <= high for v in np.atleast_1d(start)):
        raise ValueError(f'with h="learn", h_init must be between {low:g} and {high:g}')


def check_length(
    method: str, n_draws: int, target_rhat: float | None, max_draws: int | None
) -> int:
    """The most draws a chain may make; refuses limits that contradict each other."""
    if target_rhat is None:
        if max_draws is not None:
            raise ValueError(
                f"max_draws={max_draws} is where target_rhat gives up: set target_rhat too (such "
                "as 1.01), or n_draws instead"
            )
        return n_draws
    if method == "smc":
        raise ValueError(
            "method='smc' makes all its particles at once and has no R-hat: leave target_rhat "
            "None, and raise n_draws where the particles are too few"
        )
    if max_draws is None:
        return MAX_DRAWS_FACTOR * n_draws
    if max_draws < n_draws:
        raise ValueError(f"max_draws={max_draws} is smaller than n_draws={n_draws}")
    return max_draws


def check_warm_start(method: str, warm_start: bool) -> None:
    if warm_start and method == "smc":
        raise ValueError(
            "method='smc' has no chains to go on with: its particles are made all at once; set "
            "warm_start=False, and a larger n_draws for more of them"
        )


def _check_smc(settings: Settings) -> None:
    """Refuse what cannot be had of trees that grow from the root, leaf by leaf."""
    if settings.min_leaves > 2:
        raise ValueError(
            f"method='smc' allows min_leaves 1 or 2, got {settings.min_leaves}: a tree that grows "
            "from its root does not know how many leaves it will have"
        )
    if settings.variance != "leaf":
        raise ValueError(
            f"method='smc' needs variance='leaf', got {settings.variance!r}: with one variance in "
            "common, a leaf cannot be judged on its own"
        )


def expected_leaves(alpha_split: float, beta_split: float, limit: float) -> float:
    """Expected number of leaves of a tree under the topology prior, or inf once above ``limit``.

    A split adds one leaf, so this is 1 + sum over depths of the expected number of splits.
    """
    leaves, nodes, depth = 1.0, 1.0, 0
    while nodes > 1e-12:
        splits = nodes * min(alpha_split * (1.0 + depth) ** -beta_split, MAX_SPLIT_PROBABILITY)
        leaves, nodes, depth = leaves + splits, 2 * splits, depth + 1
        if leaves > limit:
            return np.inf
    return leaves


def _warn_of_endless_growth(settings: Settings) -> None:
    limit = settings.max_leaves
    if expected_leaves(settings.alpha_split, settings.beta_split, limit) > limit:
        warnings.warn(
            f"with alpha_split={settings.alpha_split:g} and beta_split={settings.beta_split:g} "
            f"the prior's trees have more than max_leaves={limit} leaves on average, so that "
            "max_leaves cuts them off; lower alpha_split or raise beta_split",
            UserWarning,
            stacklevel=6,
        )


def _as_floats(name: str, value: Any, length: int, wanted: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(v) for v in value)
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != length:
        raise ValueError(f"{name} must be {wanted}, got {value!r}")
    return numbers


def check_positive(name: str, value: Any, length: int, wanted: str) -> None:
    """Refuse anything but ``length`` positive finite numbers."""
    if not all(0 < v < np.inf for v in _as_floats(name, value, length, wanted)):
        raise ValueError(f"{name} must be {wanted}, got {value!r}")


def _check_move_probs(name: str, value: Sequence[float]) -> None:
    wanted = "three probabilities (grow, prune, stay) that sum to 1"
    grow, prune, stay = _as_floats(name, value, 3, wanted)
    in_range = all(0 <= p <= 1 for p in (grow, prune, stay))
    if not in_range or abs(grow + prune + stay - 1) > ROUNDING:
        raise ValueError(f"{name} must be {wanted}, got {value!r}")
    if (grow > 0) != (prune > 0):
        raise ValueError(
            f"{name} must let trees both grow and shrink, or neither, got {value!r}: a jump that "
            "can never be undone is never accepted"
        )
