"""Terms of the sources to break on purpose, each with the tests that must then fail.

A mutant that survives means that no test guards that term. ``harness`` finds and breaks them, the
other modules list them, and ``make test-mutations`` runs them all.
"""

from __future__ import annotations

from . import (
    chains,
    changed,
    growing,
    hard,
    imputed,
    labels,
    ladder,
    leaf_means,
    learned,
    means,
    rearranging,
    scan,
    search,
    smc,
    smc_special,
    soft,
    special,
    weights,
)

MUTANTS = [
    *soft.MUTANTS,
    *growing.MUTANTS,
    *rearranging.MUTANTS,
    *scan.MUTANTS,
    *means.MUTANTS,
    *leaf_means.MUTANTS,
    *chains.MUTANTS,
    *labels.MUTANTS,
    *changed.MUTANTS,
    *learned.MUTANTS,
    *hard.MUTANTS,
    *smc.MUTANTS,
    *smc_special.MUTANTS,
    *ladder.MUTANTS,
    *weights.MUTANTS,
    *special.MUTANTS,
    *imputed.MUTANTS,
    *search.MUTANTS,
]
