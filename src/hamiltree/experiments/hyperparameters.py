"""Tables 3 and 4 of the paper, in its own symbols; docs/symbols.md says what they mean."""

from __future__ import annotations

from itertools import product

# Table 4. Entries marked "ours" are those that the paper has to leave empty; they were chosen by
# ``hamiltree paper grid`` on the training rows, by the paper's own rule.
TABLE_4: dict[tuple[str, str], dict[str, float]] = {
    ("hmc-df", "iris"): {"h_init": 0.01, "h_final": 0.01, "alpha_split": 0.45, "beta_split": 1.0},
    ("hmc-df", "bcw"): {"h_init": 0.025, "h_final": 0.025, "alpha_split": 0.45, "beta_split": 2.5},
    ("hmc-df", "cgm"): {"h_init": 0.001, "h_final": 0.001, "alpha_split": 0.45, "beta_split": 2.5},
    ("hmc-df", "wine"): {"h_init": 0.025, "h_final": 0.025, "alpha_split": 0.45, "beta_split": 2.0},
    ("hmc-df", "raisin"): {
        "h_init": 0.005, "h_final": 0.001, "alpha_split": 0.45, "beta_split": 2.0,
    },
    ("hmc-dfi", "iris"): {"h_init": 0.01, "h_final": 0.01, "alpha_split": 0.7, "beta_split": 1.0},
    ("hmc-dfi", "bcw"): {"h_init": 0.1, "h_final": 0.025, "alpha_split": 0.95, "beta_split": 2.0},
    ("hmc-dfi", "cgm"): {"h_init": 0.01, "h_final": 0.001, "alpha_split": 0.45, "beta_split": 2.5},
    ("hmc-dfi", "wine"): {"h_init": 0.025, "h_final": 0.025, "alpha_split": 0.7, "beta_split": 1.5},
    ("hmc-dfi", "raisin"): {
        "h_init": 0.05, "h_final": 0.001, "alpha_split": 0.7, "beta_split": 2.5,
    },
    ("wu", "bcw"): {"alpha": 2.0, "beta": 2.0, "lambda": 0.8, "p": 0.5},
    ("wu", "cgm"): {
        "alpha": 11.0, "beta": 11.0, "mu_0": 3.0, "n": 1.0, "lambda": 0.8, "p": 0.5,
    },
    ("wu", "raisin"): {"alpha": 1.0, "beta": 2.0, "lambda": 1.8, "p": 0.3},
    ("cgm", "iris"): {"alpha": 0.1, "alpha_split": 1.2, "beta_split": 2.8},
    ("cgm", "bcw"): {"alpha": 1.0, "alpha_split": 2.6, "beta_split": 1.2},
    ("cgm", "cgm"): {
        "alpha": 4.0, "beta": 2.0, "mu_0": 3.0, "n": 0.3, "alpha_split": 1.2, "beta_split": 1.0,
    },
    ("cgm", "wine"): {"alpha": 1.0, "alpha_split": 1.0, "beta_split": 1.2},
    ("cgm", "raisin"): {"alpha": 1.5, "alpha_split": 0.7, "beta_split": 2.2},
    ("smc", "iris"): {
        "alpha": 0.7, "alpha_split": 0.6, "beta_split": 1.0, "particles": 200, "islands": 1,
    },
    ("smc", "bcw"): {
        "alpha": 0.3, "alpha_split": 1.6, "beta_split": 0.7, "particles": 200, "islands": 5,
    },
    ("smc", "wine"): {
        "alpha": 0.1, "alpha_split": 1.0, "beta_split": 1.0, "particles": 200, "islands": 5,
    },
    ("smc", "raisin"): {
        "alpha": 0.5, "alpha_split": 0.7, "beta_split": 1.8, "particles": 200, "islands": 5,
    },
    # ours
    ("wu", "iris"): {"alpha": 0.1, "lambda": 1.0, "p": 0.5},
    ("wu", "wine"): {"alpha": 1.0, "lambda": 1.4, "p": 0.3},
    ("smc", "cgm"): {
        "alpha": 12.0, "beta": 2.0, "mu_0": 5.0, "n": 0.1, "alpha_split": 0.8, "beta_split": 1.0,
        "particles": 200, "islands": 1,
    },
}  # fmt: skip
OURS = {("wu", "iris"), ("wu", "wine"), ("smc", "cgm")}


def span(first: float, step: float, last: float) -> tuple[float, ...]:
    """The paper's [first:step:last], without the noise of adding up decimals."""
    n = int((last - first) / step + 1e-9) + 1
    return tuple(round(first + i * step, 10) for i in range(n))


_PARTICLES = {"particles": (200, 2000), "islands": (1, 5)}

# Table 3, and in its manner grids for the three entries that are ours.
TABLE_3: dict[tuple[str, str], dict[str, tuple[float, ...]]] = {
    ("wu", "bcw"): {
        "alpha": span(2, 1, 10), "beta": span(1, 1, 12),
        "lambda": span(0.6, 0.2, 1.2), "p": span(0.3, 0.2, 0.7),
    },
    ("wu", "cgm"): {
        "alpha": span(2, 1, 12), "beta": span(8, 1, 12), "mu_0": span(3, 1, 6),
        "n": span(1, 1, 5), "lambda": span(0.6, 0.2, 1.2), "p": span(0.3, 0.2, 0.7),
    },
    ("wu", "raisin"): {
        "alpha": span(1, 1, 6), "beta": span(1, 1, 5),
        "lambda": span(0.6, 0.2, 1.8), "p": span(0.3, 0.2, 0.7),
    },
    ("cgm", "iris"): {
        "alpha": span(0.1, 0.1, 0.5), "alpha_split": span(1, 0.2, 3),
        "beta_split": span(1.9, 0.3, 3.1),
    },
    ("cgm", "bcw"): {
        "alpha": span(1, 0.5, 2.5), "alpha_split": span(1.6, 0.2, 2.6),
        "beta_split": span(0.6, 0.2, 1.6),
    },
    ("cgm", "cgm"): {
        "alpha": span(2, 1, 12), "beta": span(2, 1, 5), "mu_0": span(3, 1, 6),
        "n": span(0.1, 0.1, 0.5), "alpha_split": span(0.6, 0.1, 1.2),
        "beta_split": span(0.5, 0.5, 1.5),
    },
    ("cgm", "wine"): {
        "alpha": span(0.5, 0.5, 2.5), "alpha_split": span(0.6, 0.2, 1),
        "beta_split": span(0.8, 0.2, 1.6),
    },
    ("cgm", "raisin"): {
        "alpha": span(0.5, 0.5, 2.5), "alpha_split": span(0.5, 0.1, 1),
        "beta_split": span(0.8, 0.2, 2.4),
    },
    ("smc", "iris"): {
        "alpha_split": span(0.5, 0.1, 1), "beta_split": span(0.5, 0.1, 1.5),
        "alpha": span(0.5, 0.2, 1.5), **_PARTICLES,
    },
    ("smc", "bcw"): {
        "alpha_split": span(0.6, 0.2, 1.6), "beta_split": span(0.1, 0.2, 1),
        "alpha": span(0.1, 0.1, 0.5), **_PARTICLES,
    },
    ("smc", "wine"): {
        "alpha_split": span(0.6, 0.2, 1), "beta_split": span(0.8, 0.2, 1.6),
        "alpha": span(0.1, 0.1, 0.5), **_PARTICLES,
    },
    ("smc", "raisin"): {
        "alpha_split": span(0.5, 0.1, 1), "beta_split": span(0.4, 0.2, 2.4),
        "alpha": span(0.5, 0.5, 2.5), **_PARTICLES,
    },
    # Ours: WU with one Dirichlet parameter for every class, and SMC with CGM's leaf prior.
    ("wu", "iris"): {
        "alpha": (0.1, 0.5, *span(1, 1, 4)),
        "lambda": span(0.6, 0.4, 1.8), "p": span(0.3, 0.2, 0.7),
    },
    ("wu", "wine"): {
        "alpha": (0.1, 0.5, *span(1, 1, 4)),
        "lambda": span(0.6, 0.4, 1.8), "p": span(0.3, 0.2, 0.7),
    },
    ("smc", "cgm"): {
        "alpha": span(2, 2, 12), "beta": span(2, 1, 5), "mu_0": span(3, 1, 6),
        "n": span(0.1, 0.2, 0.5), "alpha_split": span(0.6, 0.2, 1),
        "beta_split": span(0.5, 0.5, 1.5), **_PARTICLES,
    },
}  # fmt: skip


def grid_of(method: str, dataset: str) -> list[dict[str, float]]:
    """Every set of a grid."""
    values = TABLE_3[method, dataset]
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]
