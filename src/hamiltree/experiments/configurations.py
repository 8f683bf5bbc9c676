"""From (data set, method, preset) to an estimator, in one place.

Presets: "exact" is the library's best exact sampler of the model that the paper's hyper-parameters
describe; "paper" is algorithm 1 as written. The methods that the paper compares with have one
version, the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..datasets.paper import REGRESSION
from ..estimators import BayesianTreeClassifier, BayesianTreeRegressor
from ..methods import METHODS as METHODS_BY_NAME
from ..methods import Method

HMC = ("hmc-df", "hmc-dfi")
METHODS = ("cgm", "smc", "wu", *HMC)
"""In the order of the paper's tables."""

REFERENCES = ("cart", "forest")
"""Of scikit-learn, for the comparison over many splits."""

Symbols = Mapping[str, float]
Estimator = BayesianTreeClassifier | BayesianTreeRegressor


@dataclass(frozen=True)
class Lengths:
    """Iterations of a chain: thrown away, then kept."""

    burn_in: int
    draws: int

    def shortened(self, factor: int) -> Lengths:
        return Lengths(max(self.burn_in // factor, 1), max(self.draws // factor, 2))


GRID_LENGTHS = Lengths(500, 500)


def lengths_of(dataset: str, method: str) -> Lengths:
    """As in section 4; SMC has particles instead, whose number is in table 4."""
    if dataset not in REGRESSION:
        return Lengths(200, 800)
    return Lengths(4500, 500) if method == "cgm" else Lengths(500, 500)


def classical_method(method: str, symbols: Symbols, n_classes: int) -> Method:
    """CGM, WU or SMC with the paper's symbols; docs/symbols.md has the dictionary."""
    fields: dict[str, Any] = {
        ours: symbols[theirs]
        for theirs, ours in (("lambda", "expected_splits"), ("p", "left_share"))
        if theirs in symbols
    }
    if "mu_0" in symbols:
        fields["variance_prior"] = (symbols["alpha"], symbols["beta"])
        fields["mean_prior"] = (symbols["mu_0"], symbols["n"])
    elif method == "wu":
        pair = (symbols["alpha"], symbols["beta"]) if "beta" in symbols else None
        fields["class_prior"] = pair or (symbols["alpha"],) * n_classes
    else:
        fields["class_mass"] = symbols["alpha"]
    return METHODS_BY_NAME[method].paper(**fields)


def classical_estimator(
    method: str, symbols: Symbols, n_classes: int, lengths: Lengths, seed: int, n_chains: int = 1
) -> Estimator:
    """CGM, WU or SMC with these symbols; SMC's numbers of islands and particles are symbols."""
    parameters: dict[str, Any] = {
        "method": classical_method(method, symbols, n_classes),
        "preset": "paper",
        "n_chains": n_chains,
        "n_warmup": lengths.burn_in,
        "n_draws": lengths.draws,
    }
    for name in ("alpha_split", "beta_split"):
        if name in symbols:
            parameters[name] = symbols[name]
    if method == "smc":
        islands, particles = int(symbols["islands"]), int(symbols["particles"])
        parameters |= {"n_chains": islands, "n_warmup": None, "n_draws": particles // islands}
    return _estimator(parameters, n_classes, seed)


def hmc_estimator(
    method: str,
    preset: str,
    symbols: Symbols,
    n_classes: int,
    lengths: Lengths,
    seed: int,
    n_chains: int = 1,
) -> Estimator:
    """HMC-DF or HMC-DFI by either preset: the same model, with every prior spelt out."""
    fields: dict[str, Any] = {
        "min_leaves": 2,
        "tau_prior": (1.0, 1.0),
        "class_prior": 1.0,
        "mu_prior": (0.0, 1.0),
        "sigma_prior": (1.5, 1.5),
    }
    if method == "hmc-dfi":
        fields["weight_prior"] = 1.0
    parameters: dict[str, Any] = {
        "n_chains": n_chains,
        "n_warmup": lengths.burn_in,
        "n_draws": lengths.draws,
        "h": symbols["h_final"],
        "alpha_split": symbols["alpha_split"],
        "beta_split": symbols["beta_split"],
    }
    cls = METHODS_BY_NAME[method]
    if preset == "paper":
        parameters["preset"] = "paper"
        parameters["method"] = cls.paper(**fields, h_init=symbols["h_init"])
    else:
        parameters["method"] = cls(**fields)
    return _estimator(parameters, n_classes, seed)


def _estimator(parameters: dict[str, Any], n_classes: int, seed: int) -> Estimator:
    parameters |= {"random_state": seed, "n_jobs": 1, "progress": False}
    if n_classes:
        return BayesianTreeClassifier(**parameters)
    return BayesianTreeRegressor(**parameters, standardize=False)


def presets_of(method: str, preset: str) -> tuple[str, ...]:
    """The presets by which a method runs when the user asks for exact, paper or both."""
    if method not in HMC:
        return ("paper",)
    return ("exact", "paper") if preset == "both" else (preset,)
