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
        "takeover: rungs adapt for as long as before where their warm-up is shorter",
        TAKEOVER,
        "Takeover.start",
        "self._sampler.with_warmup(self.n_warmup)",
        "self._sampler",
        f"{OF_TAKEOVER} -k begin_where_the_chain_was",
    ),
    Mutant(
        "best tree: prior of a learned h left out",
        CLIMB,
        "log_posterior_of",
        "total + log_prior_of_h(model, h_prior)",
        "total",
        f"{OF_SOFT_TREES} numbers learned",
    ),
    Mutant(
        "best tree: prior of a learned h left out beside leaf probabilities",
        CLIMB,
        "log_integral",
        "value + log_prior_of_h(model, h_prior)",
        "value",
        f"{OF_SOFT_TREES} labels learned",
    ),
    Mutant(
        "best tree: leaf probabilities summed out instead of averaged",
        CLIMB,
        "log_integral",
        "math.log(total / n)",
        "math.log(total)",
        f"{OF_SOFT_TREES} labels",
    ),
    Mutant(
        "best tree: weights of probabilities not brought to one scale",
        CLIMB,
        "log_integral",
        "math.exp(highest - weight)",
        "1.0",
        f"{OF_SOFT_TREES} labels",
    ),
]
