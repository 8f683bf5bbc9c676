"""Terms of sigma and of the means of leaves."""

from __future__ import annotations

from .harness import Mutant

COLLAPSED = "core/soft/collapsed.py"
NOISE = "core/soft/noise.py"
TARGET = "core/soft/target.py"

SIGMA = "tests/core/soft/test_noise.py"

PRIOR_OF_SIGMA = "log_inverse_gamma(sigma, prior.sigma_shape, prior.sigma_scale)"

MUTANTS = [
    # ------------------------------------------------------------------ a power inside an integral
    Mutant(
        "explicit means: power outside of the integral",
        TARGET,
        "integrate_means",
        "tree.sigma[0] = sigma / math.sqrt(power)",
        "",
        SIGMA,
    ),
    Mutant(
        "explicit means: constant of a power of a normal",
        TARGET,
        "integrate_means",
        "log_like + log_power_of_normal(model.data.mass, sigma, power)",
        "log_like",
        SIGMA,
    ),
    Mutant(
        "explicit means: the same in the update of sigma",
        NOISE,
        "marginal_from_sums",
        "log_like + log_power_of_normal(n, sigma, power) if inside else log_like",
        "log_like",
        SIGMA,
    ),
    Mutant(
        "explicit means: noise of the power in the update of sigma",
        NOISE,
        "marginal_from_sums",
        "sigma / math.sqrt(power) if inside else sigma",
        "sigma",
        SIGMA,
    ),
    # ------------------------------------------------------------------ sigma and means
    Mutant(
        "sigma: density beyond the range of its logarithm",
        TARGET,
        "constrain",
        "u[at] if abs(u[at]) <= LARGEST_LOG_SIGMA else -np.inf",
        "u[at]",
        SIGMA,
    ),
    Mutant(
        "sigma: height of the slice not drawn",
        NOISE,
        "update_noise",
        "math.log(max(rng.random(), 1e-300))",
        "math.log(0.5)",
        SIGMA,
    ),
    Mutant(
        "sigma: Jacobian of log sigma",
        NOISE,
        "log_density_of_noise",
        f"{PRIOR_OF_SIGMA} + log_sigma",
        PRIOR_OF_SIGMA,
        SIGMA,
    ),
    Mutant(
        "sigma: prior",
        NOISE,
        "log_density_of_noise",
        f"{PRIOR_OF_SIGMA} + log_sigma",
        "log_sigma",
        SIGMA,
    ),
    Mutant(
        "sigma: power of the likelihood",
        NOISE,
        "log_density_of_noise",
        "tempered(power, log_like)",
        "0.0 if power == 0.0 else log_like",
        SIGMA,
    ),
    Mutant(
        "sigma: the interval shrinks on the wrong side",
        NOISE,
        "update_noise",
        "proposal < u",
        "proposal > u",
        SIGMA,
    ),
    Mutant(
        "sigma: prior of the means left out",
        COLLAPSED,
        "log_marginal",
        "gram[a, a] += prior_precision",
        "",
        SIGMA,
    ),
    Mutant(
        "means: centre",
        COLLAPSED,
        "draw_means",
        "work.mean[k]",
        "0.0",
        SIGMA,
    ),
    Mutant(
        "means: covariance",
        COLLAPSED,
        "draw_means",
        "solve_upper(work.gram, leaves, draws)",
        "",
        SIGMA,
    ),
]
