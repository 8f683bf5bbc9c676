"""Every number a run depends on, in one frozen place, and the presets that fill it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

METHODS = ("hmc-df", "hmc-dfi", "cgm", "wu", "smc")
MOVES = ("informed", "prior")
H_WORDS = ("auto", "learn")
"""What h may be instead of numbers."""
H_RANGE = (1e-4, 0.5)
"""Where the prior of a learned h has all its mass."""
KNOWN_MOVES = (
    "grow",
    "insert",
    "change",
    "regrow",
    "transpose",
    "swap",
    "relocate",
    "rotate",
    "rare",
)
"""What ``informed_moves`` can be made of."""

INFORMED_MOVES = (
    "grow",
    "rotate",
    "insert",
    "swap",
    "change",
    "rotate",
    "change",
    "swap",
    "rare",
)
"""An iteration of moves="informed". A grow is a prune, and an insert a delete, by a fair coin; rare
is nothing by another, or one of regrow, transpose and relocate, which take several scans."""


@dataclass(frozen=True)
class Settings:
    """Model and sampler settings; the defaults are the library's, not the paper's.

    The paper's symbols: alpha_split and beta_split are its alpha and beta of the topology prior,
    ``tau_prior`` B(1, 1), ``weight_prior`` the concentration of Dir(alpha) on Delta,
    ``class_prior`` alpha_m, ``mu_prior`` (alpha_mu, beta_mu), ``sigma_prior``
    (alpha_sigma, beta_sigma), ``inner_steps`` k, ``h`` h_final and ``h_init`` h_init.
    """

    method: str = "hmc-df"
    moves: str = "informed"
    # --- the model
    alpha_split: float = 0.95
    beta_split: float = 2.0
    min_leaves: int = 1
    max_leaves: int = 256
    h: float | tuple[float, ...] | str = 0.01
    h_by_feature: bool = False
    h_prior: tuple[float, float] = (0.01, 1.5)
    tau_prior: tuple[float, float] = (1.0, 1.0)
    feature_prior: tuple[float, ...] | None = None
    weight_prior: float = 1.0
    class_prior: float | tuple[float, ...] = 1.0
    class_mass: float | None = None  # the estimators make class_prior of it: mass / classes each
    mu_prior: tuple[float, float] = (0.0, 1.0)
    sigma_prior: tuple[float, float] = (1.5, 1.5)
    likelihood_power: float = 1.0
    # --- the model, hard splits (CGM, WU, SMC); docs/symbols.md has the symbols of tables 3 and 4
    rule_prior: str = "uniform"
    variance: str = "leaf"
    variance_prior: tuple[float, float] = (1.5, 0.1)
    mean_prior: tuple[float, float] = (0.0, 0.1)
    expected_splits: float = 3.0
    left_share: float = 0.5
    # --- the sampler
    leaf_means: str = "collapsed"
    h_init: float | tuple[float, ...] | None = None
    informed_moves: tuple[str, ...] | None = None
    replicas: int = 1
    index_update: str = "gibbs"
    scheme: str = "composed"
    adapt: str = "warmup"
    inner_steps: int = 1
    adapt_steps: int = 500
    move_probs: tuple[float, float, float] = (0.4, 0.4, 0.2)
    warmup_move_probs: tuple[float, float, float] | None = None
    acceptance: str = "exact"
    warmup_acceptance: str = "exact"
    target_accept: float = 0.8
    max_nuts_depth: int | None = None  # see samplers.rjhmc
    # --- the samplers of hard splits
    proposals: int = 100
    triples: int = 25
    # --- SMC
    split_proposal: str = "posterior"
    resampling: str = "systematic"
    ess_threshold: float = 0.1
    min_size: int = 1


# The authors' settings (the paper, section 4, and what their implementation adds). alpha_split,
# beta_split and h were tuned by them for each data set; these are middle values of their table 4.
PRESETS: dict[str | None, dict[str, object]] = {
    None: {},
    "paper": {
        "alpha_split": 0.45,
        "beta_split": 2.0,
        "min_leaves": 2,
        "h": 0.025,
        "moves": "prior",
        "leaf_means": "explicit",
        "index_update": "mh",
        "scheme": "double-sided",
        "adapt": "transition",
        "move_probs": (0.2, 0.2, 0.6),
        "warmup_move_probs": (0.5, 0.25, 0.25),
        "warmup_acceptance": "biased",
    },
}

# What a method has instead of its preset's values. Tables 3 and 4 tune most of it by data set.
METHOD_PRESETS: dict[tuple[str | None, str], dict[str, object]] = {
    (None, "wu"): {"moves": "prior"},
    (None, "smc"): {"moves": "prior"},
    ("paper", "cgm"): {
        "alpha_split": 1.0,
        "beta_split": 1.2,
        "min_leaves": 1,
        "class_mass": 1.0,
        "proposals": 1,
    },
    ("paper", "wu"): {"min_leaves": 1, "expected_splits": 0.8, "class_prior": 2.0},
    ("paper", "smc"): {
        "alpha_split": 0.95,
        "beta_split": 0.5,
        "min_leaves": 1,
        "class_mass": 0.5,
        "split_proposal": "prior",
        "resampling": "multinomial",
    },
}

RUN_LENGTHS: dict[str | None, dict[str, int]] = {
    None: {"n_chains": 4, "n_warmup": 500, "n_draws": 1000},
    "paper": {"n_chains": 4, "n_warmup": 200, "n_draws": 800},
}


MAX_DRAWS_FACTOR = 20
"""Unless max_draws says otherwise, target_rhat makes a run at most so many times n_draws long."""


def resolve(
    preset: str | None, overrides: Mapping[str, object], *, regression: bool = False
) -> Settings:
    """Fill a preset; an override of None means that the user did not set it.

    Regression learns h where it can: that predicts better, and its chains agree as soon.
    """
    known = {f.name for f in fields(Settings)}
    unknown = set(overrides) - known
    if unknown:
        raise TypeError(f"unknown settings: {sorted(unknown)}")
    chosen = {name: value for name, value in overrides.items() if value is not None}
    method = str(chosen.get("method", Settings.method))
    filled = {**PRESETS[preset], **METHOD_PRESETS.get((preset, method), {})}
    settings = replace(Settings(), **{**filled, **chosen})  # type: ignore[arg-type]
    learns = regression and method == "hmc-df" and not why_not_learned(settings)
    return replace(settings, h="learn") if learns and "h" not in {**filled, **chosen} else settings


def why_not_learned(settings: Settings) -> str:
    """What keeps h from being learned; empty where nothing does."""
    exact = settings.scheme == "composed" and settings.adapt == "warmup"
    if settings.method not in ("hmc-df", "hmc-dfi") or settings.moves != "informed" or not exact:
        return (
            'needs method="hmc-df" or "hmc-dfi" with moves="informed", and not the scheme of '
            'preset="paper"; set h to a number or to "auto" otherwise'
        )
    if settings.replicas > 1:
        return "has no replica exchange: set replicas=1, or h to a number"
    return ""
