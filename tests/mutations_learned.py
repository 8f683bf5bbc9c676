"""Terms of h="learn" and of an h a column to break on purpose; data for ``mutations``."""

from __future__ import annotations

STEPS = "core/learning.py"
CHAIN = "samplers/learning.py"
UNIT = "tests/test_learning.py"
POSTERIOR = "tests/test_learned.py -k test_posterior"
EACH = "tests/test_likelihoods.py -k own_softness"

SLICE = "if log_prior_of_log_h(learning, log_h) + tempered(model, new_like) > height:"
WEIGHT = "return log_prior + log_like - log_d - log_q, log_like"

# (term removed, file, text, what replaces it, tests that must fail)
MUTANTS: list[tuple[str, str, str, str, str]] = [
    (
        "h: prior left out of the slice",
        STEPS,
        SLICE,
        SLICE.replace("log_prior_of_log_h(learning, log_h) + ", ""),
        f"{UNIT} -k one_h_has_its_conditional",
    ),
    (
        "h: likelihood left out of the slice",
        STEPS,
        SLICE,
        SLICE.replace(" + tempered(model, new_like)", " + tempered(model, log_like)"),
        f"{UNIT} -k one_h_has_its_conditional",
    ),
    (
        "h: learned by the Dirichlet-multinomial, which is not normalised",
        STEPS,
        "    if model.family != CLASSES:\n        return likelihood",
        "    if True:\n        return likelihood",
        f"{UNIT} -k one_h_has_its_conditional classes",
    ),
    (
        "h by feature: a column without a split keeps its h",
        STEPS,
        "            set_columns(model, first, first + width, draw_log_h(learning, rng))\n",
        "            pass\n",
        f"{UNIT} -k each_column_has_its_conditional",
    ),
    (
        "h by feature: all columns move with the first",
        STEPS,
        "    width = 1 if learning.by_feature else p\n",
        "    width = p\n",
        f"{UNIT} -k each_column_has_its_conditional",
    ),
    (
        "h: Jacobian left out of the recorded density",
        STEPS,
        "total += log_prior_of_log_h(learning, log_h) - log_h",
        "total += log_prior_of_log_h(learning, log_h)",
        f"{UNIT} -k prior_density",
    ),
    (
        "labels: rows go to leaves by routing alone",
        "core/labels.py",
        "                counts[k, label] += probabilities[k, label] * share\n",
        "                counts[k, label] += share\n",
        f"{UNIT} -k expected_rows",
    ),
    (
        "leaf probabilities: prior left out given the rows",
        STEPS,
        "learning.concentration[k, m] = learning.rows[k, m] + learning.prior[0, m]",
        "learning.concentration[k, m] = learning.rows[k, m] + 1.0",
        f"{UNIT} -k probabilities_have_their_conditional",
    ),
    (
        "correction: weight of the present state left out",
        STEPS,
        "accept(log_weight - learning.log_weight[0], rng)",
        "accept(log_weight, rng)",
        f"{UNIT} -k refused_step",
    ),
    (
        "correction: density of the drawn probabilities left out",
        STEPS,
        WEIGHT,
        WEIGHT.replace(" - log_q", ""),
        f"{UNIT} -k probabilities_have_their_conditional",
    ),
    (
        "correction: prior of the probabilities left out",
        STEPS,
        WEIGHT,
        WEIGHT.replace("log_prior + ", ""),
        f"{UNIT} -k probabilities_have_their_conditional",
    ),
    (
        "correction in chains: the Dirichlet-multinomial left out",
        STEPS,
        WEIGHT,
        WEIGHT.replace(" - log_d", ""),
        f"{POSTERIOR} two-classes",
    ),
    (
        "correction: a refused step is not undone",
        STEPS,
        "    copy_tree(learning.before, tree)\n    return learning.like_before[0], False",
        "    return log_like, False",
        f"{UNIT} -k refused_step",
    ),
    (
        "correction in chains: informed moves go without",
        CHAIN,
        "            if tally[move, 0] > learning.accepted_before[move]:  # one at most\n",
        "            if tally[move, 0] < 0:\n",
        f"{POSTERIOR} two-classes",
    ),
    (
        "correction in chains: NUTS goes without",
        CHAIN,
        "    if n_leaves(state.tree) > 1:\n",
        "    if n_leaves(state.tree) > 1000:\n",
        f"{POSTERIOR} two-classes",
    ),
    (
        "h: classification goes on with the likelihood of another h",
        CHAIN,
        "    state.log_like[0] = likelihood(model, state.tree, state.work)\n    refresh",
        "    refresh",
        f"{UNIT} -k knows_the_likelihood",
    ),
    (
        "h: regression goes on with the likelihood of another h",
        CHAIN,
        "    state.log_like[0] = update_h(\n",
        "    update_h(\n",
        f"{UNIT} -k knows_the_likelihood",
    ),
    (
        "an h a column: routing has the first for all",
        "core/routing.py",
        "            softness = h[tree.feature[i]]\n",
        "            softness = h[0]\n",
        EACH,
    ),
    (
        "an h a column: back-propagation has the first for all",
        "core/routing.py",
        "scale = 1.0 / h[0] if oblique else 1.0 / h[tree.feature[i]]",
        "scale = 1.0 / h[0]",
        EACH,
    ),
    (
        "an h a column: gradient from pairs has the first for all",
        "core/classes.py",
        "            scale = 1.0 / h[tree.feature[i]]\n",
        "            scale = 1.0 / h[0]\n",
        EACH,
    ),
    (
        "an h a column: gradient from tangents has the first for all",
        "core/collapsed.py",
        "total * precision / h[tree.feature[i]]",
        "total * precision / h[0]",
        EACH,
    ),
]
