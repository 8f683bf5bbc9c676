"""Simulation-based calibration of the whole sampler, and the picture of its ranks.

Truth from the prior, data from the truth, posterior from the sampler: the rank of the truth among
the draws must be uniform, for the number of leaves, the noise, a prediction at a new row and, where
it is learned, h. The paper's likelihood of soft classification is not a distribution over labels,
so there quadrature is the judge; the normalised one is.

``python -m tests.statistical.sbc`` runs the cases of the default sampler, prints p-values and draws
docs/images/calibration-ranks.png; ``python -m tests.statistical.sbc 60`` does it with 60
replicates, and ``python -m tests.statistical.sbc 1000 again`` with other seeds, without a picture.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

from hamiltree.posterior.draws import Draws, softness
from hamiltree.running.run import Problem, sample

from ..reference.exact_learned import h_prior
from ..reference.model import Prior, from_flat, leaves, phi, sample_sigma, sample_tree, sample_y
from ..reference.stats import sbc_rank, sbc_uniformity
from ..support.configuring import configured, usable
from .battery import CONFIGURATIONS

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "calibration-ranks.png"
PRIOR = Prior(alpha_split=0.7, beta_split=1.0, max_leaves=6, sigma=(3.0, 1.0))
N_REPLICATES = 500
N_LEARNED = 200
N_ROWS = 25
KEPT = 99  # thinned draws a replicate: ranks 0..99
N_BINS = 20
NAMES = {"n_leaves": "number of leaves", "sigma": "sigma", "prediction": "a prediction"}
PRIOR_OF_H = (0.05, 1.0)


@dataclass(frozen=True)
class Case:
    method: str
    h: float | str
    n_classes: int
    """0 for regression."""
    configuration: str
    by_feature: bool = False
    """With h="learn"."""

    @property
    def thinning(self) -> int:
        """Iterations for each kept draw; an informed one makes ten jumps."""
        return 20 if self.configuration.startswith("informed") else 120

    @property
    def n_replicates(self) -> int:
        return N_LEARNED if isinstance(self.h, str) else N_REPLICATES

    def __str__(self) -> str:
        target = f"{self.n_classes} classes" if self.n_classes else "regression"
        h = f"h = {self.h}" if isinstance(self.h, str) else f"h = {self.h:g}"
        return f"{self.method.upper()}, {h}{' by feature' * self.by_feature}, {target}"


INFORMED = [
    Case("hmc-df", 0.1, 0, "informed"),
    Case("hmc-df", 0.0, 0, "informed"),
    Case("hmc-dfi", 0.1, 0, "informed"),
    Case("hmc-dfi", 0.0, 0, "informed"),
    Case("hmc-df", 0.0, 2, "informed"),
    Case("hmc-dfi", 0.0, 3, "informed"),
    Case("hmc-df", 0.1, 2, "informed"),
    Case("hmc-dfi", 0.1, 3, "informed"),
]
LEARNED = [
    Case("hmc-df", "learn", 0, "informed"),
    Case("hmc-df", "learn", 0, "informed", by_feature=True),
    Case("hmc-df", "learn", 0, "informed-explicit"),
    Case("hmc-dfi", "learn", 0, "informed"),
    Case("hmc-df", "learn", 2, "informed"),
    Case("hmc-df", "learn", 3, "informed", by_feature=True),
    Case("hmc-dfi", "learn", 3, "informed"),
]
CASES = [
    *INFORMED,
    *LEARNED,
    Case("hmc-df", 0.1, 0, "informed-explicit"),
    Case("hmc-df", 0.1, 0, "composed"),
    Case("hmc-dfi", 0.1, 0, "composed"),
    Case("hmc-df", 0.1, 0, "double-sided"),
    Case("hmc-df", 0.0, 0, "composed"),
    Case("hmc-df", 0.0, 2, "composed"),
    Case("hmc-dfi", 0.0, 3, "composed"),
]


def ranks_of(case: Case, rng: np.random.Generator, n: int = N_REPLICATES) -> dict[str, list[int]]:
    """Ranks 0..KEPT of the truth in n replicates, for each quantity."""
    ranks: dict[str, list[int]] = {}
    for _ in range(n):
        truth, posterior = replicate(case, rng)
        for name, value in truth.items():
            ranks.setdefault(name, []).append(sbc_rank(posterior[name], value, rng))
    return ranks


def replicate(
    case: Case, rng: np.random.Generator
) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """The truth, and KEPT draws, of each quantity."""
    X, new = rng.uniform(size=(N_ROWS, 2)), rng.uniform(size=(1, 2))
    tree = sample_tree(rng, 2, PRIOR, method=case.method)
    truth = {"n_leaves": float(len(leaves(tree)))}
    h: float | np.ndarray = 0.0 if isinstance(case.h, str) else case.h
    if isinstance(case.h, str):
        log_h = h_prior(*PRIOR_OF_H).rvs(2 if case.by_feature else 1, random_state=rng)
        truth["h"], h = log_h[0], np.exp(log_h) if case.by_feature else float(np.exp(log_h[0]))
    at_new = phi(tree, new, h)[0]
    if case.n_classes:
        of_leaf = rng.dirichlet(np.full(case.n_classes, PRIOR.classes), size=len(leaves(tree)))
        of_row = phi(tree, X, h) @ of_leaf
        y = np.array([rng.choice(case.n_classes, p=p / p.sum()) for p in of_row])
        truth["prediction"] = float(at_new @ of_leaf[:, 0])
    else:
        truth["sigma"] = sample_sigma(rng, PRIOR)
        y = sample_y(rng, tree, X, h, truth["sigma"])
        truth["prediction"] = float(at_new @ [leaf.mu for leaf in leaves(tree)])
    draws, _ = sample(
        Problem(np.ascontiguousarray(X.T), y, case.n_classes),
        configured(
            case.method,
            h=case.h,
            **({"h_by_feature": True} if case.by_feature else {}),
            h_prior=PRIOR_OF_H,
            alpha_split=PRIOR.alpha_split,
            beta_split=PRIOR.beta_split,
            max_leaves=PRIOR.max_leaves,
            class_prior=PRIOR.classes,
            sigma_prior=PRIOR.sigma,
            **usable(case.method, CONFIGURATIONS[case.configuration]),
        ),
        n_chains=2,
        n_warmup=300,
        n_draws=KEPT * case.thinning // 2,
        n_jobs=2,
        seed=int(rng.integers(2**31)),
    )
    kept = np.linspace(0, draws.n_leaves.size - 1, KEPT).astype(int)  # over the joined chains
    posterior = {
        "n_leaves": draws.n_leaves.ravel()[kept].astype(float),
        "sigma": draws.sigma.ravel()[kept],
        "prediction": np.array([prediction(draws, t, new, case, rng) for t in kept]),
    }
    if draws.h_learned:
        posterior["h"] = np.log(draws.h[kept, 0])
    return truth, posterior


def prediction(
    draws: Draws, t: int, new: np.ndarray, case: Case, rng: np.random.Generator
) -> float:
    """The mean, or a draw of the probability of class 0, at one new row by tree t."""
    a, b = draws.node_offset[t], draws.node_offset[t + 1]
    split = slice((a - t) // 2, (b - t - 1) // 2)
    leaf = draws.leaf[(a + t) // 2 : (b + t + 1) // 2]
    tree = from_flat(
        draws.size[a:b].tolist(),
        draws.feature[split].tolist(),
        draws.threshold[split].tolist(),
        draws.split_weights[split],
    )
    h = softness(draws, t, 2)
    weight = phi(tree, new, h if case.method == "hmc-df" else float(h[0]))[0]
    if case.n_classes:
        return float(weight @ [rng.dirichlet(rows + PRIOR.classes)[0] for rows in leaf])
    return float(weight @ leaf[:, 0])


# ------------------------------------------------------------------ the picture


def draw(found: dict[Case, dict[str, list[int]]], path: Path) -> None:
    """Histograms of ranks, one row per case; the band holds 99 of 100 bars of a right sampler."""
    matplotlib.use("Agg")
    figure, axes = plt.subplots(
        len(found), len(NAMES), figsize=(9, 1.7 * len(found)), layout="constrained", squeeze=False
    )
    for k, (case, ranks) in enumerate(found.items()):
        for axis, (name, title) in zip(axes[k], NAMES.items(), strict=True):
            axis.set_yticks([])
            if k == 0:
                axis.set_title(title, fontsize=10)
            if name not in ranks:
                axis.set_axis_off()
                continue
            n = len(ranks[name])
            low, high = stats.binom.ppf([0.005, 0.995], n, 1 / N_BINS)
            axis.axhspan(low, high, color="0.88")
            axis.set_ylim(0, 1.6 * n / N_BINS + 3 * np.sqrt(n / N_BINS))
            axis.axhline(n / N_BINS, color="0.6", linewidth=1)
            axis.hist(ranks[name], bins=N_BINS, range=(0, KEPT + 1), color="#2a6f97", rwidth=0.9)
            axis.set_xticks([0, KEPT])
            axis.set_xlim(0, KEPT + 1)
            axis.spines[["top", "right", "left"]].set_visible(False)
            if name == "n_leaves":
                axis.set_ylabel(str(case).replace(", ", "\n"), fontsize=8, rotation=0, ha="right",
                                va="center")  # fmt: skip
    figure.supxlabel("rank of the truth among 99 draws", fontsize=10)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else N_REPLICATES
    again = 1000 if "again" in sys.argv else 0  # seeds of their own
    found = {}
    bins = N_BINS if n >= 5 * N_BINS else n // 5
    print("| sampler | number of leaves | sigma | a prediction | seconds |\n|---|---|---|---|---|")
    for k, case in enumerate(INFORMED):
        begun = time.perf_counter()
        found[case] = ranks_of(case, np.random.default_rng(k + again), n)
        cells = [""] * len(NAMES)
        for j, name in enumerate(NAMES):
            if name in found[case]:
                test = sbc_uniformity(found[case][name], KEPT, n_bins=bins)
                cells[j] = f"{test.p_value:.3f}"
        seconds = time.perf_counter() - begun
        print(f"| {case} | {' | '.join(cells)} | {seconds:.0f} |", flush=True)
    if n == N_REPLICATES and not again:
        draw(found, PICTURE)
        print(PICTURE)
    else:
        print(f"the picture is of the first {N_REPLICATES} replicates")


if __name__ == "__main__":
    main()
