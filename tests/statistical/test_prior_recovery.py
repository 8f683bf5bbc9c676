"""With the likelihood switched off every exact configuration must return the prior."""

from __future__ import annotations

import pytest

from .battery import CONFIGURATIONS, run_toy
from .prior_battery import OPTIONS, assert_prior, toy

LEVEL = 1e-5  # of each test


def cases():
    for n_classes in (3, 0):
        for configuration, options in CONFIGURATIONS.items():
            if n_classes and set(options) == {"leaf_means"}:
                continue  # classification has no means to be explicit about
            for method in ("hmc-df", "hmc-dfi"):
                for h in (0.1, 0.0):
                    for min_leaves in (1, 2):
                        case = (n_classes, method, h, configuration, min_leaves)
                        yield pytest.param(*case, id="-".join(map(str, case)))


CASES = list(cases())
assert 15 * len(CASES) * LEVEL < 1 / 80, "about 15 tests per case: a false alarm in so many runs"


def length(configuration: str) -> int:
    """Draws per chain; an informed iteration makes ten jumps."""
    return 2_000 if configuration.startswith("informed") else 8_000


@pytest.mark.parametrize(("n_classes", "method", "h", "configuration", "min_leaves"), CASES)
def test_prior_is_recovered(n_classes, method, h, configuration, min_leaves, seed):
    sampled = run_toy(
        toy(n_classes, min_leaves),
        method=method,
        h=h,
        n_draws=length(configuration),
        seed=seed,
        configuration=configuration,
        likelihood=False,
        # uneven, and either way round: a ratio above 1 hides what is wrong with it
        move_probs=(0.3, 0.5, 0.2) if min_leaves == 1 else (0.5, 0.3, 0.2),
        **OPTIONS,
    )
    assert_prior(sampled, method=method, n_classes=n_classes, min_leaves=min_leaves, level=LEVEL)
