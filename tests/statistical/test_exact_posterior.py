"""The posterior over tree shapes against quadrature and enumeration, for every exact kernel.

Judged by two things with a declared false-alarm rate: total variation over the nine shapes of up
to three splits (also below 0.02 outright), and z-tests of the means of a few functionals.
"""

from __future__ import annotations

import pytest

from ..reference.exact import exact_toy
from ..reference.model import TOYS
from ..reference.stats import compare_means, total_variation
from .battery import CONFIGURATIONS, run_toy

LEVEL = 1e-4  # of each test


def length(toy: str, configuration: str) -> int:
    """Draws per chain. Jumps that draw a mean from its prior are rarely accepted: more of them."""
    options = CONFIGURATIONS[configuration]
    explicit = options.get("leaf_means") == "explicit" and options.get("moves") == "prior"
    return 150_000 if toy == "regression" and explicit else 30_000


def cases():
    for toy in TOYS:
        for method in ("hmc-df", "hmc-dfi"):
            for h in (0.1, 0.0):
                for configuration in CONFIGURATIONS:
                    slow = length(toy, configuration) > 30_000 and not (method == "hmc-df" and h)
                    marks = [pytest.mark.long] if slow else []
                    yield pytest.param(
                        toy,
                        method,
                        h,
                        configuration,
                        marks=marks,
                        id=f"{toy}-{method}-{h}-{configuration}",
                    )


CASES = list(cases())
assert 2 * len(CASES) * LEVEL < 1 / 80, "false alarms: in less than one of so many runs of the file"


@pytest.mark.parametrize(("toy", "method", "h", "configuration"), CASES)
def test_shapes_and_means(toy, method, h, configuration, seed):
    exact = exact_toy(toy, method, h)
    assert exact.error < 1e-3
    sampled = run_toy(
        TOYS[toy](),
        method=method,
        h=h,
        n_draws=length(toy, configuration),
        seed=seed,
        configuration=configuration,
    )
    distance = total_variation(sampled.shapes, exact.shapes, level=LEVEL)
    means = compare_means(sampled.functionals, exact.means, level=LEVEL)
    print(f"total variation {distance.value:.4f} +- {distance.standard_error:.4f}; z {means.z}")
    assert distance.value < 0.02
    assert distance.value < distance.bound
    assert means.ok, means
