"""How well would rows be predicted that were not seen? Leave-one-out by importance sampling."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..utils.arrays import FloatArray, IntArray
from ..utils.notebook import html_of_text

if TYPE_CHECKING:
    from .posterior import Posterior

SHOWN = 5
"""Rows that the sentence names."""
FEWEST_DRAWS = 25
"""A fifth of them, the tail of the importance weights, has to be five."""


@dataclass(frozen=True, repr=False, eq=False)
class Loo:
    """Leave-one-out cross-validation of one posterior; prints as text."""

    elpd: float
    """Expected log predictive density of the training rows, each predicted without itself: a sum
    over rows; higher is better."""
    se: float
    """Its standard error over rows."""
    p: float
    """Effective number of parameters: how much better the rows are fitted than predicted."""
    elpd_i: FloatArray
    """[row]; what each row adds to elpd."""
    pareto_k: FloatArray
    """[row]; shape of the tail of the importance weights."""
    good_k: float
    """Rows with a larger Pareto k are unreliable: at most 0.7, less for few draws."""

    @property
    def n_rows(self) -> int:
        return len(self.elpd_i)

    @property
    def unreliable(self) -> IntArray:
        """Numbers of the rows whose estimate is unreliable, the worst first."""
        order = np.argsort(-self.pareto_k, kind="stable")
        worst: IntArray = order[~(self.pareto_k[order] <= self.good_k)]
        return worst

    @property
    def sentence(self) -> str:
        """Whether the estimate is reliable, and what to do if not."""
        bad = self.unreliable
        if not len(bad):
            return f"All {self.n_rows} rows are reliable (Pareto k at most {self.good_k:.2f})."
        one = len(bad) == 1
        few = f"{len(bad)} of {self.n_rows} rows {'is' if one else 'are'} unreliable"
        named = ", ".join(str(row) for row in bad[:SHOWN]) + (", ..." if len(bad) > SHOWN else "")
        what, these, they = ("row", "this row", "it") if one else ("rows", "these rows", "they")
        them = "it" if one else "them"
        advice = f"Look at {these}, and check {them} by k-fold cross-validation"
        if len(bad) > 0.05 * self.n_rows:
            advice = "Do not rely on the sum: use k-fold cross-validation"
        return (
            f"{few} (Pareto k above {self.good_k:.2f}: {what} {named}): the trees depend on {them} "
            f"so strongly that the draws cannot show how {they} would be predicted if held out, "
            f"and elpd may be too high. {advice} (sklearn.model_selection.cross_val_score)."
        )

    def __str__(self) -> str:
        return (
            f"PSIS-LOO over {self.n_rows} rows\n"
            f"  elpd  {self.elpd:.1f} (standard error {self.se:.1f}), "
            f"{self.elpd / self.n_rows:.3f} per row\n"
            f"  p     {self.p:.1f} effective parameters\n"
            f"{self.sentence}"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        few = len(self.unreliable)
        badge = f"{few} unreliable row{'s' * (few > 1)}" if few else "all rows reliable"
        return html_of_text(str(self), badge, good=not few)


def loo(posterior: Posterior) -> Loo:
    """PSIS-LOO of the training rows by ArviZ; see ``Loo``.

    Of each row the log density is that of ``pointwise_log_likelihood``, in the units of y. Draws of
    a weighted posterior (SMC) are resampled to equal weights.

    Raises
    ------
    ValueError
        If the training data were left out, there are fewer than 25 draws, or there are too many
        rows and draws for the memory.
    """
    if posterior.weights.size < FEWEST_DRAWS:
        raise ValueError(
            f"leave-one-out estimates need at least {FEWEST_DRAWS} draws, there are "
            f"{posterior.weights.size}: raise n_draws"
        )
    if posterior.data("loo").weights is not None:
        raise ValueError(
            "loo does not support sample_weight yet: leaving out a row of weight 2 would leave out "
            "two rows"
        )
    import arviz_stats

    from .export.datatree import likelihood_tree

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Pareto k, which the sentence tells, and of pandas
        found = arviz_stats.loo(likelihood_tree(posterior), pointwise=True)
    return Loo(
        elpd=float(found.elpd),
        se=float(found.se),
        p=float(found.p),
        elpd_i=np.asarray(found.elpd_i, np.float64),
        pareto_k=np.asarray(found.pareto_k, np.float64),
        good_k=float(found.good_k),
    )
