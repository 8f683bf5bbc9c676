"""Terms of h="learn" and of an h a column."""

from __future__ import annotations

from .harness import Mutant

STEPS = "core/soft/learned_h.py"
CHAIN = "core/soft/learned_loop.py"
UNIT = "tests/core/soft/test_learned_h.py"
POSTERIOR = "tests/statistical/test_learned_posterior.py -k test_posterior"
EACH = "tests/core/soft/test_likelihoods.py -k own_softness"

SLICE = "log_prior_of_log_h(learning, log_h) + tempered(model.power[0], new_like) > height"
WEIGHT = "log_prior + log_like - log_d - log_q"

MUTANTS = [
    Mutant(
        "h: prior left out of the slice",
        STEPS,
        "slice_h",
        SLICE,
        "tempered(model.power[0], new_like) > height",
        f"{UNIT} -k one_h_has_its_conditional",
    ),
    Mutant(
        "h: likelihood left out of the slice",
        STEPS,
        "slice_h",
        SLICE,
        "log_prior_of_log_h(learning, log_h) + tempered(model.power[0], log_like) > height",
        f"{UNIT} -k one_h_has_its_conditional",
    ),
    Mutant(
        "h: learned by the Dirichlet-multinomial, which is not normalised",
        STEPS,
        "learned_likelihood",
        "model.family != CLASSES",
        "True",
        f"{UNIT} -k one_h_has_its_conditional classes",
    ),
    Mutant(
        "h by feature: a column without a split keeps its h",
        STEPS,
        "update_h",
        "set_columns(model, first, first + width, draw_log_h(learning, rng))",
        "",
        f"{UNIT} -k each_column_has_its_conditional",
    ),
    Mutant(
        "h by feature: all columns move with the first",
        STEPS,
        "update_h",
        "1 if learning.by_feature else p",
        "p",
        f"{UNIT} -k each_column_has_its_conditional",
    ),
    Mutant(
        "h: Jacobian left out of the recorded density",
        STEPS,
        "log_prior_of_h",
        "log_prior_of_log_h(learning, log_h) - log_h",
        "log_prior_of_log_h(learning, log_h)",
        f"{UNIT} -k prior_density",
    ),
    Mutant(
        "labels: rows go to leaves by routing alone",
        "core/soft/labels.py",
        "label_likelihood",
        "probabilities[k, label] * share",
        "share",
        f"{UNIT} -k expected_rows",
    ),
    Mutant(
        "leaf probabilities: prior left out given the rows",
        STEPS,
        "refresh",
        "learning.rows[k, m] + learning.prior[0, m]",
        "learning.rows[k, m] + 1.0",
        f"{UNIT} -k probabilities_have_their_conditional",
    ),
    Mutant(
        "correction: weight of the present state left out",
        STEPS,
        "correct",
        "log_weight - learning.log_weight[0]",
        "log_weight",
        f"{UNIT} -k refused_step",
    ),
    Mutant(
        "correction: density of the drawn probabilities left out",
        STEPS,
        "log_weight_of",
        WEIGHT,
        "log_prior + log_like - log_d",
        f"{UNIT} -k probabilities_have_their_conditional",
    ),
    Mutant(
        "correction: prior of the probabilities left out",
        STEPS,
        "log_weight_of",
        WEIGHT,
        "log_like - log_d - log_q",
        f"{UNIT} -k probabilities_have_their_conditional",
    ),
    Mutant(
        "correction in chains: the Dirichlet-multinomial left out",
        STEPS,
        "log_weight_of",
        WEIGHT,
        "log_prior + log_like - log_q",
        f"{POSTERIOR} two-classes",
    ),
    Mutant(
        "correction: a refused step is not undone",
        STEPS,
        "correct",
        "copy_tree(learning.before, tree)\nreturn learning.like_before[0], False",
        "return log_like, False",
        f"{UNIT} -k refused_step",
    ),
    Mutant(
        "correction in chains: informed moves go without",
        CHAIN,
        "corrected_moves",
        "tally[move, 0] > learning.accepted_before[move]",
        "tally[move, 0] < 0",
        f"{POSTERIOR} two-classes",
    ),
    Mutant(
        "correction in chains: NUTS goes without",
        CHAIN,
        "classification_iteration",
        "n_leaves(state.tree) > 1",
        "n_leaves(state.tree) > 1000",
        f"{POSTERIOR} two-classes",
    ),
    Mutant(
        "h: classification goes on with the likelihood of another h",
        CHAIN,
        "classification_iteration",
        "state.log_like[0] = likelihood(model, state.tree, state.work)",
        "",
        f"{UNIT} -k knows_the_likelihood",
    ),
    Mutant(
        "h: regression goes on with the likelihood of another h",
        CHAIN,
        "regression_iteration",
        """
        state.log_like[0] = update_h(
            state.model, state.tree, state.work, learning, state.log_like[0], rng
        )
        """,
        "update_h(state.model, state.tree, state.work, learning, state.log_like[0], rng)",
        f"{UNIT} -k knows_the_likelihood",
    ),
    Mutant(
        "an h a column: routing has the first for all",
        "core/tree/routing.py",
        "route_block",
        "1.0 / h[f]",
        "1.0 / h[0]",
        EACH,
    ),
    Mutant(
        "an h a column: back-propagation has the first for all",
        "core/tree/routing.py",
        "backpropagate_block",
        "1.0 / h[0] if oblique else 1.0 / h[tree.feature[i]]",
        "1.0 / h[0]",
        EACH,
    ),
    Mutant(
        "an h a column: gradient from pairs has the first for all",
        "core/soft/classes.py",
        "gradient_from_pairs",
        "1.0 / h[tree.feature[i]]",
        "1.0 / h[0]",
        EACH,
    ),
    Mutant(
        "an h a column: gradient from tangents has the first for all",
        "core/soft/collapsed.py",
        "gradient_from_tangents",
        "h[tree.feature[i]]",
        "h[0]",
        EACH,
    ),
]
