"""What every sampler builds from the settings alike."""

from __future__ import annotations

from ..core.priors import TreePrior, make_tree_prior
from ..settings import INFORMED_MOVES, Settings


def sweep_of(settings: Settings) -> tuple[str, ...]:
    """Names of the informed moves of an iteration, in order."""
    if settings.informed_moves is not None:
        return settings.informed_moves
    return INFORMED_MOVES if settings.moves == "informed" else ()


def tree_prior_of(n_features: int, settings: Settings) -> TreePrior:
    return make_tree_prior(
        n_features,
        alpha_split=settings.alpha_split,
        beta_split=settings.beta_split,
        min_leaves=settings.min_leaves,
        max_leaves=settings.max_leaves,
        tau_prior=settings.tau_prior,
        feature_prior=settings.feature_prior,
        weight_prior=settings.weight_prior,
    )
