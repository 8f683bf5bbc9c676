"""Terms of what replicas="auto" decides and starts, and of the search for the best tree."""

from __future__ import annotations

from .harness import Mutant

TAKEOVER = "running/takeover.py"
CLIMB = "core/soft/climb.py"
OF_TAKEOVER = "tests/running/test_takeover.py"
OF_SOFT_TREES = "tests/posterior/test_polish.py -k log_posterior_of_soft_trees"

MUTANTS = [
    Mutant(
        "takeover: replicas do not begin where the chain was",
        TAKEOVER,
        "Takeover.start",
        "there[...] = here",
        "pass",
        f"{OF_TAKEOVER} -k begin_where_the_chain_was",
    ),
    Mutant(
        "takeover: numbers of leaves are not judged",
        TAKEOVER,
        "Takeover.decide",
        "rank_rhat(draws.n_leaves.astype(np.float64))",
        "1.0",
        f"{OF_TAKEOVER} -k sizes_that_do_not_mix",
    ),
    Mutant(
        "takeover: barrier by the whole mean difference",
        TAKEOVER,
        "replicas_for",
        "n * (n - 1)",
        "0.5 * n * (n - 1)",
        f"{OF_TAKEOVER} -k wider_log_likelihoods",
    ),
    Mutant(
        "takeover: draws of before it are kept",
        "running/chains.py",
        "Chains._take_over",
        "self.forget()",
        "pass",
        f"{OF_TAKEOVER} -k depend_on_threads_stops_or_files",
    ),
    Mutant(
        "best tree: prior of a learned h left out",
        CLIMB,
        "log_posterior_of",
        "total + log_prior_of_h(model, h_prior)",
        "total",
        f"{OF_SOFT_TREES} learned",
    ),
    Mutant(
        "best tree: prior of the leaf probabilities left out",
        CLIMB,
        "log_posterior_of",
        "log_prior_of_probabilities(leaves, leaves.p, n_leaf)",
        "0.0",
        f"{OF_SOFT_TREES} labels",
    ),
    Mutant(
        "best tree: prior rows left out of the likeliest probabilities",
        CLIMB,
        "log_posterior_of",
        "leaves.prior[0, m] + rows",
        "1.0 + rows",
        f"{OF_SOFT_TREES} labels",
    ),
]
