"""Terms of h="learn" and of an h per column."""

from __future__ import annotations

from .harness import Mutant

STEPS = "core/soft/learned_h.py"
CHAIN = "core/soft/loop.py"
UNIT = "tests/core/soft/test_learned_h.py"
EACH = "tests/core/soft/test_likelihoods.py -k own_softness"

SLICE = "log_prior_of_log_h(h_prior, log_h) + tempered(model.power[0], new_like) > height"

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
        "log_prior_of_log_h(h_prior, log_h) + tempered(model.power[0], log_like) > height",
        f"{UNIT} -k one_h_has_its_conditional",
    ),
    Mutant(
        "h: the present value always near the low end of the first interval",
        STEPS,
        "first_interval",
        "now - rng.random() * length",
        "now - 0.1 * length",
        f"{UNIT} -k one_h_has_its_conditional 0.3",
    ),
    Mutant(
        "h: a first interval that grows with h",
        STEPS,
        "slice_h",
        "first_interval(h_prior, now, length, rng)",
        "first_interval(h_prior, now, length * model.h[first] / 0.05, rng)",
        f"{UNIT} -k one_h_has_its_conditional 0.3",
    ),
    Mutant(
        "h: the length of a step learnt after warm-up, too",
        STEPS,
        "update_h",
        "adapting",
        "True",
        f"{UNIT} -k learnt_in_warm_up",
    ),
    Mutant(
        "h by feature: a column without a split keeps its h",
        STEPS,
        "update_h",
        "set_columns(model, first, first + width, draw_log_h(h_prior, rng))",
        "",
        f"{UNIT} -k each_column_has_its_conditional",
    ),
    Mutant(
        "h by feature: all columns move with the first",
        STEPS,
        "update_h",
        "1 if h_prior.by_feature else p",
        "p",
        f"{UNIT} -k each_column_has_its_conditional",
    ),
    Mutant(
        "h: Jacobian left out of the recorded density",
        STEPS,
        "log_prior_of_h",
        "log_prior_of_log_h(h_prior, log_h) - log_h",
        "log_prior_of_log_h(h_prior, log_h)",
        f"{UNIT} -k prior_density",
    ),
    Mutant(
        "h: a chain goes on with the likelihood of another h",
        CHAIN,
        "update_the_rest",
        """
        log_like = update_h(
            model, tree, state.work, plan.h_prior, moves, adapting, state.log_like[0], rng
        )
        state.log_like[0] = log_like
        """,
        """
        update_h(
            model, tree, state.work, plan.h_prior, moves, adapting, state.log_like[0], rng
        )
        """,
        f"{UNIT} -k knows_the_likelihood",
    ),
    Mutant(
        "an h per column: routing has the first for all",
        "core/tree/routing.py",
        "split_node",
        "1.0 / h[f]",
        "1.0 / h[0]",
        EACH,
    ),
    Mutant(
        "an h per column: back-propagation has the first for all",
        "core/tree/routing.py",
        "backpropagate_block",
        "1.0 / h[0] if oblique else 1.0 / h[tree.feature[i]]",
        "1.0 / h[0]",
        EACH,
    ),
    Mutant(
        "an h per column: gradient from pairs has the first for all",
        "core/soft/classes.py",
        "gradient_from_pairs",
        "1.0 / h[tree.feature[i]]",
        "1.0 / h[0]",
        EACH,
    ),
    Mutant(
        "an h per column: gradient from tangents has the first for all",
        "core/soft/collapsed.py",
        "gradient_from_tangents",
        "h[tree.feature[i]]",
        "h[0]",
        EACH,
    ),
]
