"""Terms of the sources to break on purpose, each with the tests that must then fail.

A mutant that survives means that no test guards that term. ``harness`` finds and breaks them, the
other modules list them, and ``make test-mutations`` runs them all.
"""

from __future__ import annotations

from . import hard, informed, learned, smc, soft

MUTANTS = [
    *soft.MUTANTS,
    *informed.MUTANTS,
    *learned.MUTANTS,
    *hard.MUTANTS,
    *smc.MUTANTS,
]
