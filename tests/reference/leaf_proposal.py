"""The law by which leaf probabilities are proposed, in plain NumPy."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln


def log_dirichlet(a, p):
    return float(gammaln(a.sum()) - gammaln(a).sum() + ((a - 1) * np.log(p)).sum())


class LeafProposal:
    """q of some leaves, from ``share`` [rows, leaves], classes ``y``, the prior [K] and the power.

    ``others`` [rows]: what all other leaves give p(y_i).
    """

    def __init__(self, share, y, prior, power, *, others=0.0, steps=4, small=0.2, lost=0.1):
        self.share, self.y, self.prior, self.power = share, y, prior, power
        self.others = others
        label = np.eye(len(prior))[y]
        self.centre = self._mean_by(prior + power * share.T @ label)
        self.centre = self._mean_by(self._expected(self._of_leaf()))
        for _ in range(steps):
            of_leaf = self._of_leaf()
            rows = self._expected(of_leaf)
            self.spread = np.sqrt(self.centre * (1 - self.centre) / (len(prior) - 1))
            relative = self.spread / self.centre
            precision = np.diag((relative**2 * prior).sum(axis=1))
            for m in range(len(prior)):
                products = of_leaf[y == m].T @ of_leaf[y == m]
                precision += power * np.outer(relative[:, m], relative[:, m]) * products
            self.factor = np.linalg.cholesky(precision)
            gradient = (rows - self.centre * rows.sum(axis=1, keepdims=True)) / self.spread
            step = np.linalg.solve(precision, gradient)
            moved = np.maximum(self.centre + self.spread * step, lost * self.centre)
            self.centre = self._mean_by(moved)
            if np.max(np.abs(step) * np.diag(self.factor)[:, None]) < small:
                break

    @staticmethod
    def _mean_by(rows):
        return rows / rows.sum(axis=1, keepdims=True)

    def _of_leaf(self):
        reached = self.share * self.centre[:, self.y].T
        return reached / (self.others + reached.sum(axis=1))[:, None]

    def _expected(self, of_leaf):
        return self.prior + self.power * of_leaf.T @ np.eye(len(self.prior))[self.y]

    def _concentration(self, k, away):
        """Of leaf k, given the leaves after it."""
        diagonal = self.factor[k, k]
        shift = -self.factor[k + 1 :, k] @ away[k + 1 :] / diagonal
        return np.maximum(diagonal**2 * (self.centre[k] + shift * self.spread[k]), self.prior)

    def log_density(self, p):
        away = (p - self.centre) / self.spread
        return sum(log_dirichlet(self._concentration(k, away), p[k]) for k in range(len(p)))

    def draw(self, rng):
        p, away = np.zeros_like(self.centre), np.zeros_like(self.centre)
        for k in reversed(range(len(p))):
            p[k] = np.maximum(rng.dirichlet(self._concentration(k, away)), 1e-300)
            away[k] = (p[k] - self.centre[k]) / self.spread[k]
        return p

    def log_integral(self, n, rng):
        """Log of the likelihood with p integrated out, and its standard error, by n draws."""
        weights = np.empty(n)
        for draw in range(n):
            p = self.draw(rng)
            log_like = np.log((self.share * p[:, self.y].T).sum(axis=1)).sum()
            log_prior = sum(log_dirichlet(self.prior, row) for row in p)
            weights[draw] = log_prior + self.power * log_like - self.log_density(p)
        relative = np.exp(weights - weights.max())
        error = relative.std() / relative.mean() / np.sqrt(n)
        return weights.max() + np.log(relative.mean()), error
