"""Break a term on purpose, and see the test fail: ``make test-mutations``.

Each mutant is a copy of the sources with one term removed; the tests named beside it must fail.
A mutant that survives means that no test guards that term. Compiling a mutant takes most of the
time, so this is not part of the test run; docs/correctness.md has the last table it printed.
Tests that call single functions run uncompiled (``interpreted.py``), after the same tests have
passed on the sources as they are.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from .mutations_hard import MUTANTS as HARD_MUTANTS
from .mutations_informed import MUTANTS as INFORMED_MUTANTS
from .mutations_learned import MUTANTS as LEARNED_MUTANTS
from .mutations_smc import MUTANTS as SMC_MUTANTS

ROOT = Path(__file__).parent.parent
PRIOR = "tests/test_prior_recovery.py"
EXACT = "tests/test_exact_posterior.py"
INTERPRETED = (
    "tests/test_informed.py",
    "tests/test_noise.py",
    "tests/test_learning.py",
    "tests/test_bins.py",
    "tests/test_bits.py",
)


@dataclass(frozen=True)
class Mutant:
    what: str
    file: str
    old: str
    new: str
    tests: str


MUTANTS = [
    Mutant(
        "grow: density of the drawn rule left out of q",
        "core/jumps.py",
        "math.log(grow_share / leaves) + log_rule(model.prior, tree, node)",
        "math.log(grow_share / leaves)",
        f"{PRIOR} -k hmc-df-0.1-composed",
    ),
    Mutant(
        "grow: number of prunable nodes left out of the way back",
        "core/jumps.py",
        "math.log(prune_share / count_prunable(tree)) - log_forth",
        "math.log(prune_share) - log_forth",
        f"{PRIOR} -k hmc-df-0.1-composed",
    ),
    Mutant(
        "prune: number of leaves left out of the way back",
        "core/jumps.py",
        "math.log(grow_probability(probs, model.prior, leaves - 1) / (leaves - 1))",
        "math.log(grow_probability(probs, model.prior, leaves - 1))",
        f"{EXACT} -k two-classes-hmc-df-0.1-composed",
    ),
    Mutant(
        "prune to the smallest tree: prune's share not moved to grow",
        "core/jumps.py",
        "math.log(grow_probability(probs, model.prior, leaves - 1) / (leaves - 1))",
        "math.log(probs[GROW] / (leaves - 1))",
        f"{PRIOR} -k hmc-df-0.1-composed",
    ),
    Mutant(
        "grow with explicit means: density of the drawn mean left out",
        "core/jumps.py",
        "        log_forth += log_normal(tree.value[other], model.leaf_prior.mu_mean, "
        "model.leaf_prior.mu_sd)\n",
        "",
        f"{PRIOR} -k 0-hmc-df-0.1-composed-liu",
    ),
    Mutant(
        "jump: topology prior left out of the acceptance",
        "core/priors.py",
        "    total = log_topology(prior, tree)\n    for i in range(tree.n_nodes[0]):",
        "    total = 0.0\n    for i in range(tree.n_nodes[0]):",
        f"{PRIOR} -k hmc-df-0.1-composed",
    ),
    Mutant(
        "the same, seen by calibration",
        "core/priors.py",
        "    total = log_topology(prior, tree)\n    for i in range(tree.n_nodes[0]):",
        "    total = 0.0\n    for i in range(tree.n_nodes[0]):",
        "tests/test_calibration.py -k hmc-df-0.1-0-composed",
    ),
    Mutant(
        "double-sided: ratio taken from x instead of x'",
        "samplers/rjhmc.py",
        "log_ratio = after - before + log_q",
        "log_ratio = after - (start if plan.double_sided else before) + log_q",
        f"{EXACT} -k double-sided",
    ),
    Mutant(
        "double-sided: biased acceptance kept after burn-in",
        "samplers/rjhmc.py",
        "    if plan.biased[phase]:",
        "    if plan.biased[phase] or plan.double_sided:",
        f"{EXACT} -k double-sided",
    ),
    Mutant(
        "threshold: log Jacobian left out",
        "core/target.py",
        "total += log_jacobian + log_threshold(model.prior, tree.threshold[i])",
        "total += log_threshold(model.prior, tree.threshold[i])",
        f"{PRIOR} -k hmc-df-0.1-composed",
    ),
    Mutant(
        "weights: part of the stick-breaking Jacobian left out",
        "core/transforms.py",
        "log_jacobian += log_slope + math.log(left)",
        "log_jacobian += log_slope",
        f"{PRIOR} -k hmc-dfi-0.1-composed",
    ),
    Mutant(
        "weights: the Jacobian of log ratios left out",
        "core/transforms.py",
        "        log_jacobian += math.log(weights[f])\n",
        "",
        f"{PRIOR} -k hmc-dfi-0.1-informed",
    ),
    Mutant(
        "weights: what they move the threshold by left out of the gradient",
        "core/target.py",
        "grad[at - 1] * model.centre[f] / (c * (1.0 - c))",
        "0.0",
        "tests/test_likelihoods.py -k log",
    ),
    Mutant(
        "sigma: log Jacobian left out",
        "core/target.py",
        "        total += u[at]\n",
        "",
        f"{PRIOR} -k 0-hmc-df-0.1-composed",
    ),
    Mutant(
        "hard splits: Jacobian of the walk between two weights left out",
        "core/rules.py",
        "return model.prior.weight_prior * slope",
        "return (model.prior.weight_prior - 1.0) * slope",
        "tests/test_rules.py",
    ),
    Mutant(
        "hard splits: prior of a nudged threshold left out",
        "core/rules.py",
        "    return log_threshold(model.prior, tree.threshold[i]) - "
        "log_threshold(model.prior, before)",
        "    return 0.0",
        "tests/test_rules.py",
    ),
    Mutant(
        "hard splits: rules redrawn without looking at the data",
        "core/rules.py",
        "        log_ratio += tempered(model, proposed) - tempered(model, log_like)",
        "        log_ratio += 0.0",
        f"{EXACT} -k two-classes-hmc-df-0.0-composed",
    ),
    Mutant(
        "features by MH: current likelihood left out",
        "core/rules.py",
        "accept(tempered(model, proposed) - tempered(model, log_like), rng)",
        "accept(0.0, rng)",
        f"{EXACT} -k hmc-df-0.1-double-sided",
    ),
    Mutant(
        "features by Liu's Gibbs: correction left out",
        "core/rules.py",
        "accept(math.log(elsewhere) - math.log1p(-scores[f]), rng)",
        "accept(0.0, rng)",
        f"{PRIOR} -k hmc-df-0.1-composed-liu",
    ),
    Mutant(
        "features by Gibbs: prior left out of the scores",
        "core/rules.py",
        "score = model.prior.log_feature[f] + tempered(model, rule_work.log_likes[f])",
        "score = tempered(model, rule_work.log_likes[f])",
        f"{PRIOR} -k hmc-df-0.1-composed",
    ),
    Mutant(
        "NUTS: new half always taken",
        "core/nuts.py",
        "if math.log(rng.random()) < half_weight - log_weight:",
        "if True:",
        "tests/test_nuts.py",
    ),
    Mutant(
        "NUTS: points of a half taken without their weights",
        "core/nuts.py",
        "if math.log(rng.random()) < gain - half_weight:",
        "if rng.random() < 0.5:",
        "tests/test_nuts.py",
    ),
    Mutant(
        "gradient: 1 - psi left out of a split's slope",
        "core/routing.py",
        "s = reach[r] * psi[r] * (1.0 - psi[r]) * difference",
        "s = reach[r] * psi[r] * difference",
        "tests/test_likelihoods.py -k gradient",
    ),
    Mutant(
        "gradient: trace term of the collapsed noise left out",
        "core/collapsed.py",
        "(squares - shrinkage - (n - trace)) / sigma",
        "(squares - shrinkage - n) / sigma",
        "tests/test_likelihoods.py -k gradient",
    ),
    Mutant(
        "gradient from sums: the last leaf's tangent left out",
        "core/collapsed.py",
        "(work.moment[k, j] - work.moment[last, j])",
        "work.moment[k, j]",
        "tests/test_likelihoods.py -k gradient",
    ),
    Mutant(
        "gradient from sums: leaves right of a split taken for left ones",
        "core/collapsed.py",
        "shift = 0.0 if k < first_right else 1.0",
        "shift = 0.0",
        "tests/test_likelihoods.py -k gradient",
    ),
    Mutant(
        "classification: the constant of each leaf left out (as in the authors' code)",
        "core/classes.py",
        "    total = n_leaf * constant\n",
        "    total = 0.0\n",
        f"{EXACT} -k three-classes-hmc-df-0.1-composed",
    ),
    Mutant(
        "collapsed regression: determinant left out",
        "core/collapsed.py",
        "        + 2.0 * log_det\n",
        "",
        f"{EXACT} -k regression-hmc-df-0.1-composed",
    ),
]


OTHERS = [*INFORMED_MUTANTS, *LEARNED_MUTANTS, *HARD_MUTANTS, *SMC_MUTANTS]
MUTANTS += [Mutant(*mutant) for mutant in OTHERS]


def unbroken(mutant: Mutant) -> Mutant:
    return replace(mutant, what="nothing", new=mutant.old)


def run_mutant(mutant: Mutant) -> tuple[bool, str]:
    """(killed, what pytest said last) of the tests run against the broken copy."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in ("src", "tests"):
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        source = copy / "src" / "hamiltree" / mutant.file
        text = source.read_text()
        if text.count(mutant.old) != 1:
            sys.exit(f"{mutant.file}: expected once, found {text.count(mutant.old)}: {mutant.old}")
        source.write_text(text.replace(mutant.old, mutant.new))
        paths, _, keyword = mutant.tests.partition(" -k ")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-m",
            "long" if "calibration" in paths else "not long",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            *paths.split(),
        ]
        if keyword:
            command += ["-k", " and ".join(keyword.split())]
        environment = {
            **os.environ,
            "PYTHONPATH": str(copy / "src"),
            "NUMBA_CACHE_DIR": str(copy / "cache"),
            "HAMILTREE_INTERPRETED": "1" if paths in INTERPRETED else "",
        }
        result = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, check=False
        )
        failed = re.findall(r"^FAILED (\S+)", result.stdout, re.M)
        last = failed[0] if failed else result.stdout.strip().splitlines()[-1]
        # 1: tests failed. Anything else (nothing collected, a crash) is not a kill.
        return result.returncode == 1 and bool(failed), last


def main() -> None:
    wanted = sys.argv[1:]
    survivors = 0
    sound: set[str] = set()  # interpreted tests that pass where nothing is broken
    print("| term removed | in | test that failed |\n|---|---|---|")
    for mutant in MUTANTS:
        if wanted and not any(word in mutant.what for word in wanted):
            continue
        if mutant.tests.startswith(INTERPRETED) and mutant.tests not in sound:
            failed, last = run_mutant(unbroken(mutant))
            if failed:
                sys.exit(f"{mutant.tests} fails uncompiled with nothing broken: {last}")
            sound.add(mutant.tests)
        killed, last = run_mutant(mutant)
        survivors += not killed
        verdict = f"`{last.split('::', 1)[-1]}`" if killed else f"**SURVIVED**: {last}"
        print(f"| {mutant.what} | `{mutant.file}` | {verdict} |", flush=True)
    if survivors:
        sys.exit(f"{survivors} mutants survived")


if __name__ == "__main__":
    main()
