"""A posterior in a notebook: a badge, the summary, and trees under a slider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..utils.arrays import evenly
from ..utils.notebook import badge, preformatted, slider
from .describe import summary

if TYPE_CHECKING:
    from .posterior import Posterior

DRAWS = 16
"""Sampled trees beside the best one, evenly spaced over all chains."""
ROOM = 60_000
"""Most characters of all drawings together: a notebook is stored with its outputs."""


def posterior_html(posterior: Posterior) -> str:
    """What ``_repr_html_`` of a posterior returns; without scripts, the best tree stays."""
    diagnosis = posterior.diagnose()
    best = posterior.best_tree()
    frames = [(f"best tree: {_size(best.n_leaves)}", best._repr_html_())]
    room = ROOM - len(frames[0][1])
    for number in evenly(posterior.weights.size, DRAWS):
        chain, draw = divmod(int(number), posterior.n_draws)
        tree = posterior.tree(chain, draw)
        drawing = tree._repr_html_()
        room -= len(drawing)
        if room < 0:
            break
        frames.append((f"chain {chain}, draw {draw}: {_size(tree.n_leaves)}", drawing))
    return (
        f"<div>{badge(diagnosis.label, diagnosis.converged)}{preformatted(summary(posterior))}"
        f"{slider(frames, 'Tree')}</div>"
    )


def _size(n_leaves: int) -> str:
    return "1 leaf" if n_leaves == 1 else f"{n_leaves} leaves"
