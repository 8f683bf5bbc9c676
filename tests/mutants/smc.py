"""Terms of SMC's weights."""

from __future__ import annotations

from .harness import Mutant

TESTS = "tests/statistical/test_smc.py tests/methods/test_smc_run.py"
GAPS = "core/smc/gaps.py"
PROPOSALS = "core/smc/proposals.py"
POOL = "core/smc/node_pool.py"
PARTICLES = "core/smc/particles.py"
CORRECTION = "math.log((far - near) / (high - low)) + math.log(gaps)"

MUTANTS = [
    Mutant(
        "SMC, empirical: correction log(prior/proposal) of the threshold",
        PROPOSALS,
        "empirical_cut",
        CORRECTION,
        "0.0",
        TESTS,
    ),
    Mutant(
        "SMC, empirical: number of gaps in the correction",
        PROPOSALS,
        "empirical_cut",
        CORRECTION,
        "math.log((far - near) / (high - low))",
        TESTS,
    ),
    Mutant(
        "SMC, posterior: weight increment on stop",
        PARTICLES,
        "decide",
        "particles.log_prior[i] += math.log1p(-p)",
        """
        if plan.proposal == OPTIMAL:
            particles.log_weight[i] -= log_both
        particles.log_prior[i] += math.log1p(-p)
        """,
        TESTS,
    ),
    Mutant(
        "SMC, posterior: log(1 - p_s) in the increment",
        PARTICLES,
        "decide",
        "log_add(log_split, math.log1p(-p))",
        "log_add(log_split, 0.0)",
        TESTS,
    ),
    Mutant(
        "SMC, posterior: P(gap) in the scores",
        GAPS,
        "score_gaps",
        "math.log((table.value[beyond] - table.value[here]) / (high - low))",
        "-math.log(1.0 * gaps)",
        TESTS,
    ),
    Mutant(
        "SMC, posterior: P(feature) among those that vary",
        PROPOSALS,
        "log_splits",
        "math.log(table.weight[f] / pool.varying[node])",
        "math.log(table.weight[f])",
        TESTS,
    ),
    Mutant(
        "SMC, posterior: l_node in the scores",
        GAPS,
        "log_gain",
        "gain -= pool.log_marginal[node]",
        "",
        TESTS,
    ),
    Mutant(
        "SMC, prior, empirical: l_node in the increment",
        PARTICLES,
        "decide",
        "pool.log_marginal[left] + pool.log_marginal[left + 1] - pool.log_marginal[node]",
        "pool.log_marginal[left] + pool.log_marginal[left + 1]",
        TESTS,
    ),
    Mutant(
        "SMC, prior, empirical: increment on split",
        PARTICLES,
        "decide",
        "table.power * gain + correction",
        "correction",
        TESTS,
    ),
    Mutant(
        "SMC, features that do not vary are left out of the prior's draw",
        PROPOSALS,
        "draw_varying",
        """
        u -= table.weight[f]
        if u < 0.0:
            break
        """,
        "break",
        TESTS,
    ),
    Mutant(
        "SMC, l_root in the first weight",
        "samplers/smc.py",
        "SMCChain.__init__",
        "log_root - math.log(n)",
        "0.0 - math.log(n)",
        TESTS,
    ),
    Mutant(
        "SMC, ln(particles) in the first weight",
        "samplers/smc.py",
        "SMCChain.__init__",
        "log_root - math.log(n)",
        "log_root",
        TESTS,
    ),
    Mutant(
        "SMC, resampling: weights set to their mean",
        PARTICLES,
        "resample",
        "top + math.log(total / n)",
        "top",
        TESTS,
    ),
    Mutant(
        "SMC, resampling: weights reset at all",
        PARTICLES,
        "resample",
        "particles.log_weight[i] = log_mean",
        "",
        TESTS,
    ),
    Mutant(
        "SMC, systematic resampling: the random shift",
        PARTICLES,
        "draw_offspring",
        "shift = rng.random()",
        "shift = 0.0",
        TESTS,
    ),
    Mutant(
        "SMC, multinomial resampling: weights in the draw",
        PARTICLES,
        "draw_offspring",
        'np.searchsorted(cumulative, u, side="right")',
        "int(rng.random() * n)",
        TESTS,
    ),
    Mutant(
        "SMC, resampling: log prior copied with the particle",
        PARTICLES,
        "copy_particle",
        "particles.log_prior[j] = particles.log_prior[i]",
        "",
        TESTS,
    ),
    Mutant(
        "SMC, depth in the split probability",
        POOL,
        "finish_node",
        "pool.depth[parent] + 1 if parent >= 0 else 0",
        "0",
        TESTS,
    ),
    Mutant(
        "SMC, a node of min_size rows stops",
        POOL,
        "finish_node",
        "rows_of(table, pool, node) <= table.min_size",
        "rows_of(table, pool, node) <= 1",
        TESTS,
    ),
    Mutant(
        "SMC, max_leaves stops the queue",
        PARTICLES,
        "next_growing",
        "(n_nodes + 1) // 2 >= most",
        "False",
        TESTS,
    ),
    Mutant(
        "SMC, min_leaves = 2 splits the root",
        PARTICLES,
        "split_prior",
        "depth == 0 and prior.min_leaves > 1",
        "False",
        TESTS,
    ),
    Mutant(
        "SMC, shared children: the feature in the key",
        POOL,
        "find_slot",
        "pool.feature[left] == feature",
        "True",
        TESTS,
    ),
    Mutant(
        "SMC, shared children: only whole pairs after dropping rows",
        POOL,
        "compact",
        "is_whole(pool, left) and is_whole(pool, left + 1)",
        "True",
        TESTS,
    ),
    Mutant(
        "SMC, thresholds drawn within their gap",
        PROPOSALS,
        "draw_in_gap",
        "draw_between(near, far, rng)",
        "0.5 * (near + far)",
        TESTS,
    ),
    Mutant(
        "SMC, 1 / range in the log prior",
        PROPOSALS,
        "log_split_prior",
        "p_feature / (high - low)",
        "p_feature",
        TESTS,
    ),
    Mutant(
        "SMC, leaf values of the prior without likelihood",
        PARTICLES,
        "write_particles",
        "table.power == 0.0 and n_classes == 0",
        "False",
        TESTS,
    ),
    Mutant(
        "SMC, islands weighted by their evidence",
        "posterior/draws.py",
        "collect",
        'weight = np.exp(scalar["log_weight"] - scalar["log_weight"].max())',
        """
        weight = np.exp(scalar["log_weight"] - scalar["log_weight"].max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        """,
        TESTS,
    ),
    Mutant(
        "SMC, log of the mean over islands",
        "posterior/evidence.py",
        "evidence_of_particles",
        "np.log(of_islands.mean())",
        "np.log(of_islands).mean()",
        TESTS,
    ),
]
