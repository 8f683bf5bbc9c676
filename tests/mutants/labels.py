"""Terms of the likelihood that is normalised over labels, and of the leaf probabilities."""

from __future__ import annotations

from .harness import Mutant

LIKELIHOOD = "core/soft/labels.py"
STEPS = "core/soft/leaf_probabilities.py"
UNIT = "tests/core/soft/test_leaf_probabilities.py"
OF_ROWS = "tests/core/soft/test_labels.py"
POSTERIOR = "tests/statistical/test_label_posterior.py -k test_posterior"
VALUES = "tests/core/soft/test_likelihoods.py"

WEIGHT = "log_prior + tempered(model.power[0], log_like) - log_q"

MUTANTS = [
    Mutant(
        "labels: rows go to leaves by routing alone",
        LIKELIHOOD,
        "labels_through_block",
        "p[k, label] * share",
        "share",
        f"{OF_ROWS} -k expected_rows",
    ),
    Mutant(
        "labels: a leaf's probability left out of the mixture",
        LIKELIHOOD,
        "mix_leaves",
        "scale_into(rows, target, p[0, label], reach + leaf[0], n)",
        "scale_into(rows, target, 1.0, reach + leaf[0], n)",
        f"{VALUES} -k value_matches labels",
    ),
    Mutant(
        "labels: padding counts in the likelihood",
        LIKELIHOOD,
        "mix_leaves",
        "rows[target, r] = 1.0",
        "rows[target, r] = 0.5",
        f"{VALUES} -k value_matches labels",
    ),
    Mutant(
        "labels: p(y) left out of the gradient",
        LIKELIHOOD,
        "labels_through_block",
        "scale_into(rows, adjoint + leaf[k], p[k, label], target, n)",
        "fill(rows, adjoint + leaf[k], p[k, label], n)",
        f"{VALUES} -k gradient_matches labels",
    ),
    Mutant(
        "labels: a leaf's probability left out of the gradient",
        LIKELIHOOD,
        "labels_through_block",
        "scale_into(rows, adjoint + leaf[k], p[k, label], target, n)",
        "scale_into(rows, adjoint + leaf[k], 1.0, target, n)",
        f"{VALUES} -k gradient_matches labels",
    ),
    Mutant(
        "labels: rows drawn by routing alone",
        LIKELIHOOD,
        "draw_leaves",
        "add_scaled(rows, target, p[k, label], reach + leaf[k], n)",
        "add_scaled(rows, target, 1.0, reach + leaf[k], n)",
        f"{OF_ROWS} -k drawn_rows",
    ),
    Mutant(
        "leaf probabilities: prior left out given the rows",
        STEPS,
        "refresh_probabilities",
        "leaves.rows[k, m] + leaves.prior[0, m]",
        "leaves.rows[k, m] + 1.0",
        f"{UNIT} -k probabilities_have_their_conditional",
    ),
    Mutant(
        "leaf probabilities: drawn by rows at any power",
        STEPS,
        "refresh_probabilities",
        "model.power[0] == 1.0",
        "model.power[0] > 0.0",
        f"{UNIT} -k probabilities_have_their_conditional",
    ),
    Mutant(
        "leaf probabilities: a proposal always accepted at other powers",
        STEPS,
        "refresh_probabilities",
        "accept(propose_probabilities(model, tree, work, rng) - weight, rng)",
        "propose_probabilities(model, tree, work, rng) < 1e300",
        f"{UNIT} -k probabilities_have_their_conditional",
    ),
    Mutant(
        "weight: density of the drawn probabilities left out",
        STEPS,
        "log_weight_of",
        WEIGHT,
        "log_prior + tempered(model.power[0], log_like)",
        f"{UNIT} -k weights_of_the_state",
    ),
    Mutant(
        "weight: prior of the probabilities left out",
        STEPS,
        "log_weight_of",
        WEIGHT,
        "tempered(model.power[0], log_like) - log_q",
        f"{UNIT} -k weights_of_the_state",
    ),
    Mutant(
        "weight: power of the likelihood left out",
        STEPS,
        "log_weight_of",
        WEIGHT,
        "log_prior + log_like - log_q",
        f"{UNIT} -k weights_of_the_state",
    ),
    Mutant(
        "proposal of probabilities: starts where the chain is",
        STEPS,
        "fit_probabilities",
        "evaluate_at(model, guess, tree, work, REACHED if this == 0 else EXPECTED, this > 0)",
        "evaluate_at(model, guess, tree, work, EXPECTED, this > 0)",
        f"{UNIT} -k depends_on_the_tree_alone",
    ),
    Mutant(
        "in chains: density of the drawn probabilities left out",
        STEPS,
        "log_weight_of",
        WEIGHT,
        "log_prior + tempered(model.power[0], log_like)",
        f"{POSTERIOR} hmc-df-h=0.1-informed-power=1.0",
    ),
    Mutant(
        "in chains: prior of the probabilities left out",
        STEPS,
        "log_weight_of",
        WEIGHT,
        "tempered(model.power[0], log_like) - log_q",
        f"{POSTERIOR} hmc-df-h=0.1-informed-power=1.0",
    ),
    Mutant(
        "in chains: an accepted move keeps the probabilities of the old tree",
        "core/soft/sweep.py",
        "informed_sweep",
        "take_probabilities(model, tree)",
        "pass",
        f"{POSTERIOR} hmc-df-h=0.1-informed-power=1.0",
    ),
    Mutant(
        "in chains: power of the likelihood left out of a move",
        STEPS,
        "log_weight_of",
        WEIGHT,
        "log_prior + log_like - log_q",
        f"{POSTERIOR} hmc-df-h=0.1-informed-power=0.5",
    ),
    Mutant(
        "jumps from the prior: weight of the present state left out",
        "core/soft/loop.py",
        "jump_with_probabilities",
        "after - before + log_q",
        "after - log_posterior_as(model, CLASSES, tree, state.log_like[0]) + log_q",
        f"{POSTERIOR} hmc-df-h=0.1-composed-power=1.0",
    ),
    Mutant(
        "exchange: leaf probabilities stay behind",
        "samplers/rjhmc.py",
        "RJHMCChain.exchanged",
        "[self.state.tree, self.state.log_like, model.h, model.leaves.p]",
        "[self.state.tree, self.state.log_like, model.h]",
        f"{UNIT} -k two_chains_exchange",
    ),
    Mutant(
        "exchange: h stays behind",
        "samplers/rjhmc.py",
        "RJHMCChain.exchanged",
        "[self.state.tree, self.state.log_like, model.h, model.leaves.p]",
        "[self.state.tree, self.state.log_like, model.leaves.p]",
        f"{UNIT} -k two_chains_exchange",
    ),
    Mutant(
        "recorded rows: power left out",
        STEPS,
        "draw_rows",
        "power * counts[0, k, m]",
        "counts[0, k, m]",
        f"{UNIT} -k rows_count_with_the_power",
    ),
]
