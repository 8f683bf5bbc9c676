"""Terms of missing cells and categories in SMC."""

from __future__ import annotations

from .harness import Mutant

OPTIMAL = "tests/statistical/test_smc.py -k evidence_is_unbiased special-posterior"
EMPIRICAL = "tests/statistical/test_smc.py -k evidence_is_unbiased special-empirical"
DENSITIES = "tests/methods/test_smc_run.py -k densities special"
SHARED = "tests/methods/test_smc_run.py -k children_are_shared"
GAPS = "core/smc/gaps.py"
POOL = "core/smc/node_pool.py"
PARTICLES = "core/smc/particles.py"
PROPOSALS = "core/smc/proposals.py"
SPECIAL = "core/smc/special.py"

MUTANTS = [
    Mutant(
        "SMC, log prior of a rule on a special column",
        PROPOSALS,
        "log_split_prior",
        "math.log(p_feature) + log_special(special, pool, node, f, threshold, levels)",
        "math.log(p_feature)",
        DENSITIES,
    ),
    Mutant(
        "SMC, posterior: coin for the side of missing cells in the scores",
        GAPS,
        "score_gaps",
        "(1.0 - by_missing) / (1.0 + missing)",
        "1.0 - by_missing",
        OPTIMAL,
    ),
    Mutant(
        'SMC, posterior: probability of "is missing" in the scores of cuts',
        GAPS,
        "score_gaps",
        "(1.0 - by_missing) / (1.0 + missing)",
        "1.0 / (1.0 + missing)",
        OPTIMAL,
    ),
    Mutant(
        'SMC, posterior: prior of "is missing" in its score',
        GAPS,
        "score_gaps",
        "math.log(by_missing) + log_gain(table, pool, node, left, right)",
        "log_gain(table, pool, node, left, right)",
        OPTIMAL,
    ),
    Mutant(
        "SMC, posterior: missing cells forgotten on the left",
        GAPS,
        "score_gaps",
        "scratch.sums[scratch.level[0], m] if side < missing else 0.0",
        "0.0",
        OPTIMAL,
    ),
    Mutant(
        "SMC, posterior: prior of a set",
        GAPS,
        "score_sets",
        "math.log(2.0) - log_subsets(found)",
        "-log_subsets(found)",
        OPTIMAL,
    ),
    Mutant(
        "SMC, posterior: one way to part the levels left out",
        GAPS,
        "score_sets",
        "(1 << (found - 1)) - 1",
        "max((1 << (found - 1)) - 2, 1)",
        OPTIMAL,
    ),
    Mutant(
        "SMC, posterior: coin for which side of a set is which",
        PROPOSALS,
        "optimal_set",
        "mirrored = rng.random() < 0.5",
        "mirrored = False",
        OPTIMAL,
    ),
    Mutant(
        "SMC, posterior: coins of levels that no row has",
        PROPOSALS,
        "optimal_set",
        "right = rng.random() < 0.5",
        "right = False",
        OPTIMAL,
    ),
    Mutant(
        'SMC, posterior: coin for the side of "is missing"',
        PROPOSALS,
        "optimal_cut",
        "levels = MISSING_RIGHT if rng.random() < 0.5 else NO_LEVELS",
        "levels = MISSING_RIGHT",
        OPTIMAL,
    ),
    Mutant(
        "SMC, posterior: sides of cuts exchanged",
        PROPOSALS,
        "optimal_cut",
        "k >= gaps",
        "k < gaps",
        OPTIMAL,
    ),
    Mutant(
        "SMC, empirical: missing cells taken for the lowest number",
        PROPOSALS,
        "empirical_cut",
        "1 if has_missing(table, pool, node, f) else 0",
        "0",
        EMPIRICAL,
    ),
    Mutant(
        "SMC, empirical: correction of cuts beside missing cells",
        PROPOSALS,
        "propose_special",
        "return threshold, levels, correction",
        "return threshold, levels, 0.0",
        EMPIRICAL,
    ),
    Mutant(
        "SMC, special rules: rows sent to the other side",
        SPECIAL,
        "goes_left",
        "not sends_right(special.data.kinds, f, x, threshold, levels)",
        "sends_right(special.data.kinds, f, x, threshold, levels)",
        DENSITIES,
    ),
    Mutant(
        "SMC, shared children: the levels in their key",
        SPECIAL,
        "key_of",
        "levels & here",
        "np.uint64(n_left)",
        SHARED,
    ),
    Mutant(
        "SMC, shared children: levels that no row has in their key",
        SPECIAL,
        "key_of",
        "levels & here",
        "levels",
        SHARED,
    ),
    Mutant(
        "SMC, shared children: the side of missing cells in their key",
        SPECIAL,
        "key_of",
        "1 if levels != NO_LEVELS else 0",
        "0",
        SHARED,
    ),
    Mutant(
        "SMC, shared children: that side where no cell is missing",
        SPECIAL,
        "key_of",
        "has_missing(table, pool, node, f)",
        "special.data.kinds.missing[f] > 0",
        SHARED,
    ),
    Mutant(
        "SMC, shared children: their key moved with them",
        POOL,
        "move_node",
        "pool.key[target] = pool.key[node]",
        "",
        "tests/methods/test_smc_run.py -k dropped_after_any_decision",
    ),
    Mutant(
        "SMC, resampling: sets copied with the particle",
        PARTICLES,
        "copy_particle",
        "levels[j, k] = levels[i, k]",
        "",
        DENSITIES,
    ),
]
